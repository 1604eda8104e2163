"""What people say about memories, as forms that refuse nonsense with a sentence."""

from __future__ import annotations

from datetime import UTC, datetime, time

from django import forms

from memadmin.client.recalling import DEFAULT_BUDGET
from memories_app.audit_events import EraseReason, RetireReason
from memories_app.tool_provenance import LONGEST_TOOL
from sessions_app.models import SubjectAlias


class RetireForm(forms.Form):
    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *RetireReason.choices],
        widget=forms.Select({"class": "form-select"}),
        error_messages={
            "required": "Choose a reason.",
            "invalid_choice": "This reason does not exist. Choose one from the list.",
        },
    )


class ToolForm(forms.Form):
    """Which tool is not to be trusted, by the name under which agents call it."""

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
    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *EraseReason.choices],
        widget=forms.Select({"class": "form-select"}),
        error_messages={
            "required": "Choose a reason.",
            "invalid_choice": "This reason does not exist. Choose one from the list.",
        },
    )


class FeedbackForm(forms.Form):
    """A thumb, a note, or both; for those who learn from a session."""

    value = forms.TypedChoiceField(
        required=False,
        choices=[("1", "right"), ("-1", "wrong")],
        coerce=int,
        empty_value=None,
        error_messages={"invalid_choice": "Choose right or wrong."},
    )
    note = forms.CharField(
        label="What the agent should do differently or remember",
        required=False,
        max_length=2000,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
    )

    def clean_note(self) -> str:
        return str(self.cleaned_data["note"]).replace("\0", " ").strip()

    def clean(self) -> None:
        if not self.errors and self.cleaned_data["value"] is None and not self.cleaned_data["note"]:
            raise forms.ValidationError("Choose right or wrong, or write a note.")


class RecallForm(forms.Form):
    """What an agent would be told: about whom, asked what, with how much room."""

    query = forms.CharField(
        label="Customer message",
        max_length=4000,
        strip=True,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
        error_messages={"required": "Enter a message to the agent."},
    )
    subject = forms.CharField(
        label="Subject",
        required=False,
        max_length=512,
        widget=forms.TextInput({"class": "form-control", "placeholder": "subject ID (optional)"}),
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
        widget=forms.DateInput({"class": "form-control", "type": "date"}, format="%Y-%m-%d"),
    )

    def clean_query(self) -> str:
        return str(self.cleaned_data["query"]).replace("\0", " ")

    def clean_subject(self) -> SubjectAlias | None:
        """The id under which a subject is known; a user's where several kinds have the same one."""
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
        return None if day is None else datetime.combine(day, time.max, tzinfo=UTC)
