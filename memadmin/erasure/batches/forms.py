"""Forms of batches."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.db.models import QuerySet

from memadmin.erasure.batches.outcomes import LineOutcome, lines_with_outcome
from memadmin.erasure.batches.parsing import LONGEST_KEY, MOST_LINES
from memadmin.erasure.forms import ReceivedForm
from memadmin.erasure.models import BatchLine, RequestBatch, SubjectRequest
from memadmin.web.filters import FilterForm
from memadmin.web.widgets import in_sentences, lines, select
from sessions_app.models import SubjectKind

LINE_OR_CASE = re.compile(r"(DSR-?)?0*([0-9]{1,18})", re.IGNORECASE)


class UploadForm(ReceivedForm):
    """A file with the people to erase."""

    file = forms.FileField(
        label="CSV file",
        widget=forms.FileInput({"class": "form-control", "accept": ".csv,text/csv,text/plain"}),
        help_text="Columns key, kind and note, with commas or semicolons, in UTF-8. The last two may be missing."
        f" At most {MOST_LINES:,} lines and 1 MB. The file is not kept.",
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty.",
            "invalid": "Choose a file.",
            "missing": "Choose a file.",
        },
    )
    ground = forms.ChoiceField(
        label="Ground",
        choices=[("", "Choose"), *in_sentences(SubjectRequest.Ground.choices)],
        widget=select(),
        help_text="GDPR article 17 (1), for every line.",
        error_messages={"required": "Choose the ground.", "invalid_choice": "Choose a ground from the list."},
    )
    note = forms.CharField(
        label="Note for who approves",
        max_length=2_000,
        widget=lines(),
        help_text="Where the list comes from, and how the people were identified. Deleted when the batch is closed.",
        error_messages={"required": "Enter where the list comes from, and how the people were identified."},
    )


class CorrectForm(forms.Form):
    """Another key for a broken line."""

    key = forms.CharField(
        label="ID of the subject",
        max_length=LONGEST_KEY,
        widget=forms.TextInput({"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Enter the ID of the subject."},
    )
    kind = forms.ChoiceField(
        label="Kind",
        choices=in_sentences(SubjectKind.choices),
        widget=select(),
        error_messages={"invalid_choice": "A line is about a user, project or tenant."},
    )


class OutcomeFilters(FilterForm):
    """Line or case, and outcome. Keys are no filter: addresses are written to logs."""

    which = forms.CharField(
        required=False,
        max_length=24,
        widget=forms.TextInput(
            {
                "class": "form-control",
                "placeholder": "Line or case",
                "aria-label": "Line or case",
                "autocomplete": "off",
            }
        ),
    )
    outcome = forms.ChoiceField(
        required=False,
        choices=[("", "Any outcome"), *in_sentences(LineOutcome.choices)],
        widget=select("Outcome"),
        error_messages={"invalid_choice": "Unknown outcome."},
    )

    def clean_which(self) -> str:
        text: str = self.cleaned_data["which"].strip().replace(",", "")
        if text and not LINE_OR_CASE.fullmatch(text):
            raise forms.ValidationError("A line is a number, a case is like DSR-0118.")
        return text

    def apply(self, batch: RequestBatch) -> QuerySet[BatchLine]:
        """Lines that were begun or left out, the last one first; those to do only if they are asked for."""
        found = lines_with_outcome(batch).order_by("-number", "-id")
        if not self.is_valid():
            return found.none()
        active = self.active
        if match := LINE_OR_CASE.fullmatch(active.get("which", "")):
            number = int(match[2])
            found = found.filter(request__number=number) if match[1] else found.filter(number=number)
        if "outcome" in active:
            return found.filter(outcome=active["outcome"])
        return found if "which" in active else found.exclude(request__isnull=True, problem="")

    def spelled_out(self, name: str, value: Any) -> str:
        if name == "which":
            return str(value) if str(value).upper().startswith("DSR") else f"line {value}"
        return str(LineOutcome(value).label)
