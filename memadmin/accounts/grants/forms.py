"""Forms for access grants."""

from __future__ import annotations

from django import forms

from memadmin.accounts.grants.services import MINUTES
from memadmin.accounts.models import ContentGrant
from memadmin.web.widgets import lines, select


class GrantForm(forms.Form):
    """Reason and duration of a grant. The page supplies the sessions."""

    reason = forms.ChoiceField(
        choices=ContentGrant.Reason,
        widget=select(),
        error_messages={
            "required": "A grant needs a reason.",
            "invalid_choice": "This reason does not exist. Choose one from the list.",
        },
    )
    ticket = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "off"}),
        error_messages={"required": "A grant needs a ticket or case number."},
    )
    explanation = forms.CharField(
        label="Explanation",
        help_text="Why you need these sessions and what you will do with them. Stored with the grant; can be erased.",
        max_length=2_000,
        required=False,
        widget=lines(),
    )
    minutes = forms.TypedChoiceField(
        label="For",
        choices=[(minutes, f"{minutes} minutes") for minutes in MINUTES],
        coerce=int,
        widget=select(),
        error_messages={"invalid_choice": "A grant lasts 15, 30 or 60 minutes."},
    )


class ReviewForm(forms.Form):
    """Result of the review of a grant."""

    note = forms.CharField(
        label="What was read, and the result",
        max_length=2_000,
        widget=lines(),
        error_messages={"required": "Describe briefly what was read and the result."},
    )
