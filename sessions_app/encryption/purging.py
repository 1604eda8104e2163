"""Expired items of a session that may be deleted: whole turns, and no call without its output.

The time of an envelope is in clear text, and cannot be verified without its key. That is good enough, because whoever
could have changed the time could have deleted the row as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sessions_app.items import SealState, StoredItem
from sessions_app.timeline.decode import decode
from sessions_app.timeline.pairing import call_key, output_key


@dataclass
class Purge:
    """Decides on the items of one session, which come examined, and decrypted if the key is loaded."""

    before: datetime
    """Items of which the time is before this instant may be deleted."""
    time_of: Callable[[StoredItem], datetime | None] = field(default=lambda item: encrypted_at(item))
    """The time of an item that counts; None: it stays."""
    kept_keys: set[tuple[str, str]] = field(default_factory=set)
    """Calls and outputs of the items that stay, as far as they can be read."""
    kept_expired: int = 0
    """Number of items that are old enough but stay with others."""

    def learn(self, items: Iterable[StoredItem]) -> None:
        """All items of the session, before any decision: a call is deleted with its output or not at all."""
        old = []
        for turn in turns(items):
            keys = pairing_keys(turn)
            if not self._is_old(turn):
                self.kept_keys |= keys
            elif keys:
                old.append(keys)
        # An item that stays because of another turn may be the other half of a third one.
        while staying := [keys for keys in old if keys & self.kept_keys and not keys <= self.kept_keys]:
            self.kept_keys.update(*staying)

    def goes(self, items: Iterable[StoredItem]) -> set[str]:
        """Ids of the items to delete, in whole turns."""
        gone = set()
        for turn in turns(items):
            if self._is_old(turn) and not pairing_keys(turn) & self.kept_keys:
                gone |= {item.id for item in turn}
            else:
                self.kept_expired += sum(self._may_go(item) for item in turn)
        return gone

    def _is_old(self, turn: Sequence[StoredItem]) -> bool:
        return all(self._may_go(item) for item in turn)

    def _may_go(self, item: StoredItem) -> bool:
        moment = self.time_of(item)
        return moment is not None and moment < self.before


def encrypted_at(item: StoredItem) -> datetime | None:
    """The time in an item's envelope; an envelope that was tampered with has none."""
    return None if item.seal is None or item.seal.state == SealState.TAMPERED else item.seal.sealed_at


def encrypted_or_written_at(item: StoredItem) -> datetime | None:
    """The time in an item's envelope, and of another item the time that the store has."""
    return item.written_at if item.seal is None else encrypted_at(item)


def earliest_kept(now: datetime, ttl: timedelta, older_than: timedelta | None) -> datetime:
    """Never an item that agents still read, whatever limit is asked for."""
    return now - max(ttl, older_than or timedelta())


def turns(items: Iterable[StoredItem]) -> Iterator[list[StoredItem]]:
    """Items that were written together; where a store keeps no times, those that were encrypted one after the other,
    with no second between them: the seconds of one turn may end within it."""
    turn: list[StoredItem] = []
    for item in items:
        if turn and not are_together(turn[-1], item):
            yield turn
            turn = []
        turn.append(item)
    if turn:
        yield turn


def are_together(item: StoredItem, following: StoredItem) -> bool:
    if item.written_at or following.written_at:
        return item.written_at == following.written_at
    if not item.seal or not following.seal or not item.seal.sealed_at or not following.seal.sealed_at:
        return False
    return abs(following.seal.sealed_at - item.seal.sealed_at) <= timedelta(seconds=1)


def pairing_keys(turn: Sequence[StoredItem]) -> set[tuple[str, str]]:
    """Keys that the item shares with its other halves; empty for an undecrypted item."""
    entries = [decode(item) for item in turn]
    return {key for entry in entries for key in (call_key(entry), output_key(entry)) if key}
