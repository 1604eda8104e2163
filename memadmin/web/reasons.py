"""Reasons that are chosen from a list."""

from __future__ import annotations

from django import forms
from django.db.models import TextChoices

from memadmin.web.widgets import select


def reason_field(reasons: type[TextChoices], *, required: str = "Choose a reason.") -> forms.ChoiceField:
    """A field for one of these reasons, none of which is chosen at first. `required` is the error without one."""
    return forms.ChoiceField(
        choices=[("", "Choose a reason"), *reasons.choices],
        widget=select(),
        error_messages={
            "required": required,
            "invalid_choice": "This reason does not exist. Choose one from the list.",
        },
    )
