"""Forms of batches."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.utils.timezone import now

from memadmin.erasure.batches.outcomes import LineOutcome, lines_with_outcome
from memadmin.erasure.batches.parsing import LONGEST_KEY, MOST_BYTES, MOST_LINES
from memadmin.erasure.forms import OLDEST, day, in_sentences, lines, select
from memadmin.erasure.models import BatchLine, RequestBatch, SubjectRequest
from memadmin.web.filters import FilterForm
from sessions_app.models import SubjectKind

LINE_OR_CASE = re.compile(r"(DSR-?)?0*([0-9]{1,18})", re.IGNORECASE)


class UploadForm(forms.Form):
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
    received_on = forms.DateField(
        label="Received on",
        widget=day(),
        help_text="Every case is due one calendar month later.",
        error_messages={"required": "Enter the day of receipt.", "invalid": "Enter a date, such as 2026-11-21."},
    )
    note = forms.CharField(
        label="Note for who approves",
        max_length=2_000,
        widget=lines(),
        help_text="Where the list comes from, and how the people were identified. Deleted when the batch is closed.",
        error_messages={"required": "Enter where the list comes from, and how the people were identified."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {"received_on": now().date(), **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)

    def clean_file(self) -> UploadedFile[Any]:
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > MOST_BYTES:
            raise forms.ValidationError("The file is larger than 1 MB. Split it into several.")
        return file

    def clean_received_on(self) -> date:
        chosen: date = self.cleaned_data["received_on"]
        if not now().date() - OLDEST <= chosen <= now().date():
            raise forms.ValidationError("The day of receipt must be within the last year, and not in the future.")
        return chosen


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


class BatchApprovalForm(forms.Form):
    """The confirmation of the second person."""

    is_read = forms.BooleanField(
        label="I read the preview and the broken lines",
        widget=forms.CheckboxInput({"class": "form-check-input"}),
        error_messages={"required": "Read the preview and the broken lines first."},
    )
    typed = forms.CharField(
        label="Type the confirmation",
        max_length=40,
        widget=forms.TextInput({"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Type the confirmation."},
    )


class SendBackForm(forms.Form):
    note = forms.CharField(
        max_length=1_000, widget=lines(3), error_messages={"required": "Enter why the batch is sent back."}
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
        widget=select(**{"aria-label": "Outcome"}),
        error_messages={"invalid_choice": "Unknown outcome."},
    )

    def clean_which(self) -> str:
        text: str = self.cleaned_data["which"].strip().replace(",", "")
        if text and not LINE_OR_CASE.fullmatch(text):
            raise forms.ValidationError("A line is a number, a case is like DSR-0118.")
        return text

    def apply(self, batch: RequestBatch) -> QuerySet[BatchLine]:
        """Lines whose case is open or closed, the last one first; those to do only if they are asked for."""
        found = lines_with_outcome(batch).order_by("-number", "-id")
        if not self.is_valid():
            return found.none()
        active = self.active
        if match := LINE_OR_CASE.fullmatch(active.get("which", "")):
            number = int(match[2])
            found = found.filter(request__number=number) if match[1] else found.filter(number=number)
        if "outcome" in active:
            return found.filter(outcome=active["outcome"])
        return found if "which" in active else found.filter(request__isnull=False)

    def spelled_out(self, name: str, value: Any) -> str:
        if name == "which":
            return str(value) if str(value).upper().startswith("DSR") else f"line {value}"
        return str(LineOutcome(value).label)
