"""Forms about one memory: change of its text, retirement, erasure of a version, and the recall preview."""

from __future__ import annotations

from datetime import datetime

from django import forms

from memadmin.client.recalling import DEFAULT_BUDGET
from memadmin.web.masking import MASK
from memadmin.web.reasons import reason_field
from memadmin.web.widgets import day, lines
from memadmin.web.zones import end_of
from memories_app.audit_events import EraseReason, RetireReason
from memories_app.models.memories import LONGEST_STATEMENT
from memories_app.tool_provenance import LONGEST_TOOL
from sessions_app.models import SubjectAlias


class ReadForm(forms.Form):
    """The text read before a decision, by its hash, and the version of the memory that it would change; `shown` is the
    digest of all that a second person read.
    """

    content_hash = forms.CharField(max_length=64)
    shown = forms.CharField(max_length=64, required=False)
    base_version = forms.IntegerField(required=False, min_value=1)
    note = forms.CharField(max_length=1000, required=False)


class StatementForm(ReadForm):
    """A new text for a memory."""

    statement = forms.CharField(
        label="Statement",
        max_length=LONGEST_STATEMENT,
        widget=forms.Textarea({"class": "form-control", "rows": 4, "autofocus": True}),
        error_messages={
            "required": "A memory cannot be empty.",
            "max_length": f"A memory has at most {LONGEST_STATEMENT:,} characters.",
        },
    )

    def clean_statement(self) -> str:
        """The text, which must not contain a mask in place of the masked value."""
        statement = str(self.cleaned_data["statement"])
        if MASK.search(statement):
            raise forms.ValidationError("Replace the masked value: otherwise the mask itself would be stored.")
        return statement


class RetireForm(forms.Form):
    reason = reason_field(RetireReason)


class ToolForm(forms.Form):
    """An untrusted tool, by its name."""

    tool = forms.CharField(
        max_length=LONGEST_TOOL,
        label="Name of the tool",
        widget=forms.TextInput({"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
        error_messages={
            "required": "Enter a tool name.",
            "max_length": f"Names of tools have at most {LONGEST_TOOL} characters.",
        },
    )


class EraseForm(forms.Form):
    reason = reason_field(EraseReason)


class RecallForm(forms.Form):
    """Input of the recall preview: message, subject and token budget."""

    query = forms.CharField(
        label="Customer message",
        max_length=4000,
        strip=True,
        widget=lines(),
        error_messages={"required": "Enter a message to the agent."},
    )
    subject = forms.CharField(
        label="Subject",
        required=False,
        max_length=512,
        widget=forms.TextInput(
            {
                "class": "form-control",
                "placeholder": "subject ID (optional)",
                "autocomplete": "off",
                "data-suggest": "",
            }
        ),
    )
    agent = forms.CharField(
        label="Agent", required=False, max_length=200, widget=forms.TextInput({"class": "form-control"})
    )
    budget = forms.IntegerField(
        label="Token budget",
        min_value=1,
        max_value=20_000,
        initial=DEFAULT_BUDGET,
        widget=forms.NumberInput({"class": "form-control"}),
    )
    as_of = forms.DateField(
        label="As of",
        required=False,
        widget=day(),
    )

    def clean_query(self) -> str:
        return str(self.cleaned_data["query"]).replace("\0", " ")

    def clean_subject(self) -> SubjectAlias | None:
        """The subject with this id; of several kinds with the same id, the user."""
        key = self.cleaned_data["subject"]
        if not key:
            return None
        found = SubjectAlias.objects.select_related("subject").filter(key=key).order_by("-kind", "pk").first()
        if found is None:
            raise forms.ValidationError("There is no subject with this ID.")
        return found

    def clean_as_of(self) -> datetime | None:
        """The end of that day."""
        day = self.cleaned_data["as_of"]
        return None if day is None else end_of(day)
