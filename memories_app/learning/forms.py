"""The form for feedback on an item of a session."""

from __future__ import annotations

from django import forms

from memadmin.web.widgets import lines


class FeedbackForm(forms.Form):
    """Rating, note, or both, as input for distillers."""

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
        widget=lines(),
    )

    def clean_note(self) -> str:
        return str(self.cleaned_data["note"]).replace("\0", " ").strip()

    def clean(self) -> None:
        if not self.errors and self.cleaned_data["value"] is None and not self.cleaned_data["note"]:
            raise forms.ValidationError("Choose right or wrong, or write a note.")
