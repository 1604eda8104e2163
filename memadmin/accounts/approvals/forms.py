"""The form of an approval."""

from __future__ import annotations

from django import forms


class ShownForm(forms.Form):
    """Carries the digest of what the page shows."""

    shown = forms.CharField(required=False, widget=forms.HiddenInput())
