"""Items as stores keep them: what a store answers, and what a timeline is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

LONGEST_ID_BYTES = 2_500
"""The longest id of a session that an index of the registry can hold."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where an item stands in the order in which the agent reads its session. Comparable within one session only.

    Each kind of store has its own keys: an instant and a row's id, an id alone, a place in a list. The last part of a
    key is a whole number.
    """

    key: tuple[str | int, ...]

    def __str__(self) -> str:
        return json.dumps(self.key, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str()`; raises ValueError. Only ever fed from a signed cursor or our own rows."""
        key = json.loads(text)
        # A bool would be an int to isinstance.
        if not isinstance(key, list) or not key or any(type(part) not in (str, int) for part in key):
            raise ValueError("not a position")
        if not isinstance(key[-1], int):
            raise ValueError("not a position")
        return cls(tuple(key))

    def next(self) -> Position:
        """The place right behind this one, whether anything stands there or not."""
        return self._moved(1)

    def previous(self) -> Position:
        """The place right before this one, whether anything stands there or not."""
        return self._moved(-1)

    def _moved(self, by: int) -> Position:
        *before, number = self.key
        return Position((*before, int(number) + by))


class SealState(StrEnum):
    """How the seal of an encrypted item stands, as far as the keys of this console tell."""

    SOUND = "sound"
    """It was sealed with the key of its store, and not changed since."""
    OTHER_KEY = "other_key"
    """It was sealed with another key that is here. Agents that hold the store's do not see it."""
    WRONG_KEY = "wrong_key"
    """The store's key opens nothing in its session: the key, or the session id that it goes with, is another one."""
    TAMPERED = "tampered"
    """No seal of the key that opens its neighbours: changed since, or brought here from elsewhere."""
    NO_KEY = "no_key"
    UNCHECKED = "unchecked"
    """Read in part, which nobody can check."""


@dataclass(frozen=True, slots=True)
class Seal:
    """What is known of the envelope that an item is, or was opened from."""

    state: SealState
    sealed_at: datetime | None
    """Aware UTC, a whole second. Proven where the state is sound or other_key; else only what the envelope says."""
    is_expired: bool = False
    """Whether it is older than agents read; the row stays all the same."""
    is_ahead: bool = False
    """Whether its time is still to come, for more than a clock can be wrong; agents do not read it before that."""
    key_name: str = ""
    """The key that it was sealed with, where that is known."""
    store_key: str = ""
    """The key that its store is declared to use."""
    is_open: bool = False
    """Whether the item's text is what was inside, and no longer the envelope."""

    @property
    def is_proven(self) -> bool:
        return self.state in (SealState.SOUND, SealState.OTHER_KEY)


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One entry as the store keeps it; `raw` is not decoded, and may be nonsense."""

    id: str
    """The store's own id of the item, unique within the session; a kind that has none counts them from 0."""
    position: Position
    raw: str
    """The stored text; of a very long item only its beginning."""
    byte_count: int
    written_at: datetime | None
    """Aware UTC; equal for all items that were written in one batch. None where the store keeps no time."""
    raw_tail: str = ""
    """The end of the stored text of a longer item; empty when `raw` is whole."""
    masked_count: int = 0
    """How many values in it are masked: then the text is not what is stored."""
    seal: Seal | None = None
    """Of an encrypted item that somebody looked at with the keys. `byte_count` is the envelope's, open or not."""

    @property
    def is_whole(self) -> bool:
        return not self.raw_tail


@dataclass(frozen=True, slots=True)
class ItemPage:
    """A run of neighbouring items in the agent's order, oldest first."""

    items: Sequence[StoredItem]
    has_earlier: bool
    has_later: bool
