"""Forms of the review queue: decisions, rules and saved views."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django import forms

from memadmin.web.widgets import select
from memories_app.audit_events import RejectReason
from memories_app.models import ApprovalRule, Memory
from memories_app.pages.forms import ReadForm, StatementForm
from memories_app.review.bulk_decisions import AT_ONCE
from memories_app.review.rules import UNTRUSTED

SNOOZES = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}

DECISIONS = ("approve", "reject", "snooze")


class EditForm(StatementForm):
    kind = forms.ChoiceField(choices=Memory.Kind, widget=select())


class RejectForm(ReadForm):
    reason = forms.ChoiceField(
        choices=RejectReason, error_messages={"required": "Choose a reason. Distillers learn from it."}
    )


class MergeForm(ReadForm):
    into = forms.UUIDField(error_messages={"required": "Choose the memory to merge into."})


class QuestionForm(forms.Form):
    """A message to an agent for the recall preview; by POST, so that it is in no address or log."""

    question = forms.CharField(
        label="Another customer message",
        max_length=1000,
        required=False,
        widget=forms.TextInput(
            {"class": "form-control", "autocomplete": "off", "placeholder": "Enter a different message"}
        ),
        error_messages={"max_length": "Enter at most 1,000 characters."},
    )

    def clean_question(self) -> str:
        return str(self.cleaned_data["question"]).replace("\0", " ").strip()


class SnoozeForm(forms.Form):
    length = forms.ChoiceField(choices=[(name, name) for name in SNOOZES])

    def clean_length(self) -> timedelta:
        return SNOOZES[self.cleaned_data["length"]]


class ManyForm(forms.Form):
    """Selected proposals with the hashes of their texts as read, and the decision."""

    verb = forms.ChoiceField(choices=[(verb, verb) for verb in DECISIONS])
    reason = forms.ChoiceField(choices=[("", ""), *RejectReason.choices], required=False)
    length = forms.ChoiceField(choices=[("", ""), *((name, name) for name in SNOOZES)], required=False)
    read: dict[UUID, str]

    def clean(self) -> dict[str, Any]:
        chosen = {}
        for value in self.data.getlist("memory"):  # type: ignore[attr-defined]  # a QueryDict
            key, _, read_hash = value.partition(":")
            try:
                chosen[UUID(key)] = read_hash
            except ValueError as problem:
                raise forms.ValidationError("This is not a list of memories.") from problem
        if not chosen:
            raise forms.ValidationError("No proposal is selected.")
        if len(chosen) > AT_ONCE:
            raise forms.ValidationError(f"{len(chosen)} are selected. Decide about at most {AT_ONCE} at once.")
        self.read = chosen
        cleaned = self.cleaned_data
        return cleaned

    @property
    def is_confirmed(self) -> bool:
        """Whether the preview was confirmed, which asks for a reason or a length."""
        return "confirmed" in self.data

    @property
    def lacks(self) -> str:
        """Missing arguments of the verb, as a sentence."""
        match self.cleaned_data["verb"]:
            case "reject" if not self.cleaned_data["reason"]:
                return "Choose a reason. Distillers learn from it."
            case "snooze" if not self.cleaned_data["length"]:
                return "Choose a snooze time."
        return ""

    @property
    def said(self) -> dict[str, Any]:
        """Arguments of the verb besides the proposals."""
        match self.cleaned_data["verb"]:
            case "reject":
                return {"reason": self.cleaned_data["reason"]}
            case "snooze":
                return {"length": SNOOZES[self.cleaned_data["length"]]}
        return {}


TICKS = forms.CheckboxSelectMultiple({"class": "form-check-input"})


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]  # has no brackets at run time
    """The conditions of a rule; empty ones match all."""

    kinds = forms.MultipleChoiceField(choices=Memory.Kind, required=False, widget=TICKS)
    sources = forms.MultipleChoiceField(
        choices=[one for one in Memory.Source.choices if one[0] not in UNTRUSTED], required=False, widget=TICKS
    )
    provenance = forms.ChoiceField(
        choices=[("", "Any"), *((value, label.capitalize()) for value, label in Memory.Provenance.choices)],
        required=False,
        widget=select(),
    )
    min_confidence = forms.FloatField(
        label="Minimum confidence",
        min_value=0,
        max_value=1,
        widget=forms.NumberInput({"class": "form-control", "step": "0.01"}),
        error_messages={
            "min_value": "Confidence must be between 0 and 1.",
            "max_value": "Confidence must be between 0 and 1.",
        },
    )
    sample_percent = forms.IntegerField(
        label="Sample for review, in percent",
        min_value=0,
        max_value=100,
        widget=forms.NumberInput({"class": "form-control"}),
        error_messages={"min_value": "Enter a value from 0 to 100.", "max_value": "Enter a value from 0 to 100."},
    )

    class Meta:
        model = ApprovalRule
        fields = (
            "name",
            "kinds",
            "provenance",
            "sources",
            "extractor",
            "min_confidence",
            "sample_percent",
            "is_active",
        )
        labels: ClassVar = {"extractor": "Proposed by (exact name)"}
        widgets: ClassVar = {
            "name": forms.TextInput({"class": "form-control", "autocomplete": "off"}),
            "extractor": forms.TextInput({"class": "form-control", "autocomplete": "off"}),
            "is_active": forms.CheckboxInput({"class": "form-check-input"}),
        }
