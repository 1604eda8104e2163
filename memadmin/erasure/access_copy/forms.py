"""Form of the actions about a copy."""

from __future__ import annotations

from django import forms


class CopyNoteForm(forms.Form):
    """A note for the log of the case: to whom, how, or why."""

    note = forms.CharField(max_length=2_000, widget=forms.Textarea(attrs={"rows": 2}))
