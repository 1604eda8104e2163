"""Admin pages of subjects, session records and stores. Sessions are named by their registry row, and no content is
shown.

Rows that an action of the console changes are read-only here: saving them here would bypass its rules. There is no
search, which would put a customer's id into an address; the console's own search leads to each of these.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memadmin.accounts.raw_edits import ReasonedEdits, operator, why_of
from memadmin.web.reauth import recently_authenticated
from sessions_app import audit_events, registry
from sessions_app.admin.listing import ShortList, ShownRows
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectAlias
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.services.sessions import SessionChangeDetails, attach_sessions, detach_sessions, update_records
from sessions_app.services.store_config import StoreStillNeeded, check_unneeded, delete_store
from sessions_app.services.subjects import SubjectWasErased


class AliasInline(ShownRows, admin.TabularInline):  # type: ignore[type-arg]
    model = SubjectAlias
    extra = 0


@admin.register(Subject)
class SubjectAdmin(ShownRows, ReasonedEdits, ShortList):
    """Subjects, read-only: ids, merging and erasing are actions of the subject's own page."""

    inlines = (AliasInline,)
    ordering = ("pk",)
    list_display = ("__str__", "known_as", "created_at", "is_merged")
    fields = ("id", "created_at", "merged_into")

    def view_on_site(self, subject: Subject) -> str:  # type: ignore[override]  # Django takes a method too
        return subject.get_absolute_url()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Subject]:
        return super().get_queryset(request).prefetch_related("aliases")

    @admin.display(description="known as")
    def known_as(self, subject: Subject) -> str:
        return subject.label

    @admin.display(boolean=True, description="merged")
    def is_merged(self, subject: Subject) -> bool:
        return subject.merged_into_id is not None


class ErasedMeanwhile(Exception):
    def __init__(self) -> None:
        super().__init__("This session was erased since you opened it. Nothing was saved.")


@admin.register(SessionRecord)
class SessionRecordAdmin(ReasonedEdits, ShortList):
    """Session records. A trigger writes them, so they are neither added nor deleted: without its record a session has
    no fence.
    """

    ordering = ("-last_activity_at", "-id")
    list_display = ("__str__", "store", "short_session_id", "subject", "ticket", "last_activity_at")
    list_select_related = ("store", "subject")
    list_filter = ("store",)
    raw_id_fields = ("subject",)
    readonly_fields = (
        "id",
        "store",
        "session_id",
        "subject_source",
        "is_encrypted",
        "has_plain_items",
        "finding_count",
        "registered_at",
        "last_activity_at",
        "erased_at",
        "stored_items",
    )

    def get_fields(self, request: HttpRequest, obj: SessionRecord | None = None) -> list[Any]:
        fields = ["id", "store", "session_id", "subject", "ticket", "agent", "labels", *self.readonly_fields[3:]]
        # Raw edits reach into the main store alone.
        if not (request.user.has_perm("sessions_app.raw_edit") and obj and obj.store.name == registry.MAIN_STORE):
            fields.remove("stored_items")
        return fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: SessionRecord | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: SessionRecord | None = None) -> bool:
        return super().has_change_permission(request, obj) and not (obj and obj.erased_at)

    @method_decorator(recently_authenticated(doing="change a session on record"))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except (ErasedMeanwhile, DeletionRefused, SubjectWasErased) as problem:
            messages.error(request, str(problem))
            return HttpResponseRedirect(request.get_full_path())

    def save_model(
        self, request: HttpRequest, obj: SessionRecord, form: ModelForm[SessionRecord], change: bool
    ) -> None:
        """Saves only changed columns: an agent may have written the others since the form was opened."""
        if not form.has_changed():
            return
        by, why = operator(request), why_of(request)
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name != "subject"}
        if changes and not update_records(
            [obj], SessionChangeDetails(audit_events.SESSION_EDITED, by, why=why), **changes
        ):
            raise ErasedMeanwhile
        if "subject" in form.changed_data:
            if obj.subject:
                attached = attach_sessions([obj], obj.subject, by=by, why=why)
            else:
                attached = detach_sessions([obj], by=by, why=why)
            if not attached:
                raise ErasedMeanwhile

    @admin.display(description="stored items")
    def stored_items(self, record: SessionRecord) -> SafeString:
        address = reverse("admin:sessions_app_agentmessage_changelist", query={"record": str(record.pk)})
        return format_html('<a href="{}">Raw edits of its items</a>', address)

    @admin.display(description="session id")
    def short_session_id(self, record: SessionRecord) -> str:
        return record.session_id if len(record.session_id) <= 80 else f"{record.session_id[:79]}…"


class PatternInline(ShownRows, admin.TabularInline):  # type: ignore[type-arg]
    model = SessionIdPattern
    extra = 0


@admin.register(SessionStore)
class SessionStoreAdmin(ShownRows, ReasonedEdits, ShortList):
    """Stores. `attach_store` sets tables, zone and mode together with their triggers; patterns are edited on the
    store's own page, which applies them to its sessions again.
    """

    inlines = (PatternInline,)
    list_display = ("name", "kind", "sessions_table", "messages_table", "fence_mode", "attached_at")
    fields = (*list_display[:4], "writer_timezone", "fence_mode", "encryption_key", "attached_at", "created_at")

    def view_on_site(self, store: SessionStore) -> str:  # type: ignore[override]  # Django takes a method too
        return reverse("sessions:store", args=[store.name])

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super(ShownRows, self).has_delete_permission(request, obj)

    @method_decorator(recently_authenticated(doing="remove a store"))
    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuses before Django collects all related rows, which may be millions."""
        store = self.get_object(request, unquote(object_id))
        try:
            if store and self.has_delete_permission(request, store):
                check_unneeded(store)
            return super().delete_view(request, object_id, extra_context)
        except StoreStillNeeded as problem:
            messages.error(request, str(problem))
            return redirect("admin:sessions_app_sessionstore_change", unquote(object_id))

    def delete_model(self, request: HttpRequest, obj: SessionStore) -> None:
        delete_store(obj, by=operator(request), why=why_of(request))
