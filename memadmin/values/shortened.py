"""Shortened values of JSON: strings, lists and objects that lack their end, and have the number of what they lack.

They are ordinary strings, lists and objects for every reader. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class ShortText(str):
    """Beginning of a string: `shown` characters, and as many behind them as masking has to see."""

    __slots__ = ("left_out", "shown")

    left_out: int
    """Number of characters that the whole string has in addition."""
    shown: int
    """Number of characters that a page may show."""

    def __new__(cls, text: str, left_out: int, shown: int) -> ShortText:
        short = super().__new__(cls, text)
        short.left_out, short.shown = left_out, shown
        return short


class JsonText(str):
    """JSON in a string, written anew from its shortened value."""

    __slots__ = ("value",)

    value: object

    def __new__(cls, text: str, value: object) -> JsonText:
        json = super().__new__(cls, text)
        json.value = value
        return json


class ShortArray(list[object]):
    """Neighbouring elements of a list, the index of the first one, and the number of elements behind them."""

    first = 0
    left_out = 0

    def with_elements(self, elements: Iterable[object]) -> ShortArray:
        """The same part of a list with changed elements."""
        changed = ShortArray(elements)
        changed.first, changed.left_out = self.first, self.left_out
        return changed


class ShortObject(dict[str, object]):
    """First members of an object, and the number of its other members."""

    left_out = 0

    def with_members(self, members: Mapping[str, object]) -> ShortObject:
        """The same part of an object with changed members."""
        changed = ShortObject(members)
        changed.left_out = self.left_out
        return changed


def left_out_of(value: object) -> int:
    """Number of characters, elements or members that a value lacks; 0 for one that is whole."""
    return value.left_out if isinstance(value, ShortText | ShortArray | ShortObject) else 0


def length_of(value: str | list[object]) -> int:
    """Length of a string or a list before it was shortened."""
    return len(value) + left_out_of(value)


def first_of(value: object) -> int:
    """Index of the first element in the whole list."""
    return value.first if isinstance(value, ShortArray) else 0


def is_part(value: object) -> bool:
    """Whether a value lacks elements, members or characters."""
    return left_out_of(value) > 0 or first_of(value) > 0
