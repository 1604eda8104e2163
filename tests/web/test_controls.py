"""What forms look like: the controls that are written in Python say what Django's templates say."""

from __future__ import annotations

from typing import ClassVar

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates
from django.test.html import parse_html

from memadmin.web.controls import WRITTEN_HERE, ControlRenderer

HOSTILE = '"><script>&'


class EveryControl(forms.Form):
    text = forms.CharField(required=False, widget=forms.TextInput({"class": "form-control", "autofocus": True}))
    day = forms.DateField(required=False, widget=forms.DateInput({"type": "date", "hidden": False}, format="%Y-%m-%d"))
    secret = forms.CharField(required=False, widget=forms.HiddenInput)
    tick = forms.BooleanField(required=False)
    choice = forms.ChoiceField(choices=[("", "Any"), (1, "One"), (HOSTILE, HOSTILE)], required=False)
    several = forms.ChoiceField(choices=[("Group <b>", [("a", "A"), ("b", "B")]), ("c", "C")], required=False)

    templates: ClassVar = {"text.html", "date.html", "hidden.html", "checkbox.html", "select.html"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"text": "tea", "day": "2026-11-30", "secret": "x", "tick": "on", "choice": "1", "several": "b"},
        {"text": HOSTILE, "day": HOSTILE, "secret": HOSTILE, "choice": HOSTILE, "several": HOSTILE},
    ],
)
def test_every_control_is_what_django_makes_of_it(given: dict[str, str]) -> None:
    ours, theirs = (EveryControl(given, renderer=renderer()) for renderer in (ControlRenderer, DjangoTemplates))
    for name in ours.fields:
        assert parse_html(str(ours[name])) == parse_html(str(theirs[name]))


def test_no_control_was_forgotten_above() -> None:
    assert WRITTEN_HERE.keys() == EveryControl.templates
