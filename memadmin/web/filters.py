"""Filters of lists: from a query string to active filters and query strings without each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter, and the query string of the list without it."""

    text: str
    query_without: str


def sentences(form: forms.BaseForm) -> list[str]:
    """The errors of a form, in the order of its fields."""
    return [str(problem) for problems in form.errors.values() for problem in problems]


class FilterForm(forms.Form):
    """Filters of a list, each a field. Empty fields are off.

    An unknown value is an error with a sentence, and the list is empty: unrequested rows would mislead.
    """

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query)
        self.query = query

    @property
    def problems(self) -> list[str]:
        return sentences(self)

    @property
    def active(self) -> dict[str, Any]:
        """The active filters, in the order of the fields."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "", False)}

    def query_string(self, without: str = "") -> str:
        """Query string of the active filters; `without` leaves one out."""
        query = QueryDict(mutable=True)
        for name in self.active:
            if name != without:
                query[name] = str(self.query[name])
        return query.urlencode()

    def chips(self) -> list[Chip]:
        return [
            Chip(self.spelled_out(name, value), self.query_string(without=name)) for name, value in self.active.items()
        ]

    def spelled_out(self, name: str, value: Any) -> str:
        """Text of an active filter's chip."""
        return f"{name} {value}"
