"""Keyset pagination: every page costs the same, and no row is skipped when others are inserted meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import BooleanField, Expression, F, Field, Func, Model, Q, QuerySet, Value
from django.db.models.lookups import GreaterThan, LessThan

Row = TypeVar("Row", bound=Model)
Direction = Literal["newer", "older"]
Fetch: TypeAlias = Callable[[Sequence[QuerySet[Row]], int], list[Row]]


class BadCursor(Exception):
    """The cursor is not signed for this list."""

    def __init__(self) -> None:
        super().__init__("This page link is incomplete or was changed.")


@dataclass(frozen=True, slots=True)
class KeysetPage(Generic[Row]):
    """Consecutive rows of a list, with the cursors of the adjacent pages; an empty cursor means there is none.

    `ahead` always points before the first row, also when there are no newer rows yet: an open page polls with it.
    """

    rows: list[Row]
    newer: str
    older: str
    ahead: str
    problem: str = ""
    """Why there are no rows: the sentence of a bad cursor."""


def page_by_key(
    queryset: QuerySet[Row], *, cursor: str, size: int, salt: str, fetch: Fetch[Row] | None = None
) -> KeysetPage[Row]:
    """The page at a cursor, or the first one when the cursor is empty. Raises BadCursor. One query.

    The order is the queryset's own: plain columns that are never null, the last one the primary key. Their values can
    be read in the cursor, so none may be personal. `salt` names the list; a cursor of another one is refused. `fetch`
    replaces the query for lists with a faster way to their first rows.
    """
    return page_of_union([queryset], cursor=cursor, size=size, salt=salt, fetch=fetch)


def page_of_union(
    branches: Sequence[QuerySet[Row]], *, cursor: str, size: int, salt: str, fetch: Fetch[Row] | None = None
) -> KeysetPage[Row]:
    """The page of a list that is the union of several querysets of one model in one order; a row in two of them is
    shown once. Raises BadCursor. Two queries, or one for a single branch.

    Each branch returns at most a page of rows, by its own index: rows that a condition with OR would collect and sort
    completely cost no more than the branches here.
    """
    keys = sort_keys(branches[0])
    place = read_cursor(cursor, keys, salt) if cursor else None
    backwards = place is not None and place.direction == "newer"
    if place:
        branches = [branch.filter(beyond(keys, place)) for branch in branches]
    if backwards:
        branches = [branch.reverse() for branch in branches]
    found = (fetch or first_rows)(branches, size + 1)
    has_more = len(found) > size
    rows = found[:size]
    if backwards:
        rows.reverse()
    if not rows:
        return KeysetPage([], newer="", older="", ahead="")
    ahead = sign_cursor("newer", rows[0], keys, salt)
    # The row of the cursor is on the other side.
    return KeysetPage(
        rows,
        newer=ahead if (has_more if backwards else place) else "",
        older=sign_cursor("older", rows[-1], keys, salt) if backwards or has_more else "",
        ahead=ahead,
    )


def first_rows(branches: Sequence[QuerySet[Row]], limit: int) -> list[Row]:
    if len(branches) == 1:
        return list(branches[0][:limit])
    # The order of the branches may be reversed; the union uses the same.
    order = branches[0].query.order_by or branches[0].model._meta.ordering or ()
    primary_keys = [row[-1] for row in union_of_keys(branches, limit).order_by(*order)[:limit]]
    rows = branches[0].model._default_manager.in_bulk(primary_keys)
    # One may have been deleted since.
    return [rows[primary_key] for primary_key in primary_keys if primary_key in rows]


def union_of_keys(branches: Sequence[QuerySet[Row]], limit: int) -> QuerySet[Row, Any]:
    """The keys of the first rows of each branch, in no order."""
    columns = [key.field.attname for key in sort_keys(branches[0])]
    first, *others = (branch.values_list(*columns)[:limit] for branch in branches)
    return first.union(*others)


def count_ahead(branches: Sequence[QuerySet[Row]], *, cursor: str, cap: int, salt: str) -> int:
    """Number of rows before the page with this `ahead` cursor, at most cap + 1. One query.

    Raises BadCursor.
    """
    if cursor:
        keys = sort_keys(branches[0])
        place = read_cursor(cursor, keys, salt)
        branches = [branch.filter(beyond(keys, place)) for branch in branches]
    if len(branches) == 1:
        return branches[0][: cap + 1].count()
    return union_of_keys(branches, cap + 1)[: cap + 1].count()


@dataclass(frozen=True, slots=True)
class SortKey:
    field: Field[Any, Any]
    is_descending: bool


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """A direction, and the key of the row where it starts."""

    direction: Direction
    key: Sequence[Any]


def sort_keys(queryset: QuerySet[Any]) -> list[SortKey]:
    meta = queryset.model._meta
    keys = []
    for name in queryset.query.order_by or meta.ordering:
        assert isinstance(name, str), "a keyset order names plain columns"
        column = name.removeprefix("-")
        field = meta.pk if column == "pk" else meta.get_field(column)
        assert isinstance(field, Field), "a keyset order names plain columns"
        assert not field.null, "a keyset order has no nulls"
        keys.append(SortKey(field, name.startswith("-")))
    assert keys[-1].field.primary_key, "a keyset order ends with the primary key"
    return keys


def beyond(keys: Sequence[SortKey], place: KeyPosition) -> Expression | Q:
    """The rows after a key in the list's order, or before it when the direction is "newer"."""
    descending = [key.is_descending != (place.direction == "newer") for key in keys]
    columns = [F(key.field.attname) for key in keys]
    values = [Value(value, output_field=key.field) for key, value in zip(keys, place.key, strict=True)]
    if len(set(descending)) == 1:
        # As a row value the whole key is one range of the index, also for equal times.
        comparison = LessThan if descending[0] else GreaterThan
        return comparison(row_value(*columns), row_value(*values))
    condition = Q()
    for key, value, down in reversed(list(zip(keys, values, descending, strict=True))):
        name = key.field.attname
        strictly = Q(**{f"{name}__{'lt' if down else 'gt'}": value})
        condition = strictly | Q(**{name: value}) & condition if condition else strictly
    # Implied by the rest, but the planner does not derive an index range from an OR.
    first = f"{keys[0].field.attname}__{'lte' if descending[0] else 'gte'}"
    return Q(**{first: values[0]}) & condition


def row_value(*parts: F | Value) -> Func:
    # The output field is not used, but a comparison requires one.
    return Func(*parts, function="ROW", output_field=BooleanField())


def rows_after(queryset: QuerySet[Row], row: Row) -> QuerySet[Row]:
    """The rows after this one in the queryset's order; the row itself need not be in the queryset."""
    return queryset.filter(beyond(sort_keys(queryset), place_of("older", row, queryset)))


def rows_before(queryset: QuerySet[Row], row: Row) -> QuerySet[Row]:
    """The rows before this one, the nearest first."""
    return queryset.filter(beyond(sort_keys(queryset), place_of("newer", row, queryset))).reverse()


def in_batches(queryset: QuerySet[Row], size: int) -> Iterator[list[Row]]:
    """All rows in the queryset's order, `size` at a time by key; one query each, so that memory and cost stay flat.

    A row whose key changes meanwhile may be missing or come twice.
    """
    batch = list(queryset[:size])
    while batch:
        yield batch
        batch = list(rows_after(queryset, batch[-1])[:size]) if len(batch) == size else []


def place_of(direction: Direction, row: Model, queryset: QuerySet[Any]) -> KeyPosition:
    return KeyPosition(direction, [getattr(row, key.field.attname) for key in sort_keys(queryset)])


def sign_cursor(direction: Direction, row: Model, keys: Sequence[SortKey], salt: str) -> str:
    return sign_texts([direction, *key_texts(row, keys)], salt_of(keys, salt))


def read_cursor(cursor: str, keys: Sequence[SortKey], salt: str) -> KeyPosition:
    direction, *texts = read_texts(cursor, salt_of(keys, salt)) or [""]
    if direction not in get_args(Direction):
        raise BadCursor
    return KeyPosition(cast(Direction, direction), key_from_texts(texts, keys))


def salt_of(keys: Sequence[SortKey], salt: str) -> str:
    """The salt of a list in one order: a cursor of another order would name another place."""
    order = ",".join(f"{'-' if key.is_descending else ''}{key.field.attname}" for key in keys)
    return f"{salt}:{order}"


def key_texts(row: Model, keys: Sequence[SortKey]) -> list[str]:
    return [key.field.value_to_string(row) for key in keys]


def key_from_texts(texts: Sequence[str], keys: Sequence[SortKey]) -> list[Any]:
    """The inverse. Raises BadCursor."""
    try:
        return [key.field.to_python(text) for key, text in zip(keys, texts, strict=True)]
    except (ValidationError, ValueError) as problem:
        raise BadCursor from problem


def sign_texts(texts: Sequence[str], salt: str) -> str:
    """A signed position for an address; it cannot be forged or used with another salt."""
    return signing.Signer(salt=f"page:{salt}").sign_object(list(texts))


def read_texts(cursor: str, salt: str) -> list[str]:
    """The inverse. Raises BadCursor for anything that was not signed with this salt."""
    try:
        texts: list[str] = signing.Signer(salt=f"page:{salt}").unsign_object(cursor)
    except (signing.BadSignature, ValueError) as problem:
        raise BadCursor from problem
    return texts
