"""Items as stores return them, from which timelines are built."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

LONGEST_ID_BYTES = 2_500
"""Maximum length of a session id, as an index of the registry can contain it."""


def can_be_registered(session_id: str) -> bool:
    """Whether the registry can store this session id: text without zero bytes, not empty and not too long."""
    try:
        return 0 < len(session_id.encode()) <= LONGEST_ID_BYTES and "\0" not in session_id
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Position of an item in the order in which the agent reads its session. Comparable within one session only.

    Each kind of store has its own keys: an instant and a row id, an id alone, an index in a list. The last part of a
    key is a whole number.
    """

    key: tuple[str | int, ...]

    def __str__(self) -> str:
        return json.dumps(self.key, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str()`; raises ValueError. Its input is always a signed cursor or a row of ours."""
        key = json.loads(text)
        # A bool would be an int to isinstance.
        if not isinstance(key, list) or not key or any(type(part) not in (str, int) for part in key):
            raise ValueError("not a position")
        if not isinstance(key[-1], int):
            raise ValueError("not a position")
        return cls(tuple(key))

    def next(self) -> Position:
        """The position right behind this one, whether there is an item or not."""
        return self._moved(1)

    def previous(self) -> Position:
        """The position right before this one, whether there is an item or not."""
        return self._moved(-1)

    def _moved(self, by: int) -> Position:
        *before, number = self.key
        return Position((*before, int(number) + by))


class SealState(StrEnum):
    """State of an encrypted item, as far as the keys of this console show it."""

    SOUND = "sound"
    """Encrypted with the key of its store or of its subject, and unchanged since."""
    OTHER_KEY = "other_key"
    """Encrypted with another loaded key. Agents with the store's key do not see it."""
    WRONG_KEY = "wrong_key"
    """The store's key decrypts nothing in its session: the key, or the session id that belongs to it, is another one.
    """
    TAMPERED = "tampered"
    """The key of its neighbours does not decrypt it: changed since, or copied from elsewhere."""
    NO_KEY = "no_key"
    KEY_DESTROYED = "key_destroyed"
    """No loaded key decrypts it, and a key of its subject was destroyed."""
    UNCHECKED = "unchecked"
    """Read in part, and so not verifiable."""


@dataclass(frozen=True, slots=True)
class Seal:
    """State of the envelope that an item is, or from which it was decrypted."""

    state: SealState
    sealed_at: datetime | None
    """Aware UTC, a whole second. Proven if the state is sound or other_key; else by the envelope's own account."""
    is_expired: bool = False
    """Whether it is too old for agents to read; the row stays."""
    is_ahead: bool = False
    """Whether its time is in the future, by more than a clock may be wrong; agents do not read it before."""
    key_name: str = ""
    """Name of the key with which it was encrypted, if known."""
    store_key: str = ""
    """Name of the key that its store is declared to use."""
    is_open: bool = False
    """Whether the item's text is decrypted, and no longer the envelope."""

    @property
    def is_proven(self) -> bool:
        return self.state in (SealState.SOUND, SealState.OTHER_KEY)


@dataclass(frozen=True, slots=True)
class ShownPart:
    """The part of an item that a page shows, decoded (`timeline.shortening`)."""

    value: object
    """Strings, lists and objects in it may be of the types of `memadmin.values.shortened`."""
    problem: str = ""
    """Reason why the item cannot be read; empty if it can."""
    first_part: int = 0
    """Index of the first part that is shown."""
    next_part: int = 0
    """Index of the first part behind those that are shown."""
    more_parts: int = 0
    """Number of further parts; 0 if the last one is shown."""
    more_values: int = 0
    """Number of elements and members that the page shows nowhere else."""
    is_redacted: bool = False
    """Whether the marker of redacted text is anywhere in the item."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One entry of a store; `raw` is not decoded, and may be anything."""

    id: str
    """The store's id of the item, unique within the session; in a kind without ids the index from 0."""
    position: Position
    raw: str
    """The stored text; of a very long item only its beginning."""
    byte_count: int
    written_at: datetime | None
    """Aware UTC; equal for all items that were written in one batch. None if the store has no times."""
    raw_tail: str = ""
    """The end of the stored text of a longer item; empty when `raw` is whole."""
    masked_count: int = 0
    """Number of masked values; above 0 the text differs from the stored one."""
    is_hidden: bool = False
    """Whether its content is left out, because masking it would take too long here."""
    has_unreadable_time: bool = False
    """Whether the store has times, and that of this item is none that a calendar has."""
    seal: Seal | None = None
    """Seal of an encrypted item that was examined with the keys. `byte_count` is the envelope's, decrypted or not."""
    shown: ShownPart | None = None
    """The part that a page shows; `raw` is then JSON of this part. None if the page shows all of it."""

    @property
    def is_whole(self) -> bool:
        return not self.raw_tail


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Neighbouring items in the agent's order, oldest first."""

    items: Sequence[StoredItem]
    has_earlier: bool
    has_later: bool
    is_cut_at_start: bool = False
    """Whether it begins inside a run that is too long for one page."""
    is_cut_at_end: bool = False
    """Whether it ends inside a run that is too long for one page."""
