"""Key rotation: encrypts all items of a store with another key while its agents work. Done as a run.

Each item's envelope shows which key it has, so a rotation that was interrupted continues with what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction

from memadmin import audit
from memadmin.runs import engine
from memadmin.runs.engine import Lease, UnstoredLease, Wait
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app import audit_events
from sessions_app.encryption import Sealing, SessionKey, sealing_of
from sessions_app.encryption.rotation import ItemKeyState, Rotation
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.store_walk import START, each_session
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionBusy, StoreUnavailable
from sessions_app.stores.rewriting import Changes, Rewriter, rewriter_for

RUN_KIND = "key_rotation"

ROUNDS = 3
"""Number of times that items which agents encrypted with the old key meanwhile, or held, are tried again."""

SEAL, CHECK = "seal", "check"
"""The phases of a round: encrypt every session's items, then read every item again."""

MOST_NAMED = 20
"""Sessions that the run names; the others are counted together."""

OLD_KEY, UNREADABLE, BUSY = "old_key", "unreadable", "busy"
"""Codes of exceptions: items with the old key, items that neither key opens, sessions that an agent held."""


class RotationRefused(Exception):
    """Nothing was changed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class RotationReport:
    """Numbers of a rotation. Sessions are named by their addresses here, MOST_NAMED of them."""

    sessions: int
    """Read to the end, at the last check."""
    resealed: int
    """Items that were encrypted with the new key; in a dry run, that would be."""
    items_by_key: Counter[ItemKeyState]
    """Items by the key they have, at the last check."""
    unreadable: dict[str, int]
    """Sessions with items that neither key opens, and how many."""
    left: dict[str, int]
    """Sessions with items of the old key, and how many."""
    busy: dict[str, int]
    """Sessions among those that an agent held all the time."""

    @property
    def is_complete(self) -> bool:
        """True if no item needs the old key any more. Items that no key opens need neither."""
        return not self.left

    @classmethod
    def of(cls, run: Run) -> RotationReport:
        def places(wanted: str) -> dict[str, int]:
            return {place: count for code, place, count in run.exceptions if code == wanted}

        left = places(OLD_KEY)
        return cls(
            sessions=run.counters.get("checked", 0),
            resealed=run.counters.get("resealed", 0),
            items_by_key=Counter({each: count for each in ItemKeyState if (count := run.counters.get(each.value, 0))}),
            unreadable=places(UNREADABLE),
            left=left,
            busy={place: count for place, count in places(BUSY).items() if place in left},
        )


def rotate_key(
    store: SessionStore,
    *,
    old: str,
    new: str,
    dry_run: bool = False,
    watch: Callable[[Run], object] = lambda run: None,
) -> RotationReport:
    """Re-encrypts the items of the old key with the new one, which is the store's key from the start on.

    Every item is read again afterwards, and the report gives the numbers. A dry run only reads. Raises RotationRefused,
    CannotRewrite, and StoreUnavailable when the run has to wait for the store.
    """
    checked_keys(store, sealing_of(store), old, new)
    rewriter = rewriter_for(store, Capability.REPLACE_ITEMS)
    parameters = {"store": store.pk, "old": old, "new": new}
    if dry_run:
        cursor = {**START, "phase": CHECK, "round": ROUNDS}
        run = Run(kind=RUN_KIND, parameters=parameters, counters={}, exceptions=[], cursor=cursor)
        rotate(UnstoredLease(run), store, rewriter)
        run.counters["resealed"] = run.counters.get(ItemKeyState.OLD.value, 0)
        return RotationReport.of(run)
    run = engine.carry_out(request_rotation(store, parameters), watch=watch)
    store.refresh_from_db()
    if not run.is_finished:
        raise StoreUnavailable(f"{run} is {run.get_state_display()}. {run.reason}".strip())
    return RotationReport.of(run)


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
        raise RotationRefused(
            f"The store {store} {named}. Set with store_key the key that its agents have used so far."
        )
    return before, after


@transaction.atomic
def request_rotation(store: SessionStore, parameters: dict[str, object]) -> Run:
    """A new run, or the current one that does the same. From here on the new key is the store's: agents that write
    meanwhile have it.
    """
    SessionStore.objects.select_for_update(no_key=True).get(pk=store.pk)
    if under_way := Run.objects.unfinished().filter(kind=RUN_KIND, parameters=parameters).first():
        return under_way
    audit.record(audit_events.ROTATION_BEGUN, target=store)
    SessionStore.objects.filter(pk=store.pk).exclude(encryption_key=parameters["new"]).update(
        encryption_key=parameters["new"]
    )
    count = rewriter_for(store).session_count()
    return request_run(
        RUN_KIND,
        parameters=parameters,
        total=None if count is None else 2 * count,
        cursor={**START, "phase": SEAL, "round": 1},
    )


def work(lease: Lease) -> None:
    """Raises what the lease raises, and Wait while the store or a key is away."""
    store = SessionStore.objects.get(pk=lease.run.parameters["store"])
    try:
        rotate(lease, store, rewriter_for(store, Capability.REPLACE_ITEMS))
    except RotationRefused as problem:
        raise Wait(str(problem)) from problem
    except StoreUnavailable as problem:
        raise Wait(f"The store {store.name} is not responding.") from problem


def rotate(lease: Lease, store: SessionStore, rewriter: Rewriter) -> None:
    """Phase after phase, from the run's cursor on."""
    sealing = sealing_of(store)
    keys = checked_keys(store, sealing, lease.run.parameters["old"], lease.run.parameters["new"])
    while True:
        if lease.run.cursor["phase"] == SEAL:
            for session_id in each_session(lease, rewriter):
                rotate_session(lease, store, sealing, keys, rewriter, session_id)
            with lease.chunk() as run:
                run.counters = {"resealed": run.counters.get("resealed", 0)}
                run.exceptions = [row for row in run.exceptions if row[0] == BUSY]
                run.cursor = {**run.cursor, **START, "phase": CHECK}
        for session_id in each_session(lease, rewriter):
            check_session(lease, store, sealing, keys, session_id)
        if RotationReport.of(lease.run).is_complete or lease.run.cursor["round"] >= ROUNDS:
            return
        with lease.chunk() as run:
            run.total = None if run.total is None else run.total + 2 * (rewriter.session_count() or 0)
            run.exceptions = []
            run.cursor = {**START, "phase": SEAL, "round": run.cursor["round"] + 1}


def rotate_session(
    lease: Lease,
    store: SessionStore,
    sealing: Sealing,
    keys: tuple[SessionKey, SessionKey],
    rewriter: Rewriter,
    session_id: str,
) -> None:
    """Encrypts one session's items, a chunk at a time, so that its agent waits for a moment only."""
    rotation = Rotation.of(*keys, sealing.of_session(session_id))
    chunk = 0

    def decide(items: Sequence[StoredItem]) -> Changes:
        nonlocal chunk
        old = [item for item in items if rotation.key_state(item) == ItemKeyState.OLD]
        chunk = len(old)
        return Changes(texts={item.id: rotation.resealed(item) for item in old})

    def before_writing(changes: Changes) -> None:
        records = SessionRecord.objects.filter(store_id=store.pk, session_id=session_id)
        record = records.first()
        audit.record(
            audit_events.SESSION_RESEALED,
            target=record,
            subject=record and record.subject_id,
            counters={"items": len(changes.texts)},
        )
        # Findings about the old envelopes are outdated. Without a lock that writers would wait for.
        records.inspect_again()

    place: Position | None = None
    while True:
        try:
            with lease.chunk() as run:
                place = rewriter.change_items(session_id, place, decide=decide, before_writing=before_writing)
                run.count(resealed=chunk)
        except SessionBusy:
            with lease.chunk() as run:
                add_named(run, BUSY, store, session_id)
            return
        if place is None:
            return


def check_session(
    lease: Lease, store: SessionStore, sealing: Sealing, keys: tuple[SessionKey, SessionKey], session_id: str
) -> None:
    """Reads every item of a session and counts which key it has. Takes no lock of the store."""
    rotation = Rotation.of(*keys, sealing.of_session(session_id))
    found = Counter[ItemKeyState]()
    for item in backend_for(store).every_item(session_id):
        lease.keep()
        found[rotation.key_state(item)] += 1
    with lease.chunk() as run:
        run.count(checked=1, **{state.value: count for state, count in found.items()})
        if found[ItemKeyState.OLD]:
            add_named(run, OLD_KEY, store, session_id, found[ItemKeyState.OLD])
        if found[ItemKeyState.UNREADABLE]:
            add_named(run, UNREADABLE, store, session_id, found[ItemKeyState.UNREADABLE])


def add_named(run: Run, code: str, store: SessionStore, session_id: str, count: int = 1) -> None:
    """An exception at the session's address, since its id may be a name; the MOST_NAMED first ones one by one."""
    if sum(each == code for each, *_ in run.exceptions) >= MOST_NAMED:
        run.add_exception(code, "other sessions", count)
        return
    record_id = SessionRecord.objects.filter(store_id=store.pk, session_id=session_id).values_list("pk", flat=True)
    found = record_id.first()
    run.add_exception(code, f"/sessions/{found}/" if found else "a session that is not registered", count)


def finish(run: Run) -> None:
    """Records the numbers, in the transaction in which the run ends."""
    report = RotationReport.of(run)
    audit.record(
        audit_events.ROTATION_ENDED,
        target=SessionStore.objects.get(pk=run.parameters["store"]),
        outcome="succeeded" if report.is_complete and run.state != Run.State.CANCELLED else "failed",
        reason_code="complete" if report.is_complete else "old_key_in_use",
        counters={
            "sessions": report.sessions,
            "items": report.resealed,
            "unreadable": sum(report.unreadable.values()),
            "left": sum(report.left.values()),
            "busy": sum(report.busy.values()),
        },
    )
