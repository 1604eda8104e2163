"""Sealing a whole store anew with another key, while its agents work.

There is nothing to resume from but the items themselves: each says by its seal which key it has. Killed anywhere and
run again, a rotation seals what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from memadmin import audit
from sessions_app import audit_events
from sessions_app.encryption import Sealing, SessionKey, sealing_of
from sessions_app.encryption.rotation import Rotation, Standing
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionBusy
from sessions_app.stores.rewriting import Changes, Rewriter, rewriter_for

ROUNDS = 3
"""How often what agents have sealed with the old key meanwhile, or held, is taken up again."""


class RotationRefused(Exception):
    """Nothing was changed; the message says why."""


@dataclass
class RotationReport:
    """What came of it. Sessions are named by the ids that they are stored under."""

    sessions: int = 0
    """Read to the end, at the last reading."""
    resealed: int = 0
    """Items that were sealed anew in this run; in a dry run, that would be."""
    standings: Counter[Standing] = field(default_factory=Counter)
    """Items by how they stand, at the last reading."""
    unreadable: dict[str, int] = field(default_factory=dict)
    """Sessions with items that neither key opens, and how many."""
    left: dict[str, int] = field(default_factory=dict)
    """Sessions with items of the old key, and how many."""
    busy: list[str] = field(default_factory=list)
    """Those among them that somebody held all the time."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing needs the old key any more. What no key opens needs neither."""
        return not self.left


def rotate_key(
    store: SessionStore,
    *,
    old: str,
    new: str,
    dry_run: bool = False,
    report_session: Callable[[], object] = lambda: None,
) -> RotationReport:
    """Seals what the old key opens with the new one, which the store is declared to use from the start on.

    Afterwards every item is read again, and the report tells how the store stands. A dry run only reads. Raises
    RotationRefused, CannotRewrite and StoreUnavailable.
    """
    sealing = sealing_of(store)
    keys = checked_keys(store, sealing, old, new)
    report = RotationReport()
    rewriter = rewriter_for(store, Capability.REPLACE_ITEMS)
    if dry_run:
        read_again(store, sealing, keys, rewriter.session_ids(), report, report_session)
        report.resealed = report.standings[Standing.OLD]
        return report
    begin(store, new)
    waiting: Iterable[str] = rewriter.session_ids()
    for turn in range(ROUNDS):
        busy = set()
        for session_id in waiting:
            if not rotate_session(store, sealing, keys, rewriter, session_id, report):
                busy.add(session_id)
            if turn == 0:
                report_session()
        read_again(store, sealing, keys, rewriter.session_ids(), report, lambda: None)
        report.busy = sorted(busy & report.left.keys())
        waiting = list(report.left)
        if not waiting:
            break
    end(store, report)
    return report


def checked_keys(store: SessionStore, sealing: Sealing, old: str, new: str) -> tuple[SessionKey, SessionKey]:
    found = [sealing.keys.get(name) for name in (old, new)]
    for name, key in zip((old, new), found, strict=True):
        if key is None:
            raise RotationRefused(sealing.keys.why_not(name))
    before, after = found
    assert before
    assert after
    if before.is_same_as(after):
        raise RotationRefused(f"{old} and {new} are the same key under two names.")
    if sealing.key_name not in (old, new):
        named = f"uses the key {sealing.key_name}" if sealing.key_name else "names no key"
        raise RotationRefused(f"The store {store} {named}. Say with store_key which one its agents have used so far.")
    return before, after


@transaction.atomic
def begin(store: SessionStore, new: str) -> None:
    """From here on the new key is the store's: agents that write meanwhile have it."""
    audit.record(audit_events.ROTATION_BEGUN, target=store)
    SessionStore.objects.filter(pk=store.pk).exclude(encryption_key=new).update(encryption_key=new)
    store.encryption_key = new


def rotate_session(
    store: SessionStore,
    sealing: Sealing,
    keys: tuple[SessionKey, SessionKey],
    rewriter: Rewriter,
    session_id: str,
    report: RotationReport,
) -> bool:
    """Seals one session anew, a chunk at a time, so that its agent waits for a moment only. Whether nobody held it."""
    rotation = Rotation.of(*keys, sealing.wrapper_ids.of(session_id))
    chunk = 0

    def decide(items: Sequence[StoredItem]) -> Changes:
        old = [item for item in items if rotation.standing(item) == Standing.OLD]
        return Changes(texts={item.id: rotation.resealed(item) for item in old})

    def before_writing(changes: Changes) -> None:
        nonlocal chunk
        chunk = len(changes.texts)
        records = SessionRecord.objects.filter(store_id=store.pk, session_id=session_id)
        record = records.first()
        counters = {"items": chunk}
        audit.record(
            audit_events.SESSION_RESEALED, target=record, subject=record and record.subject_id, counters=counters
        )
        # What an inspection has found about the old seals is over. Without a lock that writers would wait for.
        records.update(inspected_count=-1)

    place: Position | None = None
    try:
        while True:
            chunk = 0
            place = rewriter.change_items(session_id, place, decide=decide, before_writing=before_writing)
            report.resealed += chunk
            if place is None:
                return True
    except SessionBusy:
        return False


def read_again(
    store: SessionStore,
    sealing: Sealing,
    keys: tuple[SessionKey, SessionKey],
    session_ids: Iterable[str],
    report: RotationReport,
    report_session: Callable[[], object],
) -> None:
    """Reads every item of the store and notes how it stands. Takes no lock."""
    backend = backend_for(store)
    report.sessions, report.standings, report.left, report.unreadable = 0, Counter(), {}, {}
    for session_id in session_ids:
        rotation = Rotation.of(*keys, sealing.wrapper_ids.of(session_id))
        found = Counter(rotation.standing(item) for item in backend.every_item(session_id))
        report.sessions += 1
        report.standings += found
        if found[Standing.OLD]:
            report.left[session_id] = found[Standing.OLD]
        if found[Standing.UNREADABLE]:
            report.unreadable[session_id] = found[Standing.UNREADABLE]
        report_session()


@transaction.atomic
def end(store: SessionStore, report: RotationReport) -> None:
    audit.record(
        audit_events.ROTATION_ENDED,
        target=store,
        outcome="succeeded" if report.is_complete else "failed",
        reason_code="complete" if report.is_complete else "old_key_in_use",
        counters={
            "sessions": report.sessions,
            "items": report.resealed,
            "unreadable": sum(report.unreadable.values()),
            "left": sum(report.left.values()),
            "busy": len(report.busy),
        },
    )
