"""Columns and orders of lists, and the fields that read them from an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a list.

    `order` names the fields by which the rows are sorted, ascending; the last one is the primary key. They are never
    null and contain nothing personal, as a cursor shows their values. Where a list can have more than ten thousand
    rows, they are the columns of an index, also under the filters. Without `order` the list cannot be sorted by it.
    """

    name: str
    title: str
    order: tuple[str, ...] = ()
    classes: str = ""
    """Classes of its cells in the head."""
    is_fixed: bool = False
    """Whether it is always shown: a row could not be opened without it."""
    is_extra: bool = False
    """Whether it is hidden until it is chosen."""
    begins_descending: bool = False
    """Whether the first click on its title sorts descending, as with times."""
    term: str = ""
    """The term of the glossary behind the title."""


@dataclass(frozen=True, slots=True)
class ListTable:
    """The columns of a list, and its order without a choice, such as "-activity"."""

    columns: tuple[ListColumn, ...]
    sort: str

    def column(self, name: str) -> ListColumn:
        return next(column for column in self.columns if column.name == name)

    def sorts(self) -> list[tuple[str, str]]:
        """Every order with its words, as the choices of a field."""
        return [
            (f"{sign}{column.name}", f"{column.title}, {words}")
            for column in self.columns
            if column.order
            for sign, words in (("-", "descending"), ("", "ascending"))
        ]

    def shown(self, chosen: list[str]) -> list[ListColumn]:
        """The chosen columns in their own order; without a choice those that are not extra."""
        return [
            column
            for column in self.columns
            if column.is_fixed or (column.name in chosen if chosen else not column.is_extra)
        ]

    def ordering(self, sort: str) -> list[str]:
        """The ORM order of a sort, all in one direction, so that one index serves both."""
        sign = "-" if sort.startswith("-") else ""
        return [f"{sign}{name}" for name in self.column(sort.removeprefix("-")).order]


@dataclass(frozen=True, slots=True)
class HeadCell:
    """A cell of a table's head. `query` is the address that sorts by it, empty if nothing can."""

    column: ListColumn
    query: str
    aria_sort: str
    """Its direction if the list is sorted by it: "ascending" or "descending"."""


class ColumnsInput(forms.HiddenInput):
    """Names of columns as one value, "a,b", also from several boxes of the same name."""

    def value_from_datadict(self, data: Mapping[str, Any], files: object, name: str) -> str:
        values = data.getlist(name) if isinstance(data, QueryDict) else [str(data.get(name, ""))]
        names = [part.strip() for value in values for part in value.split(",")]
        return ",".join(dict.fromkeys(filter(None, names)))


class ColumnsField(forms.Field):
    """The chosen columns of a table; an empty list without a choice."""

    widget = ColumnsInput
    default_error_messages: ClassVar = {"invalid": "“%(value)s” is not a column of this list."}

    def __init__(self, table: ListTable) -> None:
        super().__init__(required=False)
        self.names = [column.name for column in table.columns]

    def to_python(self, value: Any) -> list[str]:
        names = value.split(",") if value else []
        for name in names:
            if name not in self.names:
                raise forms.ValidationError(self.error_messages["invalid"], code="invalid", params={"value": name})
        return names


class SortField(forms.ChoiceField):
    """The chosen order of a table; empty without a choice."""

    widget = forms.HiddenInput
    default_error_messages: ClassVar = {"invalid_choice": "This list cannot be sorted by “%(value)s”."}

    def __init__(self, table: ListTable) -> None:
        super().__init__(choices=table.sorts(), required=False)
