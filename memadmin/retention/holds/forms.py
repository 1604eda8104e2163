"""Forms of legal holds."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import Permission, User
from django.db.models import Q, QuerySet
from django.utils.timezone import now

from memadmin.retention.models import LegalHold
from memadmin.retention.models.querysets import LegalHoldQuerySet
from memadmin.web.addresses import uuid_in
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from sessions_app.models import SessionRecord, Subject, SubjectKind
from sessions_app.services.subjects import UnknownKey, known_subject

SESSION, LABEL = "session", "label"
COVERS = [*SubjectKind.choices, (SESSION, "session"), (LABEL, "label")]

REVIEW_AFTER = timedelta(days=90)
LONGEST = timedelta(days=5 * 365)


def owners() -> QuerySet[User]:
    """Active users who may place holds, by name."""
    permission = Permission.objects.get(content_type__app_label="retention", codename="place_hold")
    may_place = Q(groups__permissions=permission) | Q(user_permissions=permission) | Q(is_superuser=True)
    return User.objects.filter(may_place, is_active=True).distinct().order_by("username")


class HoldReviewForm(forms.Form):
    """Owner and review date of a hold."""

    owner = forms.ModelChoiceField(
        User.objects.none(),
        widget=forms.Select({"class": "form-select"}),
        error_messages={
            "required": "Choose an owner.",
            "invalid_choice": "This person cannot own a hold. Choose one from the list.",
        },
    )
    review_on = forms.DateField(
        label="Review date",
        widget=forms.DateInput({"class": "form-control", "type": "date"}, format="%Y-%m-%d"),
        error_messages={"required": "Choose a review date.", "invalid": "Enter a date, such as 2027-02-23."},
    )

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        kwargs["initial"] = {"owner": by.pk, "review_on": now().date() + REVIEW_AFTER, **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)
        self.fields["owner"].queryset = owners()  # type: ignore[attr-defined]

    def clean_review_on(self) -> date:
        chosen: date = self.cleaned_data["review_on"]
        if not now().date() < chosen <= now().date() + LONGEST:
            raise forms.ValidationError("The review date must be in the future, and within five years.")
        return chosen


class CoverForm(forms.Form):
    """Subject, session or label that a new hold covers."""

    covers = forms.ChoiceField(
        label="Cover",
        choices=[(value, str(name).capitalize()) for value, name in COVERS],
        widget=forms.Select({"class": "form-select"}),
        error_messages={"invalid_choice": "A hold covers a user, project, tenant, session or label."},
    )
    value = forms.CharField(
        label="ID or label",
        max_length=512,
        widget=forms.TextInput(
            {"class": "form-control", "autocomplete": "off", "spellcheck": "false", "data-suggest": "covers"}
        ),
        help_text="As in the host application, or the UUID in the address of its page here. Later sessions of a subject"
        " or with the label are covered too.",
        error_messages={"required": "Enter an ID or a label."},
    )

    def clean(self) -> dict[str, Any]:
        covers, value = self.cleaned_data.get("covers"), self.cleaned_data.get("value", "").strip()
        if covers and value:
            try:
                self.cleaned_data["target"] = target_of(covers, value)
            except forms.ValidationError as problem:
                self.add_error("value", problem)
        return self.cleaned_data


class PlaceHoldForm(CoverForm, HoldReviewForm):
    """A new hold: what it covers, and why."""

    reason = forms.CharField(
        max_length=500,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
        error_messages={"required": "A hold needs a reason."},
    )
    field_order = ("covers", "value", "reason", "owner", "review_on")


def target_of(covers: str, value: str) -> Subject | SessionRecord | str:
    """What a hold shall cover. Raises ValidationError with a sentence."""
    if "\0" in value:
        raise forms.ValidationError("An ID or label has no NUL character.")
    if covers == LABEL:
        if len(value) > 50:
            raise forms.ValidationError("A label has at most 50 characters.")
        return value
    known = uuid_in(value)
    if covers == SESSION:
        records = SessionRecord.objects.on_record()
        found = list(records.filter(pk=known) if known else ()) or list(records.filter(session_id=value)[:2])
        if len(found) > 1:
            raise forms.ValidationError(
                "Several stores have a session with this ID. Enter the UUID in the address of the session's page."
            )
        if not found:
            raise forms.ValidationError("There is no session with this ID.")
        return found[0]
    subject = Subject.objects.filter(pk=known, aliases__kind=covers).first() if known else None
    try:
        return subject or known_subject(covers, value)
    except UnknownKey as unknown:
        raise forms.ValidationError(str(unknown)) from None


class ReleaseForm(forms.Form):
    """Why a hold can be released."""

    reason = forms.CharField(
        max_length=500,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
        error_messages={"required": "A release needs a reason."},
    )


class HoldFilters(FilterForm):
    """State of the holds in the list; without one those in force. There are few, so several columns sort them."""

    table = ListTable(
        (
            ListColumn("hold", "Hold", ("number", "id"), is_fixed=True, begins_descending=True),
            ListColumn("covers", "Covers"),
            ListColumn("review", "Review", ("review_on", "id")),
            ListColumn("owner", "Owner"),
            ListColumn("placed", "Placed", ("placed_at", "id"), is_extra=True, begins_descending=True),
        ),
        sort="-hold",
    )

    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", "In force"),
            ("decide", "Needs a decision"),
            ("due", "Review due"),
            ("released", "Released"),
        ],
        widget=forms.Select({"class": "form-select", "aria-label": "State"}),
        error_messages={"invalid_choice": "Unknown state of a hold."},
    )

    def apply(self) -> LegalHoldQuerySet:
        """The holds in this state; none when the filter is wrong."""
        holds = LegalHold.objects.all()
        if not self.is_valid():
            return holds.in_force().none()
        state = self.active.get("state", "")
        found = {"decide": holds.to_decide, "due": holds.due_for_review, "released": holds.released}.get(
            state, holds.in_force
        )()
        in_order: LegalHoldQuerySet = self.ordered(found)
        return in_order
