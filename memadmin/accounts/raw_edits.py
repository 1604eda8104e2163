"""Raw edits have a reason: asked for in each form, and looked at where something is about to change.

What changes nothing asks for none. A form that leaves it out comes back with what was typed and with the sentence; what
has no form to come back to, such as an action on a list, becomes a page of its own that asks, and keeps what was sent.
The code goes into the event of the change and the words beside it, where they can be erased.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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
    """Stands in every form of raw edits."""

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
    """Something was about to change without a reason; nothing of it is kept."""

    def __init__(self) -> None:
        super().__init__("Nothing has been changed yet. A raw edit needs a reason.")


def why_form(request: HttpRequest) -> WhyForm:
    """The one form of this request, so that what was looked at is what the page shows."""
    form: WhyForm | None = getattr(request, "why_form", None)
    if form is None:
        is_sent = f"{PREFIX}-reason" in request.POST
        form = WhyForm(request.POST if is_sent else None, prefix=PREFIX)
        request.why_form = form  # type: ignore[attr-defined]
    return form


def demanded_form(request: HttpRequest) -> WhyForm:
    """The same, of a request that has to bring a reason."""
    form = why_form(request)
    if not form.is_bound:
        form = request.why_form = WhyForm(request.POST, prefix=PREFIX)  # type: ignore[attr-defined]
    return form


def why_of(request: HttpRequest) -> audit.Why:
    """Raises WhyMissing: the transaction of the change has to go with it."""
    form = demanded_form(request)
    if not form.is_valid():
        raise WhyMissing
    return audit.Why(form.cleaned_data["reason"], form.cleaned_data["explanation"])


class ReasonedEdits(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """For every governed model in raw edits (RawEditsSite.check): no change without an event that says why.

    Whoever overrides `save_model` or `delete_model` by a verb gives the verb `why_of(request)`, which records it.
    """

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)

        class ReasonedForm(form):  # type: ignore[misc, valid-type]  # only Django knows which
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
        return cast(HttpResponse, response)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change and not form.has_changed():
            return super().save_model(request, obj, form, change)
        why = why_of(request)
        # Around it, because a row that is added has its id only afterwards.
        with audit.recording(RAW_EDIT_MADE, by=operator(request)) as event:
            super().save_model(request, obj, form, change)
            event.target, event.counters = obj, {"rows": 1}
            event.reason_code, event.details = why.code, why.details

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        if change and not form.has_changed() and any(formset.has_changed() for formset in formsets):
            self.tell(request, target=form.instance)
        super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.tell(request, target=obj, counters={"rows": 1})
        super().delete_model(request, obj)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        return {name: (self.reasoned(action), name, text) for name, (action, _, text) in actions.items()}

    def reasoned(self, action: Callable[..., Any]) -> Callable[..., HttpResponseBase | None]:
        @wraps(action)
        def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
            if action is delete_selected and not request.POST.get("post"):
                return action(model_admin, request, queryset)  # which only asks
            with transaction.atomic():
                shown = list(queryset[:MOST_SHOWN])
                self.tell(request, shown=shown, counters={"rows": queryset.count()})
                return action(model_admin, request, queryset)

        return run

    def tell(self, request: HttpRequest, **columns: Any) -> None:
        why = why_of(request)
        audit.record(RAW_EDIT_MADE, by=operator(request), reason_code=why.code, details=why.details, **columns)


def operator(request: HttpRequest) -> User:
    return cast(User, request.user)
