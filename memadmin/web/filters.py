"""The filters of a list: a query string in, what is on and the query string of each part out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict


@dataclass(frozen=True, slots=True)
class Chip:
    """One filter that is on, and the query string of the list without it."""

    text: str
    query_without: str


def sentences(form: forms.BaseForm) -> list[str]:
    """What is wrong with a form, in the order of its fields."""
    return [str(problem) for problems in form.errors.values() for problem in problems]


class FilterForm(forms.Form):
    """Filters of a list, each a field. Empty fields are off.

    An unknown value is an error with a sentence, and the list is empty: rows that were not asked for would mislead.
    """

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query)
        self.query = query

    @property
    def problems(self) -> list[str]:
        return sentences(self)

    @property
    def active(self) -> dict[str, Any]:
        """The filters that are on, in the order of the fields."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "", False)}

    def query_string(self, without: str = "") -> str:
        """The filters that are on, as they stand in an address; `without` leaves one out."""
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
        """A filter that is on, as its chip says it."""
        return f"{name} {value}"
