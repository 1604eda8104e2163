"""Raw edits of the agents' own rows, for users with `raw_edit`: reached from their session, changed one at a time.

Content is on the page of one item and nowhere else: no list, title or log entry has it. Addresses name an item by its
number and a session by its registry row, because a session id may be a person's name. Every change takes the session's
lock first, as the agents do, and is refused if the row has changed since it was displayed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import PermissionDenied
from django.db import DataError, connection, transaction
from django.db.models import F, Func, IntegerField, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator

from memadmin.accounts.content_access import rules
from memadmin.accounts.raw_edits import ReasonedEdits, operator, why_of
from memadmin.web.reauth import recently_authenticated
from sessions_app import registry
from sessions_app.admin.listing import OfOne, ShortList
from sessions_app.models import AgentMessage, SessionRecord, SessionStore
from sessions_app.services import raw_edits
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.stores.base import SessionBusy, StoreUnavailable, UnknownItem
from sessions_app.stores.paged import whole_number
from sessions_app.stores.sqlalchemy.postgres import LIMIT_WAITING, in_plain_words

CHANGED_MEANWHILE = "This item changed since you opened it. Nothing was saved; this is the current version."


@contextmanager
def in_agents_tables() -> Iterator[None]:
    """Transaction that waits for agents for a few seconds at most. Raises StoreUnavailable, with a sentence."""
    store = SessionStore(
        name=registry.MAIN_STORE,
        sessions_table=settings.AGENT_SESSIONS_TABLE,
        messages_table=settings.AGENT_MESSAGES_TABLE,
    )
    with in_plain_words(store), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LIMIT_WAITING)
        yield


class AgentRows(ReasonedEdits, ShortList):
    """Admin pages of the agents' rows, without adding, for `raw_edit` only. Missing tables, busy sessions and
    data that must be kept are reported as sentences.
    """

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("sessions_app.raw_edit")

    has_change_permission = has_delete_permission = has_view_permission

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return self.answered(request, lambda: super(AgentRows, self).changelist_view(request, extra_context))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        def view() -> HttpResponse:
            return super(AgentRows, self).changeform_view(request, object_id, form_url, extra_context)

        return self.answered(request, view, before=lambda: self.before_form(request, object_id))

    def before_form(self, request: HttpRequest, object_id: str | None) -> None:
        """Hook for checks and events that are committed before the transaction of the form begins."""

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "POST":
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return self.answered(request, lambda: super(AgentRows, self).history_view(request, object_id, extra_context))

    def answered(
        self, request: HttpRequest, view: Callable[[], HttpResponse], *, before: Callable[[], None] = lambda: None
    ) -> HttpResponse:
        try:
            before()
            with in_agents_tables():
                response = view()
                if isinstance(response, SimpleTemplateResponse):
                    response.render()  # here, because lists are read by their template
                return response
        except StoreUnavailable as away:
            context = {**self.admin_site.each_context(request), "title": "Not possible now", "away": away}
            status = 409 if isinstance(away, SessionBusy) else 503
            return render(request, "admin/store_unavailable.html", context, status=status)
        except DeletionRefused as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(request.get_full_path())


class StoredItemForm(forms.ModelForm):  # type: ignore[type-arg]
    """Text of one item, with its fingerprint when the form was opened and the warnings that were shown."""

    message_data = forms.CharField(
        label="Stored text", strip=False, widget=AdminTextareaWidget({"rows": 24, "spellcheck": "false"})
    )
    opened_as = forms.CharField(widget=forms.HiddenInput)
    confirmed = forms.CharField(label="Save anyway", required=False, widget=forms.HiddenInput)

    class Meta:
        model = AgentMessage
        fields = ("message_data",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["opened_as"] = raw_edits.state_of(self.instance)
        self.initial["confirmed"] = ""

    def clean_message_data(self) -> str:
        # Browsers send line breaks as CR LF, whatever they were.
        text = self.cleaned_data["message_data"].replace("\r\n", "\n")
        try:
            raw_edits.check_text(self.instance, text)
        except raw_edits.NotAnItem as problem:
            raise forms.ValidationError(str(problem)) from problem
        return str(text)

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("opened_as") != raw_edits.state_of(self.instance):
            now = str(self.instance.message_data)
            raise forms.ValidationError(f"{CHANGED_MEANWHILE} {now[:2_000]}")
        text = self.cleaned_data.get("message_data")
        broken = raw_edits.what_breaks(self.instance, text) if text else []
        proof = proof_of_warning(broken)
        if broken and self.cleaned_data["confirmed"] != proof:
            self.fields["confirmed"].widget = forms.CheckboxInput({"value": proof}, check_test=lambda value: False)
            raise forms.ValidationError([*broken, "To save it anyway, tick the box below."])
        return self.cleaned_data


def record_named(text: str | None) -> SessionRecord | None:
    """Registry row of a session of the main store by its id in an address; also of an erased one."""
    try:
        record_id = UUID(text or "")
    except ValueError:
        return None
    return SessionRecord.objects.filter(pk=record_id, store__name=registry.MAIN_STORE).first()


class OfSession(OfOne):
    """Filter by session: `?record=<uuid>`."""

    title = "session"
    parameter_name = "record"

    def queryset(self, request: HttpRequest, queryset: QuerySet[AgentMessage]) -> QuerySet[AgentMessage]:
        record = record_named(self.value())
        return queryset.filter(session_id=record.session_id) if record else queryset.none()


@admin.register(AgentMessage)
class AgentMessageAdmin(AgentRows):
    form = StoredItemForm
    ordering = ("-id",)
    list_display = (
        "id",
        "short_session_id",
        "created_at",
        "size",
    )
    list_filter = (OfSession,)
    change_list_template = "admin/stored_items.html"
    readonly_fields = (
        "id",
        "session_id",
        "created_at",
        "size",
    )
    fields = (
        *readonly_fields,
        "message_data",
        "opened_as",
        "confirmed",
    )
    delete_confirmation_template = "admin/delete_stored_item.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentMessage]:
        """Rows without the text, which only the page of one item needs."""
        size = Func(F("message_data"), template="octet_length(%(expressions)s::text)", output_field=IntegerField())
        rows: QuerySet[AgentMessage] = super().get_queryset(request)
        return rows.defer("message_data").annotate(byte_count=size)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> AgentMessage | None:
        """Row of an item; before a change it is locked, its session first."""
        try:
            message_id = whole_number(object_id)
        except UnknownItem:
            return None
        may_lock = request.method == "POST" and self.has_view_permission(request)
        if may_lock and raw_edits.lock_message(message_id) is None:
            return None
        return super().get_object(request, object_id, from_field)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """False for an envelope, which cannot be written by hand, and for text that is too long for a form."""
        return super().has_change_permission(request, obj) and not (
            isinstance(obj, AgentMessage) and self.why_fixed(obj)
        )

    def why_fixed(self, message: AgentMessage) -> str:
        if len(str(message.message_data)) > raw_edits.EDITABLE_CHARACTERS:
            return "This item is too long to edit here."
        if raw_edits.is_sealed(message):
            return "This item is encrypted. It can be deleted but not edited."
        return ""

    def get_fields(self, request: HttpRequest, obj: AgentMessage | None = None) -> tuple[Any, ...]:
        return self.fields if self.has_change_permission(request, obj) else (*self.readonly_fields, "beginning")

    def get_readonly_fields(self, request: HttpRequest, obj: AgentMessage | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "beginning")

    def save_model(self, request: HttpRequest, obj: AgentMessage, form: Any, change: bool) -> None:
        raw_edits.save_text(obj, form.cleaned_data["message_data"], by=operator(request), why=why_of(request))

    def delete_model(self, request: HttpRequest, obj: AgentMessage) -> None:
        raw_edits.delete_message(obj, by=operator(request), why=why_of(request))

    def before_form(self, request: HttpRequest, object_id: str | None) -> None:
        """Records that the session of the item is opened. A refused form shows what was displayed already."""
        if request.method == "POST" or not self.has_view_permission(request):
            return
        try:
            message_id = whole_number(unquote(object_id or ""))
        except UnknownItem:
            return
        with in_agents_tables():
            record = raw_edits.record_of_message(message_id)
        if record:
            rules.opening(request, record.pk)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if request.method != "POST":
            raw_edits.show_message(context["original"], purpose=rules.purpose_of(request))
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    @method_decorator(recently_authenticated(doing="change a stored item"))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except DataError:
            messages.error(
                request,
                "Nothing was saved: the column of these items is of a type that cannot hold this text, for example"
                " a NUL or half a surrogate pair.",
            )
            return HttpResponseRedirect(request.get_full_path())

    @method_decorator(recently_authenticated(doing="delete a stored item"))
    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return self.answered(request, lambda: self.delete_if_meant(request, object_id, extra_context or {}))

    @transaction.atomic
    def delete_if_meant(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any]) -> HttpResponse:
        message = self.get_object(request, unquote(object_id))
        if message and self.has_delete_permission(request, message):
            broken = raw_edits.what_breaks(message, None)
            state, proof = raw_edits.state_of(message), proof_of_warning(broken)
            extra_context |= {"broken": broken, "opened_as": state, "proof": proof}
            refusal = ""
            if request.method == "POST" and request.POST.get("opened_as") != state:
                refusal = CHANGED_MEANWHILE
            elif request.method == "POST" and broken and request.POST.get("confirmed") != proof:
                refusal = "Nothing was deleted. Read the consequences, then tick the box to confirm."
            if refusal:
                messages.error(request, refusal)
                return HttpResponseRedirect(request.get_full_path())
        return super().delete_view(request, object_id, extra_context)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"record": record_named(request.GET.get("record"))})

    def get_urls(self) -> list[URLPattern]:
        delete_session = self.admin_site.admin_view(self.delete_session_view)
        return [
            path("session/<uuid:record_id>/delete/", delete_session, name="sessions_app_agentsession_delete"),
            *super().get_urls(),
        ]

    @method_decorator(recently_authenticated(doing="delete a stored session"))
    def delete_session_view(self, request: HttpRequest, record_id: UUID) -> HttpResponse:
        """Page that deletes a session with its items. Its columns are the SDK's book-keeping and are not edited."""
        if not self.has_delete_permission(request):
            raise PermissionDenied
        return self.answered(request, lambda: self.delete_session_if_meant(request, str(record_id)))

    @transaction.atomic
    def delete_session_if_meant(self, request: HttpRequest, record_id: str) -> HttpResponse:
        record = record_named(record_id)
        session = raw_edits.lock_session(record.session_id) if record else None
        if record is None or session is None:
            raise Http404("There is no such session in the store.")
        if request.method == "POST":
            raw_edits.delete_session(session, by=operator(request), why=why_of(request))
            LogEntry.objects.log_actions(cast(int, request.user.pk), [record], DELETION)
            messages.success(request, f"The stored {record} was deleted with its items.")
            return redirect("admin:sessions_app_agentmessage_changelist")
        context = {**self.admin_site.each_context(request), "title": f"Delete stored {record}", "record": record}
        return render(request, "admin/delete_stored_session.html", context)

    @admin.display(description="size", ordering=None)
    def size(self, message: AgentMessage) -> str:
        return filesizeformat(message.byte_count)  # type: ignore[attr-defined]  # annotated above

    @admin.display(description="session id")
    def short_session_id(self, message: AgentMessage) -> str:
        return shortened(message.session_id)

    @admin.display(description="beginning of the stored text")
    def beginning(self, message: AgentMessage) -> str:
        return f"{self.why_fixed(message)}\n{str(message.message_data)[:10_000]}"


def proof_of_warning(broken: list[str]) -> str:
    """Signature that only a page with these warnings contains."""
    return hashlib.blake2b("\n".join(broken).encode(), digest_size=16).hexdigest()


def shortened(session_id: str) -> str:
    return session_id if len(session_id) <= 80 else f"{session_id[:79]}…"
