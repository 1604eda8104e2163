"""Raw edits of memories and related rows, for people with `raw_edit` who may read memories.

The statement of a memory is only on its own page: no list, title or log entry contains it. Versions, decisions, rules
and recalls are read-only: triggers or verbs write them.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextareaWidget
from django.contrib.postgres.forms import SimpleArrayField
from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms.fields import InvalidJSONInput
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from memadmin.accounts.content_access import rules
from memadmin.accounts.raw_edits import ReasonedEdits, operator, why_of
from memadmin.client.proposal_results import is_storable
from memadmin.web.reauth import recently_authenticated
from memories_app import raw_edits
from memories_app.learning.proposing import check_data
from memories_app.models import (
    ApprovalRule,
    Distillation,
    Evidence,
    LearningStop,
    Memory,
    MemoryVersion,
    Recall,
    Review,
    Signal,
)
from memories_app.models.memories import LONGEST_STATEMENT, MOST_AGENTS
from memories_app.services.refusals import MemoryActionRefused, Unproposable
from sessions_app.admin.listing import OfOne, ShortList, ShownRows
from sessions_app.services.deletion_guards import DeletionRefused, refusals_explained

AROUND = {MemoryVersion: "versions", Evidence: "evidence", Signal: "signals", Review: "decisions"}

CHANGED_MEANWHILE = (
    "This memory changed since you opened it. Nothing was saved; reload the page and edit the current version."
)


def account(field: str) -> Any:
    """A column with the name of an account: Django would link to its page, which raw editors may not open."""

    @admin.display(description=field.replace("_", " "))
    def name(row: Model) -> Any:
        return getattr(row, field)

    return name


class RowsOfMemories(ReasonedEdits, ShortList):
    """Base class: rows cannot be added, and are only for raw editors who may read memories."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perms(["sessions_app.raw_edit", "memories_app.read_memory"])

    has_change_permission = has_delete_permission = has_view_permission

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class DataField(forms.JSONField):
    """A JSON field that returns errors as sentences, with the typed text."""

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except RecursionError:
            raise forms.ValidationError("The JSON is nested too deeply.") from None
        except ValueError:
            raise forms.ValidationError("The JSON has a number with thousands of digits.") from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except (ValueError, RecursionError):
            return InvalidJSONInput(data)

    def prepare_value(self, value: Any) -> Any:
        text = super().prepare_value(value)
        return text if is_storable(str(text)) else json.dumps(value)  # escapes lone surrogates


class Moment(forms.DateTimeField):
    """A time in one input: the two of Django admin have no labels."""

    def __init__(self, **given: Any) -> None:
        widget = forms.DateTimeInput({"size": 20})
        super().__init__(required=False, widget=widget, help_text="Format: 2026-11-22 09:00, in UTC.", **given)


class MemoryForm(forms.ModelForm):  # type: ignore[type-arg]
    statement = forms.CharField(max_length=LONGEST_STATEMENT, widget=AdminTextareaWidget({"rows": 4}))
    agents = SimpleArrayField(
        forms.CharField(max_length=200),
        delimiter="\n",
        max_length=MOST_AGENTS,
        required=False,
        widget=AdminTextareaWidget({"rows": 3}),
        help_text="One name per line. Leave empty for all agents.",
    )
    data = DataField(required=False, widget=AdminTextareaWidget({"rows": 4}))  # type: ignore[assignment]  # goes to fields
    confidence = forms.FloatField(min_value=0, max_value=1, step_size=0.01)
    valid_from = Moment()
    valid_until = Moment()
    opened_as = forms.CharField(widget=forms.HiddenInput)

    class Meta:
        model = Memory
        fields = raw_edits.EDITABLE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["opened_as"] = raw_edits.state_of(self.instance)

    def clean_statement(self) -> str:
        # Browsers send all line breaks as CR LF.
        return str(self.cleaned_data["statement"]).replace("\r\n", "\n")

    def clean_data(self) -> dict[str, Any]:
        value = self.cleaned_data["data"] or {}
        if not isinstance(value, dict):
            raise forms.ValidationError("Data must be a JSON object.")
        try:
            check_data(value)
        except Unproposable as problem:
            raise forms.ValidationError(str(problem)) from problem
        return value

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("opened_as") != self.initial["opened_as"]:
            raise forms.ValidationError(CHANGED_MEANWHILE)
        return self.cleaned_data


@admin.register(Memory)
class MemoryAdmin(RowsOfMemories):
    """Memories. Verbs and triggers write states and evidence; memories are retired or erased, not deleted."""

    form = MemoryForm
    ordering = ("-proposed_at", "-id")
    list_display = ("__str__", "kind", "status", "shared", "source", "version", "proposed_at")
    list_filter = ("status", "kind", "source")
    readonly_fields = (
        *("id", "subject", "status", "version", "is_verified", "provenance", "source", "extractor", "risk_flags"),
        *(
            "replaces",
            "merged_into",
            account("proposed_by"),
            "proposed_at",
            "awaiting_since",
            "decided_at",
            "around_it",
        ),
    )
    fields = (*readonly_fields, *raw_edits.EDITABLE, "opened_as")

    @admin.display(boolean=True, description="shared")
    def shared(self, memory: Memory) -> bool:
        return memory.is_shared

    @admin.display(description="related objects")
    def around_it(self, memory: Memory) -> SafeString:
        lists = (
            (reverse(f"admin:memories_app_{kind._meta.model_name}_changelist", query={"memory": str(memory.pk)}), name)
            for kind, name in AROUND.items()
        )
        return format_html_join(", ", '<a href="{}">{}</a>', lists)

    def view_on_site(self, memory: Memory) -> str:  # type: ignore[override]  # Django takes a method too
        return memory.get_absolute_url()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        """Memories without their statements, which only the page of one memory needs."""
        return super().get_queryset(request).defer("statement", "data", "embedding", "words")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Memory | None:
        """The memory; locked before a change, so that the form can be compared with the current row."""
        found: Memory | None = super().get_object(request, object_id, from_field)
        if found and request.method == "POST" and transaction.get_connection().in_atomic_block:
            Memory.objects.select_for_update(of=("self",)).only("pk").get(pk=found.pk)
            found = super().get_object(request, object_id, from_field)
        return found

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)

        class Answered(form):  # type: ignore[misc, valid-type]  # built by Django at runtime
            def clean(self) -> Any:
                cleaned = super().clean()
                if refusal := getattr(request, "refusal", ""):
                    self.add_error(None, refusal)
                return cleaned

        return Answered

    @method_decorator(recently_authenticated(doing="change a memory"))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method != "POST" and self.has_view_permission(request):
            rules.purpose_of(request)  # before the transaction of the event begins
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except MemoryActionRefused as problem:
            # Nothing was saved: the form is shown again with the input and the reason.
            request.refusal = str(problem)  # type: ignore[attr-defined]
            return super().changeform_view(request, object_id, form_url, extra_context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if request.method != "POST":
            raw_edits.show_memory(context["original"], purpose=rules.purpose_of(request))
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: bool) -> None:
        """Saves only changed fields: a job or a reviewer may have written others since the form was opened."""
        names = [name for name in form.changed_data if name in raw_edits.EDITABLE]
        if names:
            raw_edits.save_memory(obj, names, by=operator(request), why=why_of(request))


class OfOneMemory(OfOne):
    """`?memory=<uuid>`."""

    title = "memory"
    parameter_name = "memory"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        try:
            chosen = UUID(self.value() or "")
        except ValueError:
            return queryset.none()
        return queryset.filter(memory=chosen)


class OfMemory(ShownRows, RowsOfMemories):
    """Base class of rows related to a memory, shown with ids and times but without text."""

    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return RowsOfMemories.has_view_permission(self, request, obj)

    def view_on_site(self, row: Any) -> str | None:  # type: ignore[override]  # Django takes a method too
        return reverse("memories:memory", args=[row.memory_id]) if getattr(row, "memory_id", None) else None


@admin.register(MemoryVersion)
class VersionAdmin(OfMemory):
    """Versions: read-only; their text is erased on the memory's page."""

    list_filter = (OfOneMemory,)
    list_display = ("__str__", "author_kind", "created_at", "erased_at")
    fields = ("id", "memory", "number", "content_hash", "author_kind", "author_ref", "created_at", "erased_at")


class Deletable(OfMemory):
    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_view_permission(request, obj)

    @method_decorator(recently_authenticated(doing="delete the source of a memory"))
    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            with refusals_explained():
                return super().delete_view(request, object_id, extra_context)
        except DeletionRefused as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(request.get_full_path())


@admin.register(Evidence)
class EvidenceAdmin(Deletable):
    """Evidence: deletable but not editable, because a quote is an exact copy."""

    list_filter = (OfOneMemory,)
    list_display = ("__str__", "memory", "version", "speaker", "said_at", "gone_at")
    fields = (*("id", "memory", "version", "record_id", "item_id"), *("speaker", "quote_hash", "said_at", "gone_at"))


@admin.register(Signal)
class SignalAdmin(Deletable):
    list_display = ("__str__", "kind", "value", "created_at", "distilled_at")
    list_filter = (OfOneMemory,)
    fields = (
        *("id", "kind", "value", "subject", "memory", "record_id", "item_id", "agent"),
        *(account("given_by"), "created_at", "distilled_at"),
    )


@admin.register(Review)
class ReviewAdmin(OfMemory):
    ordering = ("-decided_at", "-id")
    list_filter = (OfOneMemory,)
    list_display = ("__str__", "decision", "reviewer", "rule", "decided_at", "undone_at")
    list_select_related = ("reviewer", "rule")
    fields = (
        *("id", "memory", "decision", "reason_code", account("reviewer"), "rule", "content_hash", "was_edited"),
        *("is_sample", "agreed", "decided_at", "undone_at"),
    )


@admin.register(ApprovalRule)
class RuleAdmin(OfMemory):
    ordering = ("name", "pk")
    list_display = ("__str__", "min_confidence", "sample_percent", "is_active", "created_at")
    fields = (
        *("id", "name", "kinds", "provenance", "sources", "extractor", "min_confidence", "sample_percent"),
        *("is_active", account("created_by"), "created_at"),
    )

    def view_on_site(self, rule: ApprovalRule) -> str:  # type: ignore[override]
        return reverse("reviews:rule", args=[rule.pk])


@admin.register(LearningStop)
class LearningStopAdmin(OfMemory):
    """Learning stops: set and removed on the subject's page."""

    list_display = ("__str__", "since")
    fields = ("subject", "since")

    def view_on_site(self, stop: LearningStop) -> str:  # type: ignore[override]
        return stop.subject.get_absolute_url()


@admin.register(Recall)
class RecallAdmin(OfMemory):
    list_display = ("__str__", "agent", "embedder", "token_budget", "token_count", "recalled_at")
    fields = ("id", "subject", "record_id", *list_display[1:])

    def view_on_site(self, recall: Recall) -> str:  # type: ignore[override]
        return reverse("memories:recall-detail", args=[recall.pk])


@admin.register(Distillation)
class DistillationAdmin(OfMemory):
    ordering = ("-began_at", "-id")
    list_display = ("__str__", "distiller", "began_at", "outcome", "model_calls", "proposal_count")
    fields = ("id", "record_id", *list_display[1:4], "ended_at", *list_display[4:], "input_tokens", "output_tokens")
