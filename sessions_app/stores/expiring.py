"""What is old in a session and may go, for every kind of store that has item times: whole runs, never half of a pair.

Not for a person's right to be forgotten: there the whole session goes, whatever hangs together in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from sessions_app.items import StoredItem
from sessions_app.stores.base import Backend, Capability, NotPossible
from sessions_app.stores.kinds import backend_for, lack_of
from sessions_app.timeline.decode import Entry, decode
from sessions_app.timeline.pairing import call_key, output_key

if TYPE_CHECKING:
    from sessions_app.models import SessionStore


def expire_before(store: SessionStore, session_id: str, instant: datetime) -> int:
    """Takes the runs out of a session that ended before an instant, oldest first, up to the first that did not.

    Returns the number of items that went. An item without a time ends it, and so does a run of which an answer comes
    in a later one. In a session that nobody can read (encrypted) all is one run. Each run is a change of its own; reads
    the session once and a half. Raises NotPossible where the kind keeps no times or cannot take items out, so that
    nobody takes that for "nothing is old", and what `delete_items` raises.
    """
    backend = backend_for(store)
    for capability in (Capability.ITEM_TIMES, Capability.ERASE_ITEMS):
        if capability not in backend.capabilities:
            raise NotPossible(lack_of(store, capability))
    expired = list(_runs_before(backend, session_id, instant))
    answered_later = _output_keys(backend, session_id, after=sum(len(run) for run in expired))
    count = 0
    for run in expired:
        if any(call_key(entry) in answered_later for entry in run if call_key(entry)):
            break
        items = [_whole(backend, session_id, entry.stored) for entry in run]
        count += backend.delete_items(session_id, items)
    return count


def _runs_before(backend: Backend, session_id: str, instant: datetime) -> Iterator[list[Entry]]:
    run: list[Entry] = []
    for stored in backend.every_item(session_id):
        entry = decode(stored)
        if _begins_run(entry) and run:
            yield run
            run = []
        if stored.written_at is None or stored.written_at >= instant:
            return
        run.append(entry)
    if run:
        yield run


def _begins_run(entry: Entry) -> bool:
    return entry.type == "message" and entry.fields.get("role") == "user"


def _output_keys(backend: Backend, session_id: str, *, after: int) -> set[tuple[str, str]]:
    """The keys of the outputs behind the first `after` items."""
    keys = (
        output_key(decode(stored)) for number, stored in enumerate(backend.every_item(session_id)) if number >= after
    )
    return {key for key in keys if key}


def _whole(backend: Backend, session_id: str, stored: StoredItem) -> StoredItem:
    return stored if stored.is_whole else backend.item(session_id, stored.id)
