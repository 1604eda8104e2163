"""Filters of lists: from a query string to active filters and query strings without each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict

from memadmin.web.columns import ColumnsField, HeadCell, ListColumn, ListTable, SortField

Row = TypeVar("Row", bound=Model)

ARRANGEMENT = ("sort", "columns")
"""Fields of a list that filter nothing."""


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter, and the query string of the list without it."""

    text: str
    query_without: str


def sentences(form: forms.BaseForm) -> list[str]:
    """The errors of a form, in the order of its fields."""
    return [str(problem) for problems in form.errors.values() for problem in problems]


class FilterForm(forms.Form):
    """Filters of a list, each a field. Empty fields are off. With a `table` also the order and the columns.

    An unknown value is an error with a sentence, and the list is empty: unrequested rows would mislead.
    """

    table: ClassVar[ListTable | None] = None
    not_saved: ClassVar[frozenset[str]] = frozenset()
    """Filters that a saved view leaves out: typed words, and those of one person, which must not outlive an erasure."""

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query)
        self.query = query
        if self.table:
            self.fields |= {"sort": SortField(self.table), "columns": ColumnsField(self.table)}

    @property
    def problems(self) -> list[str]:
        return sentences(self)

    @property
    def active(self) -> dict[str, Any]:
        """The active filters, in the order of the fields."""
        self.is_valid()
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if value not in (None, "", False) and name not in ARRANGEMENT
        }

    def query_string(self, without: str = "", sort: str | None = None) -> str:
        """Query string of the active filters, the order and the columns; `without` leaves one of the filters out, and
        `sort` is another order."""
        return self.query_of([name for name in self.active if name != without], sort)

    def query_of(self, names: list[str], sort: str | None = None, *, is_arranged: bool = True) -> str:
        """Query string of these filters, and of the order and the columns if `is_arranged`."""
        query = QueryDict(mutable=True)
        for name in names:
            query[name] = str(self.query[name])
        if self.table and is_arranged:
            wanted = self.cleaned_data.get("sort", "") if sort is None else sort
            if wanted and wanted != self.table.sort:
                query["sort"] = wanted
            if chosen := self.cleaned_data.get("columns"):
                query["columns"] = ",".join(chosen)
        return query.urlencode(safe=",")

    def chips(self) -> list[Chip]:
        return [
            Chip(self.spelled_out(name, value), self.query_string(without=name)) for name, value in self.active.items()
        ]

    def spelled_out(self, name: str, value: Any) -> str:
        """Text of an active filter's chip: the label of what was chosen from a list."""
        field = self.fields[name]
        choices = dict(field.choices) if isinstance(field, forms.ChoiceField) else {}  # type: ignore[arg-type]  # no choice is a group
        return str(choices.get(str(value), value))

    def hidden_values(self) -> list[tuple[str, str]]:
        """Names and values of the active filters, for a form that changes only order and columns."""
        return [(name, str(self.query[name])) for name in self.active]

    @property
    def is_sortable(self) -> bool:
        """Whether the list can be sorted under the active filters."""
        return True

    @property
    def sorted_by(self) -> str:
        """The order of the list, such as "-activity"."""
        assert self.table, "only a list with a table is sorted"
        self.is_valid()
        chosen = str(self.cleaned_data.get("sort") or "") if self.is_sortable else ""
        return chosen or self.table.sort

    @property
    def is_newest_first(self) -> bool:
        """Whether the list has its own order, in which new rows come first."""
        return not self.table or self.sorted_by == self.table.sort

    @property
    def chosen_order(self) -> str:
        """The chosen order in words, such as "State, ascending"; empty in the list's own order."""
        return "" if self.is_newest_first else dict(self.sort_options())[self.sorted_by]

    def ordered(self, rows: QuerySet[Row]) -> Any:
        """The rows in the list's order."""
        return rows.order_by(*self.table.ordering(self.sorted_by)) if self.table else rows

    @property
    def columns_shown(self) -> list[ListColumn]:
        assert self.table, "only a list with a table has columns"
        self.is_valid()
        return self.table.shown(self.cleaned_data.get("columns") or [])

    @property
    def shown(self) -> set[str]:
        """Names of the columns shown."""
        return {column.name for column in self.columns_shown}

    def head(self) -> list[HeadCell]:
        """The head of the table, with the links that sort it."""
        return [self.head_cell(column) for column in self.columns_shown]

    def head_cell(self, column: ListColumn) -> HeadCell:
        sign = "-" if self.sorted_by.startswith("-") else ""
        is_sorted = self.sorted_by.removeprefix("-") == column.name
        if not column.order or not self.is_sortable:
            return HeadCell(column, "", direction(sign) if is_sorted else "")
        descends_next = not sign if is_sorted else column.begins_descending
        query = self.query_string(sort=f"{'-' if descends_next else ''}{column.name}")
        # Not empty, so that the link does not open the default view.
        return HeadCell(column, query or "view=all", direction(sign) if is_sorted else "")

    def sort_options(self) -> list[tuple[str, str]]:
        """The orders to choose from, with their words; none if the list cannot be sorted."""
        return self.table.sorts() if self.table and self.is_sortable else []

    @property
    def is_arranged(self) -> bool:
        """Whether an order or columns are chosen."""
        return any(self.cleaned_data.get(name) for name in ARRANGEMENT)

    @property
    def unarranged(self) -> str:
        """Query string of the active filters alone."""
        return self.query_of(list(self.active), is_arranged=False)

    def column_options(self) -> list[tuple[ListColumn, bool]]:
        """All columns, and whether each is shown."""
        shown = self.shown
        return [(column, column.name in shown) for column in self.table.columns] if self.table else []


def direction(sign: str) -> str:
    return "descending" if sign else "ascending"
