"""What people fill in about access."""

from __future__ import annotations

from django import forms

from memadmin.accounts.grants.verbs import MINUTES
from memadmin.accounts.models import ContentGrant


class GrantForm(forms.Form):
    """Why somebody wants to read locked sessions, and for how long. Which sessions is the page's own business."""

    reason = forms.ChoiceField(
        choices=ContentGrant.Reason,
        widget=forms.Select({"class": "form-select"}),
        error_messages={"required": "A grant needs a reason.", "invalid_choice": "That is not one of the reasons."},
    )
    ticket = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "off"}),
        error_messages={"required": "A grant needs the ticket, or whatever case it belongs to."},
    )
    explanation = forms.CharField(
        label="In your words",
        help_text="Why this session, and what you will do with it. Kept beside the grant, erasable.",
        max_length=2_000,
        required=False,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
    )
    minutes = forms.TypedChoiceField(
        label="For",
        choices=[(minutes, f"{minutes} minutes") for minutes in MINUTES],
        coerce=int,
        widget=forms.Select({"class": "form-select"}),
        error_messages={"invalid_choice": "A grant is open for 15, 30 or 60 minutes."},
    )


class ReviewForm(forms.Form):
    """What somebody found who looked at what was read under a grant."""

    note = forms.CharField(
        label="What you looked at and what you found",
        max_length=2_000,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
        error_messages={"required": "Say in a few words what you looked at and what you found."},
    )
