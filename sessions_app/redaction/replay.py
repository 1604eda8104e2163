"""Check that a history can be given to a model again, by the SDK's own types and by the pairs of calls and outputs.

The types are the SDK's; the order is checked by the one rule that providers enforce: no output without its call.
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
    """Takes a tenth of a second to build, and with the SDK 80 MB, which processes without redactions do not need."""
    from agents import TResponseInputItem

    return TypeAdapter(TResponseInputItem)


def is_input(raw: str) -> bool:
    """True if the SDK accepts the stored text as an item for a model."""
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
    """True if an item is still the same one to the SDK: its type, its ids, the item that it answers, and valid for a
    model.
    """
    one, other = _entry(before), _entry(after)
    same = ("type", "role", "id", "call_id", "name", "approval_request_id")
    if one.is_object != other.is_object or any(one.fields.get(name) != other.fields.get(name) for name in same):
        return False
    if (call_key(one), output_key(one)) != (call_key(other), output_key(other)):
        return False
    return is_input(after) or not is_input(before)


@dataclass
class Replay:
    """A history, item by item, as the next run of an agent would read it."""

    items: int = 0
    unfit: set[str] = field(default_factory=set)
    """Ids of items that the SDK does not accept as input; it skips, or a model refuses them."""
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
