"""Whether a history can be given to a model again, by the SDK's own types and by what pairs calls with outputs.

The types are the SDK's; the order is held against the one rule that providers enforce: no output without its call.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sessions_app.items import Position, StoredItem
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.pairing import call_key, output_key


@cache
def _input_items() -> TypeAdapter[Any]:
    """Takes a tenth of a second to make, and with the SDK 80 MB, which the processes that redact nothing do without."""
    from agents import TResponseInputItem

    return TypeAdapter(TResponseInputItem)


def is_input(raw: str) -> bool:
    """Whether the SDK takes the stored text for an item that a model can be given."""
    try:
        item = json.loads(raw)
        _consume(_input_items().validate_python(item))
    except (ValueError, ValidationError, RecursionError):
        return False
    return True


def _consume(value: Any) -> None:
    """Lists in the SDK's types are checked only as they are read."""
    if isinstance(value, dict):
        for member in value.values():
            _consume(member)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for element in value:
            _consume(element)


def keeps_its_place(before: str, after: str) -> bool:
    """Whether an item is still the same one to the SDK: its type, its ids, what it answers, and fit for a model."""
    one, other = _entry(before), _entry(after)
    same = ("type", "role", "id", "call_id", "name", "approval_request_id")
    if one.is_object != other.is_object or any(one.fields.get(name) != other.fields.get(name) for name in same):
        return False
    if (call_key(one), output_key(one)) != (call_key(other), output_key(other)):
        return False
    return is_input(after) or not is_input(before)


@dataclass
class Replay:
    """A history, told item by item, as the next run of an agent would read it."""

    items: int = 0
    unfit: set[str] = field(default_factory=set)
    """Ids of items that the SDK does not take for input; it skips, or a model refuses them."""
    uncalled: int = 0
    """Outputs whose call is not in the history before them: a provider refuses it."""
    _open: Counter[tuple[str, str]] = field(default_factory=Counter)

    def see(self, item: StoredItem) -> None:
        entry = decode(item)
        self.items += 1
        if not is_input(item.raw):
            self.unfit.add(item.id)
            return
        if key := call_key(entry):
            self._open[key] += 1
        elif key := output_key(entry):
            if self._open[key]:
                self._open[key] -= 1
            else:
                self.uncalled += 1

    @property
    def works(self) -> bool:
        return not self.unfit and not self.uncalled


def _entry(raw: str) -> DecodedItem:
    return decode(StoredItem("", Position((0,)), raw, len(raw), None))
