"""Widgets of forms with the classes that the pages style, and labels of choices."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms


def select(label: str = "", **attributes: str) -> forms.Select:
    """A list of choices. `label` is for screen readers, where a page shows none."""
    named = {"aria-label": label} if label else {}
    return forms.Select({"class": "form-select", **named, **attributes})


def lines(rows: int = 2, **attributes: str) -> forms.Textarea:
    """A text of several lines."""
    return forms.Textarea({"class": "form-control", "rows": rows, **attributes})


def day() -> forms.DateInput:
    """A date from the browser's calendar."""
    return forms.DateInput({"class": "form-control", "type": "date"}, format="%Y-%m-%d")


def capital(label: str) -> str:
    """The label with a capital letter at its beginning."""
    return label[:1].upper() + label[1:]


def in_sentences(choices: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Choices whose labels begin with a capital letter."""
    return [(value, capital(label)) for value, label in choices]
