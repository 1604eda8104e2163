"""Forms of requests of people."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils.timezone import localdate

from memadmin.accounts.approvals.forms import ShownForm
from memadmin.erasure import locators
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import APPROVE, HANDLE
from memadmin.erasure.querysets import SubjectRequestQuerySet
from memadmin.retention.holds.forms import target_of
from memadmin.runs.models import Run
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from memadmin.web.widgets import day, in_sentences, lines, select
from sessions_app.models import Subject, SubjectKind

Kind, State = SubjectRequest.Kind, SubjectRequest.State

OLDEST = timedelta(days=365)
LONGEST_NAME = 200
NUMBER = re.compile(r"(?:DSR-?)?0*([0-9]{1,18})", re.IGNORECASE)

NOT_BY_HAND = (SubjectRequest.Channel.COMMAND, SubjectRequest.Channel.FILE, SubjectRequest.Channel.REPLAY)
CHANNELS = [choice for choice in SubjectRequest.Channel.choices if choice[0] not in NOT_BY_HAND]


class ReceivedForm(forms.Form):
    """The day of receipt: today, unless another one is entered. Today is that of the person's time zone."""

    received_on = forms.DateField(
        label="Received on",
        widget=day(),
        help_text="Due one calendar month later.",
        error_messages={"required": "Enter the day of receipt.", "invalid": "Enter a date, such as 2026-11-21."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {"received_on": localdate(), **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)

    def clean_received_on(self) -> date:
        chosen: date = self.cleaned_data["received_on"]
        if not localdate() - OLDEST <= chosen <= localdate():
            raise forms.ValidationError("The day of receipt must be within the last year, and not in the future.")
        return chosen


class NewRequestForm(ReceivedForm):
    """A request as it was received."""

    kind = forms.ChoiceField(
        label="Request for",
        choices=in_sentences(Kind.choices),
        widget=select(),
        help_text="Restriction: nothing more is learned about the subject; what exists stays.",
        error_messages={"invalid_choice": "A request is for erasure, access or restriction."},
    )
    subject_kind = forms.ChoiceField(
        label="About",
        choices=in_sentences(SubjectKind.choices),
        widget=select(),
        error_messages={"invalid_choice": "A request is about a user, project or tenant."},
    )
    key = forms.CharField(
        label="ID of the subject",
        max_length=512,
        widget=forms.TextInput(
            {
                "class": "form-control",
                "autocomplete": "off",
                "spellcheck": "false",
                "data-suggest": "subject_kind",
            }
        ),
        help_text="As in the host application, or the UUID in the address of its page here.",
        error_messages={"required": "Enter the ID of the subject."},
    )
    channel = forms.ChoiceField(
        label="Received by",
        choices=in_sentences(CHANNELS),
        widget=select(),
        error_messages={"invalid_choice": "Choose how the request was received."},
    )
    ground = forms.ChoiceField(
        required=False,
        label="Ground of an erasure",
        choices=[("", "Choose for an erasure"), *in_sentences(SubjectRequest.Ground.choices)],
        widget=select(),
        help_text="GDPR article 17 (1).",
        error_messages={"invalid_choice": "Choose a ground from the list."},
    )
    known_as = forms.CharField(
        required=False,
        label="Other names, addresses and numbers",
        max_length=20_000,
        widget=lines(3, spellcheck="false", autocomplete="off"),
        help_text="One per line. The scan after the erasure looks for them, too. Encrypted, and deleted with the end of"
        " the case.",
    )
    note = forms.CharField(
        required=False,
        max_length=2_000,
        widget=lines(),
        help_text="For the case log. Deleted when an erasure is complete.",
    )

    def clean_known_as(self) -> list[str]:
        names = [line.strip() for line in self.cleaned_data["known_as"].splitlines() if line.strip()]
        if len(names) > locators.MOST:
            raise forms.ValidationError(f"At most {locators.MOST} lines.")
        for name in names:
            if not locators.SHORTEST <= len(name) <= LONGEST_NAME:
                raise forms.ValidationError(
                    f"Each line has {locators.SHORTEST} to {LONGEST_NAME} characters; shorter ones are everywhere."
                )
        return names

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("kind") == Kind.ERASURE:
            if "ground" in values and not values["ground"]:
                self.add_error("ground", "Choose the ground of the erasure.")
        else:
            values["ground"] = ""
        if values.get("subject_kind") and values.get("key"):
            try:
                found = target_of(values["subject_kind"], values["key"].strip())
                assert isinstance(found, Subject)  # target_of() finds others for other kinds
                values["subject"] = found
            except forms.ValidationError as problem:
                self.add_error("key", problem)
        return values


class IdentityForm(forms.Form):
    """The identity check, described by the person who made it."""

    note = forms.CharField(
        label="How it was checked",
        max_length=2_000,
        widget=lines(),
        help_text="For example: called back on the number on file. Do not copy an identity document here.",
        error_messages={"required": "Enter how the identity was checked."},
    )


class ApprovalForm(ShownForm):
    """The confirmation of the second person: a case's is the subject's ID, a batch's the number of its subjects.

    `read` and `confirmation` are labels of both fields.
    """

    is_read = forms.BooleanField(
        widget=forms.CheckboxInput({"class": "form-check-input"}),
        error_messages={"required": "Read the preview first, and what else is named here."},
    )
    typed = forms.CharField(
        max_length=512,
        widget=forms.TextInput({"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Type the confirmation."},
    )
    note = forms.CharField(required=False, max_length=2_000, widget=lines(), help_text="For whoever handles it.")

    def __init__(
        self,
        *args: Any,
        read: str = "I read the preview and the identity check",
        confirmation: str = "Type the subject's ID to confirm",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["is_read"].label, self.fields["typed"].label = read, confirmation

    def clean(self) -> dict[str, Any]:
        """The texts alone: that the box is ticked is all there is to know about it."""
        return {name: value for name, value in self.cleaned_data.items() if name != "is_read"}


class SendBackForm(forms.Form):
    """What the same form says of a rejection."""

    note = forms.CharField(required=False, max_length=2_000)


class NoteForm(forms.Form):
    """A text for the case log, or for who handles a batch."""

    note = forms.CharField(max_length=2_000, widget=lines(3), error_messages={"required": "Enter a note."})


class HandOverForm(forms.Form):
    """Form for the way in which a person received the copy of their data."""

    note = forms.CharField(
        label="How it was handed over",
        max_length=2_000,
        widget=lines(),
        help_text="For example: by registered letter to the address on file. Closes the case.",
        error_messages={"required": "Enter how it was handed over."},
    )


class RefuseForm(NoteForm):
    """Why a request is refused."""

    # No reason is preselected: it closes the case, and the person gets it.
    reason = forms.TypedChoiceField(
        coerce=SubjectRequest.Refusal,
        choices=[("", "Choose a reason"), *in_sentences(SubjectRequest.Refusal.choices)],
        widget=select(),
        error_messages={"required": "Choose a reason.", "invalid_choice": "Choose a reason from the list."},
    )
    field_order = ("reason", "note")


class ExtendForm(NoteForm):
    """A later due date, and why."""

    until = forms.DateField(
        label="New due date",
        widget=day(),
        error_messages={"required": "Enter a date.", "invalid": "Enter a date, such as 2026-11-21."},
    )
    field_order = ("until", "note")


class RequestFilters(FilterForm):
    """Number, kind and state of the requests in the list; without a state, open ones first.

    Open requests are few, so any column sorts them; closed ones come by number, the newest first.
    """

    table = ListTable(
        (
            ListColumn("case", "Case", ("number",), is_fixed=True, begins_descending=True),
            ListColumn("kind", "Kind", ("kind", "number"), classes="d-none d-md-table-cell"),
            ListColumn("subject", "Subject", classes="d-none d-md-table-cell"),
            ListColumn("state", "State", ("state", "number")),
            ListColumn("progress", "Progress", classes="d-none d-lg-table-cell"),
            ListColumn("opened", "Opened by", classes="d-none d-lg-table-cell"),
            ListColumn(
                "received", "Received", ("received_on", "number"), classes="d-none d-md-table-cell", is_extra=True
            ),
            ListColumn("due", "Due", ("due_on", "number"), classes="text-end d-none d-md-table-cell"),
        ),
        sort="due",
    )
    not_saved = frozenset(("number",))

    number = forms.CharField(
        required=False,
        max_length=24,
        widget=forms.TextInput(
            {"class": "form-control", "placeholder": "Case number", "aria-label": "Case number", "autocomplete": "off"}
        ),
    )
    kind = forms.ChoiceField(
        required=False,
        choices=[("", "Any kind"), *in_sentences(Kind.choices)],
        widget=select("Kind"),
        error_messages={"invalid_choice": "Unknown kind of a request."},
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", "Open first"), ("mine", "Needs me"), ("closed", "Closed")],
        widget=select("State"),
        error_messages={"invalid_choice": "Unknown state of a request."},
    )

    def clean_number(self) -> int | None:
        text = self.cleaned_data["number"].strip()
        if not text:
            return None
        if not (match := NUMBER.fullmatch(text)):
            raise forms.ValidationError("A case number is like DSR-0118.")
        return int(match[1])

    def apply(self, user: User) -> SubjectRequestQuerySet:
        """The requests of the list in the order of its pages; none when a filter is wrong."""
        if not self.is_valid():
            return SubjectRequest.objects.open().none()
        state = self.active.get("state", "")
        if state == "closed":
            # By number: the time of closing is empty in open ones, and no order for pages.
            return self.narrowed(SubjectRequest.objects.closed()).order_by("-number")
        found: SubjectRequestQuerySet = self.ordered(self.narrowed(SubjectRequest.objects.open()))
        return found.filter(needs(user)) if state == "mine" else found

    @property
    def is_sortable(self) -> bool:
        return self.active.get("state") != "closed"

    def closed(self) -> SubjectRequestQuerySet:
        """The closed requests below the open ones, the last one first."""
        requests = SubjectRequest.objects.closed()
        return self.narrowed(requests) if self.is_valid() and not self.active.get("state") else requests.none()

    def narrowed(self, requests: SubjectRequestQuerySet) -> SubjectRequestQuerySet:
        active = self.active
        if "number" in active:
            requests = requests.filter(number=active["number"])
        return requests.filter(kind=active["kind"]) if "kind" in active else requests

    def spelled_out(self, name: str, value: Any) -> str:
        if name == "number":
            return f"DSR-{value:04}"
        return super().spelled_out(name, value)


def needs(user: User) -> Q:
    """Condition of open requests that wait for this operator: own ones to handle, those of others to approve, and
    stopped erasures.
    """
    found = Q(pk__in=())
    if user.has_perm(HANDLE):
        found |= Q(state__in=(State.RECEIVED, State.CHECKED)) & (Q(opened_by=user) | Q(opened_by=None))
        found |= Q(run__state__in=(Run.State.STOPPED, Run.State.FAILED))
    if user.has_perm(APPROVE):
        # The requester cannot approve.
        found |= Q(state=State.AWAITING) & (~Q(approval__asked_by=user) | Q(approval__asked_by=None))
    return found
