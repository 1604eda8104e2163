"""Removing what agents sealed and no longer read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now

from memadmin import audit
from sessions_app import audit_events
from sessions_app.encryption import Sealing, sealing_of
from sessions_app.encryption.purging import Purge, earliest_kept
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import Capability, SessionBusy
from sessions_app.stores.rewriting import Changes, Rewriter, rewriter_for
from sessions_app.stores.sealed import sealed_backend_for


class PurgeRefused(Exception):
    """Nothing was removed; the message says why."""


@dataclass
class PurgeReport:
    sessions: int = 0
    """Looked at."""
    purged_sessions: int = 0
    purged: int = 0
    """Items that went; in a dry run, that would go."""
    unproven: int = 0
    """How many of them had a time that no key here proves."""
    kept: int = 0
    """Items as old that stay, for the sake of others of their turn or of their other half."""
    busy: list[str] = field(default_factory=list)
    """Sessions that somebody held all the time; the next purge has them."""


def purge_expired(
    store: SessionStore,
    *,
    older_than: timedelta | None = None,
    dry_run: bool = False,
    report_session: Callable[[], object] = lambda: None,
) -> PurgeReport:
    """Removes sealed items that are older than agents read, or than `older_than` where that is more.

    Takes no key: the time stands in the envelope. With a key here times are proven, and a call stays with an output
    that stays; without, whole turns go. What agents read does not change in either case, since they read none of it.
    Raises PurgeRefused, CannotRewrite and StoreUnavailable.
    """
    sealing = sealing_of(store)
    if older_than is not None and older_than < sealing.ttl:
        raise PurgeRefused(
            f"Agents of {store} still read what is younger than {int(sealing.ttl.total_seconds()):,} seconds. Give at"
            " least as much, or say with store_key that they read it for less."
        )
    before = earliest_kept(now(), sealing.ttl, older_than)
    rewriter = rewriter_for(store, Capability.ERASE_ITEMS)
    report = PurgeReport()
    if not dry_run:
        with transaction.atomic():
            audit.record(audit_events.PURGE_BEGUN, target=store)
    for session_id in rewriter.session_ids():
        report.sessions += 1
        purge = Purge(before)
        purge.learn(sealed_backend_for(store, opens=True).every_item(session_id))
        try:
            purged = purge_session(store, sealing, rewriter, session_id, purge, report, dry_run=dry_run)
            report.purged_sessions += bool(purged)
        except SessionBusy:
            report.busy.append(session_id)
        report.kept += purge.kept_expired
        report_session()
    if not dry_run:
        end(store, report)
    return report


def purge_session(
    store: SessionStore,
    sealing: Sealing,
    rewriter: Rewriter,
    session_id: str,
    purge: Purge,
    report: PurgeReport,
    *,
    dry_run: bool,
) -> int:
    """A chunk of whole turns at a time, each under the agents' lock. Returns how many items went."""
    seals = sealing.of_session(session_id)
    chunk: list[StoredItem] = []
    total = 0

    def decide(items: Sequence[StoredItem]) -> Changes:
        # A chunk may be shown twice, where somebody had to be given way to.
        chunk.clear()
        purge.kept_expired = kept_before
        examined = seals.examined(items, at=now(), opens=True)
        gone = purge.goes(examined)
        chunk.extend(item for item in examined if item.id in gone)
        return Changes() if dry_run else Changes(gone=gone)

    def before_writing(changes: Changes) -> None:
        records = SessionRecord.objects.filter(store_id=store.pk, session_id=session_id)
        record = records.first()
        counters = {"items": len(changes.gone)}
        audit.record(
            audit_events.SESSION_PURGED, target=record, subject=record and record.subject_id, counters=counters
        )
        records.update(inspected_count=-1)

    place: Position | None = None
    while True:
        kept_before = purge.kept_expired
        place = rewriter.change_items(session_id, place, decide=decide, before_writing=before_writing)
        total += len(chunk)
        report.purged += len(chunk)
        report.unproven += sum(item.seal is not None and not item.seal.is_proven for item in chunk)
        if place is None:
            return total


@transaction.atomic
def end(store: SessionStore, report: PurgeReport) -> None:
    audit.record(
        audit_events.PURGE_ENDED,
        target=store,
        counters={
            "sessions": report.purged_sessions,
            "items": report.purged,
            "unproven": report.unproven,
            "busy": len(report.busy),
        },
    )
