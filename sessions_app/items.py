"""Items as stores keep them: what a store answers, and what a timeline is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where an item stands in the order in which the agent reads its session. Comparable within one session only."""

    key: tuple[str, int]

    def __str__(self) -> str:
        return f"{self.key[0]}~{self.key[1]}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str()`; raises ValueError. Only ever fed from a signed cursor or our own rows."""
        instant, _, number = text.rpartition("~")
        if not instant:
            raise ValueError("not a position")
        return cls((instant, int(number)))


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One entry as the store keeps it; `raw` is not decoded, and may be nonsense."""

    id: str
    """The store's own id of the row, unique within the session."""
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

    @property
    def is_whole(self) -> bool:
        return not self.raw_tail


@dataclass(frozen=True, slots=True)
class ItemPage:
    """A run of neighbouring items in the agent's order, oldest first."""

    items: Sequence[StoredItem]
    has_earlier: bool
    has_later: bool
