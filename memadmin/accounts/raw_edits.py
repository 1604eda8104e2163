"""Required reasons of raw edits: a part of each form, checked before a change.

Requests without a change need none. A form without a reason is shown again with the input and an error; a request
without a form, such as an action on a list, gets a page that asks for the reason and keeps the submitted values. The
code is stored in the event of the change, the explanation beside it, where it can be erased.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.admin.actions import delete_selected
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from memadmin import audit
from memadmin.audit.audit_events import RAW_EDIT_MADE
from memadmin.audit.log.recording import MOST_SHOWN

PREFIX = "why"


class WhyForm(forms.Form):
    """The reason, part of every form of raw edits."""

    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *audit.EditReason.choices],
        error_messages={
            "required": "Choose a reason.",
            "invalid_choice": "This reason does not exist. Choose one from the list.",
        },
    )
    explanation = forms.CharField(
        label="Explanation",
        max_length=2_000,
        required=False,
        widget=forms.Textarea({"rows": 2, "cols": 60}),
        help_text="Shown with the event in the audit log; compliance staff can erase it.",
    )


class WhyMissing(Exception):
    """A change without a reason; nothing of it is kept."""

    def __init__(self) -> None:
        super().__init__("Nothing has been changed yet. A raw edit needs a reason.")


def why_form(request: HttpRequest) -> WhyForm:
    """The only form of this request, so that the page shows the one that was checked."""
    form: WhyForm | None = getattr(request, "why_form", None)
    if form is None:
        is_sent = f"{PREFIX}-reason" in request.POST
        form = WhyForm(request.POST if is_sent else None, prefix=PREFIX)
        request.why_form = form  # type: ignore[attr-defined]
    return form


def demanded_form(request: HttpRequest) -> WhyForm:
    """The form of a request that must contain a reason."""
    form = why_form(request)
    if not form.is_bound:
        form = request.why_form = WhyForm(request.POST, prefix=PREFIX)  # type: ignore[attr-defined]
    return form


def why_of(request: HttpRequest) -> audit.Why:
    """The stated reason. Raises WhyMissing, which must roll the change back."""
    form = demanded_form(request)
    if not form.is_valid():
        raise WhyMissing
    return audit.Why(form.cleaned_data["reason"], form.cleaned_data["explanation"])


class ReasonedEdits(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Base class for all governed models in raw edits (RawEditsSite.check): every change has an event with a reason.

    Overrides of `save_model` or `delete_model` that call a verb pass it `why_of(request)`, which the verb records.
    """

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)

        class ReasonedForm(form):  # type: ignore[misc, valid-type]  # built by Django at runtime
            def clean(self) -> Any:
                cleaned = super().clean()
                if not demanded_form(request).is_valid():
                    self.add_error(None, str(WhyMissing()))
                return cleaned

        return ReasonedForm

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        response: Any = super().render_change_form(request, context, *args, **kwargs)
        shown = response.context_data
        may_save = shown["has_add_permission"] if shown["add"] else shown["has_change_permission"]
        shown["asks_why"] = may_save or shown["has_editable_inline_admin_formsets"]
        if shown["errors"]:
            response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return cast(HttpResponse, response)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change and not form.has_changed():
            return super().save_model(request, obj, form, change)
        why = why_of(request)
        # Around it, because an added row has its id only afterwards.
        with audit.recording(RAW_EDIT_MADE, by=operator(request)) as event:
            super().save_model(request, obj, form, change)
            event.target, event.counters = obj, {"rows": 1}
            event.reason_code, event.details = why.code, why.details

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        if change and not form.has_changed() and any(formset.has_changed() for formset in formsets):
            self.record_edit(request, target=form.instance)
        super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.record_edit(request, target=obj, counters={"rows": 1})
        super().delete_model(request, obj)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        return {name: (self.reasoned(action), name, text) for name, (action, _, text) in actions.items()}

    def reasoned(self, action: Callable[..., Any]) -> Callable[..., HttpResponseBase | None]:
        @wraps(action)
        def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
            if action is delete_selected and not request.POST.get("post"):
                return action(model_admin, request, queryset)  # the confirmation page
            with transaction.atomic():
                shown = list(queryset[:MOST_SHOWN])
                self.record_edit(request, shown=shown, counters={"rows": queryset.count()})
                return action(model_admin, request, queryset)

        return run

    def record_edit(self, request: HttpRequest, **columns: Any) -> None:
        """Records the event of an edit, with the reason of the form."""
        why = why_of(request)
        audit.record(RAW_EDIT_MADE, by=operator(request), reason_code=why.code, details=why.details, **columns)


def operator(request: HttpRequest) -> User:
    return cast(User, request.user)
