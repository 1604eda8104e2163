"""Purge: removes encrypted items that agents no longer read. Done as a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.runs import engine
from memadmin.runs.engine import Lease, UnstoredLease, Wait
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app import audit_events
from sessions_app.encryption import Sealing, sealing_of
from sessions_app.encryption.purging import Purge, earliest_kept
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.services.store_walk import START, each_session
from sessions_app.stores.base import Capability, SessionBusy, StoreUnavailable
from sessions_app.stores.rewriting import Changes, Rewriter, rewriter_for
from sessions_app.stores.sealed import sealed_backend_for

RUN_KIND = "purge"

BUSY = "busy"
"""Exception code: an agent held the session all the time; the next purge includes it."""

HELD = "held"
"""Exception code: the session is under a legal hold."""


class PurgeRefused(Exception):
    """Nothing was removed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """Numbers of a purge."""

    sessions: int
    """Sessions examined."""
    purged_sessions: int
    purged: int
    """Items removed; in a dry run, items that would be removed."""
    unproven: int
    """Removed items with a time that no loaded key proves."""
    kept: int
    """Expired items that stay because another item of their turn, or their call or output, stays."""
    busy: int
    """Sessions that an agent held all the time."""

    @classmethod
    def of(cls, run: Run) -> PurgeReport:
        counts = {name: run.counters.get(name, 0) for name in COUNTERS}
        return cls(sessions=run.done, busy=sum(count for _, _, count in run.exceptions), **counts)


COUNTERS = {
    "purged_sessions": "Sessions with removed items",
    "purged": "Items removed",
    "unproven": "Removed without proof of their time",
    "kept": "Expired items kept with their turn",
}
"""Labels of the counters of a run."""


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """Preview of a purge. A purge is requested with its preview, and removes nothing that is newer."""

    store: SessionStore
    before: datetime
    """Items encrypted before this instant would be removed."""
    report: PurgeReport


def preview_purge(store: SessionStore, *, older_than: timedelta | None = None) -> PurgePreview:
    """Counts what a purge would remove, and removes nothing. Raises PurgeRefused, CannotRewrite and StoreUnavailable.

    Needs no key: the envelope contains the time. With a loaded key times are proven, and a call stays with an output
    that stays; without, whole turns go.
    """
    before = checked_instant(store, older_than)
    rewriter = rewriter_for(store, Capability.ERASE_ITEMS)
    run = Run(kind=RUN_KIND, parameters=parameters_of(store, before), counters={}, exceptions=[], cursor=START)
    purge(UnstoredLease(run), store, before, rewriter, dry_run=True)
    return PurgePreview(store, before, PurgeReport.of(run))


def purge_expired(preview: PurgePreview, *, watch: Callable[[Run], object] = lambda run: None) -> PurgeReport:
    """Purges a store in this process, of what was previewed. Returns the numbers.

    What agents read does not change, since they read none of it. Raises CannotRewrite, and StoreUnavailable when the
    run has to wait.
    """
    run = engine.carry_out(request_purge(preview), watch=watch)
    if not run.is_finished:
        raise StoreUnavailable(f"{run} is {run.get_state_display()}. {run.reason}".strip())
    return PurgeReport.of(run)


def checked_instant(store: SessionStore, older_than: timedelta | None) -> datetime:
    """Items encrypted before this instant may be deleted. Raises PurgeRefused."""
    ttl = sealing_of(store).declared_ttl
    if ttl is None:
        raise PurgeRefused(
            f"The ttl of the agents of {store} is not declared, so they may still read any item. Declare it with"
            f" store_key {store} --ttl SECONDS, or on the page of the store."
        )
    if older_than is not None and older_than < ttl:
        raise PurgeRefused(
            f"Agents of {store} still read items younger than {int(ttl.total_seconds()):,} seconds. Use"
            " --older-than with at least"
            " that age, or set a shorter ttl with store_key."
        )
    return earliest_kept(now(), ttl, older_than)


def parameters_of(store: SessionStore, before: datetime) -> dict[str, object]:
    return {"store": store.pk, "before": before.isoformat()}


@transaction.atomic
def request_purge(preview: PurgePreview) -> Run:
    """Requests a run that removes what was previewed."""
    audit.record(audit_events.PURGE_BEGUN, target=preview.store)
    total = rewriter_for(preview.store).session_count()
    return request_run(RUN_KIND, parameters=parameters_of(preview.store, preview.before), total=total, cursor=START)


def work(lease: Lease) -> None:
    """Raises what the lease raises, and Wait while the store is away."""
    store = SessionStore.objects.get(pk=lease.run.parameters["store"])
    before = datetime.fromisoformat(lease.run.parameters["before"])
    try:
        purge(lease, store, before, rewriter_for(store, Capability.ERASE_ITEMS), dry_run=False)
    except StoreUnavailable as problem:
        raise Wait(f"The store {store.name} is not responding.") from problem


def purge(lease: Lease, store: SessionStore, before: datetime, rewriter: Rewriter, *, dry_run: bool) -> None:
    sealing = sealing_of(store)
    for session_id in each_session(lease, rewriter):
        if not dry_run:
            wait_while_read(store, before)
        decision = Purge(before)
        decision.learn(renewing(lease, sealed_backend_for(store, opens=True).every_item(session_id)))
        try:
            purge_session(lease, store, sealing, rewriter, session_id, decision, dry_run=dry_run)
        except SessionBusy:
            with lease.chunk() as run:
                run.add_exception(BUSY, store.name)
        except DeletionRefused:
            with lease.chunk() as run:
                run.add_exception(HELD, store.name)
        with lease.chunk() as run:
            run.count(kept=decision.kept_expired)


def wait_while_read(store: SessionStore, before: datetime) -> None:
    """Raises Wait if agents may read items that the purge would remove: the declaration changed since its preview."""
    store.refresh_from_db(fields=["encryption_ttl_seconds"])
    ttl = sealing_of(store).declared_ttl
    if ttl is None:
        raise Wait(f"The ttl of the agents of {store.name} is no longer declared. Declare it, or cancel this run.")
    if before > earliest_kept(now(), ttl, None):
        raise Wait(f"Agents of {store.name} read items for longer than at the preview. Cancel this run or let it wait.")


def renewing(lease: Lease, items: Iterable[StoredItem]) -> Iterator[StoredItem]:
    for item in items:
        lease.keep()
        yield item


def purge_session(
    lease: Lease,
    store: SessionStore,
    sealing: Sealing,
    rewriter: Rewriter,
    session_id: str,
    purge: Purge,
    *,
    dry_run: bool,
) -> None:
    """Whole turns, a chunk at a time, each under the agents' lock."""
    seals = sealing.of_session(session_id)
    chunk: list[StoredItem] = []

    def decide(items: Sequence[StoredItem]) -> Changes:
        # May be called again with the same items, after a conflict with an agent.
        chunk.clear()
        purge.kept_expired = kept_before
        examined = seals.examined(items, at=now(), opens=True)
        gone = purge.goes(examined)
        chunk.extend(item for item in examined if item.id in gone)
        return Changes() if dry_run else Changes(gone=gone)

    def before_writing(changes: Changes) -> None:
        records = SessionRecord.objects.filter(store_id=store.pk, session_id=session_id)
        record = records.first()
        check_deletion(records=[record.pk] if record else ())
        audit.record(
            audit_events.SESSION_PURGED,
            target=record,
            subject=record and record.subject_id,
            counters={"items": len(changes.gone)},
        )
        records.inspect_again()

    place: Position | None = None
    while True:
        kept_before = purge.kept_expired
        with lease.chunk() as run:
            place = rewriter.change_items(session_id, place, decide=decide, before_writing=before_writing)
            run.count(
                purged=len(chunk),
                unproven=sum(item.seal is not None and not item.seal.is_proven for item in chunk),
            )
            if chunk and run.cursor.get("counted") != session_id:
                run.count(purged_sessions=1)
                run.cursor = {**run.cursor, "counted": session_id}
        if place is None:
            return


def finish(run: Run) -> None:
    """Records the numbers, in the transaction in which the run ends."""
    report = PurgeReport.of(run)
    audit.record(
        audit_events.PURGE_ENDED,
        target=SessionStore.objects.get(pk=run.parameters["store"]),
        counters={
            "sessions": report.purged_sessions,
            "items": report.purged,
            "unproven": report.unproven,
            "busy": report.busy,
        },
    )
