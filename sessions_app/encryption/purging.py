"""What of a sealed session agents no longer read, and may go: whole turns, and no call without its output.

The time of an envelope stands in it in clear, and without its key nobody can prove it. What makes it good enough is
that who could have changed the time could have deleted the row as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from sessions_app.items import SealState, StoredItem
from sessions_app.timeline.decode import decode
from sessions_app.timeline.pairing import call_key, output_key


@dataclass
class Purge:
    """Decides on the items of one session, which come examined, and opened where a key is here."""

    before: datetime
    """What was sealed before this instant may go."""
    kept_keys: set[tuple[str, str]] = field(default_factory=set)
    """The calls and outputs, as far as they can be read, of what stays."""
    kept_expired: int = 0
    """How many would be old enough, and stay with others."""

    def learn(self, items: Iterable[StoredItem]) -> None:
        """The whole session, before anything is decided: a call goes with its output or not at all."""
        old = []
        for turn in turns(items):
            keys = pairing_keys(turn)
            if not self._is_old(turn):
                self.kept_keys |= keys
            elif keys:
                old.append(keys)
        # What stays because of another turn may be the other half of a third one.
        while staying := [keys for keys in old if keys & self.kept_keys and not keys <= self.kept_keys]:
            self.kept_keys.update(*staying)

    def goes(self, items: Iterable[StoredItem]) -> set[str]:
        """The ids of the items that go, of whole turns."""
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
        """By the time that its envelope says; one that was tampered with says nothing."""
        seal = item.seal
        if seal is None or seal.sealed_at is None or seal.state == SealState.TAMPERED:
            return False
        return seal.sealed_at < self.before


def earliest_kept(now: datetime, ttl: timedelta, older_than: timedelta | None) -> datetime:
    """Nothing that agents still read, whatever somebody asks for."""
    return now - max(ttl, older_than or timedelta())


def turns(items: Iterable[StoredItem]) -> Iterator[list[StoredItem]]:
    """Items that were written together; where a store keeps no times, those that were sealed in the same second."""
    for moment, turn in groupby(items, key=lambda item: item.written_at or (item.seal and item.seal.sealed_at)):
        if moment is None:
            yield from ([item] for item in turn)
        else:
            yield list(turn)


def pairing_keys(turn: Sequence[StoredItem]) -> set[tuple[str, str]]:
    """What its items have in common with their other halves; empty for what is closed."""
    entries = [decode(item) for item in turn]
    return {key for entry in entries for key in (call_key(entry), output_key(entry)) if key}
