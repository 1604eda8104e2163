"""Discovery: polls stores that cannot have triggers, and records their sessions in the registry.

Each session has a mark: if it is the same as last time, nothing was written and no row is touched.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TypedDict

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.utils.timezone import now

from memadmin import audit
from memadmin.process_metrics import counting_store_call
from memadmin.times import ZONES_SPAN
from sessions_app import audit_events
from sessions_app.items import can_be_registered
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.registry import is_discovered
from sessions_app.services.re_erasure import sweep
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, FoundSession, StoreUnavailable
from sessions_app.stores.kinds import kind_of

logger = logging.getLogger(__name__)

SESSIONS_AT_ONCE = 500

ASKED_AT_ONCE = 100
"""Number of sessions per request to a store that cannot list them."""

CLOCKS_DIFFER_BY = timedelta(minutes=10)
"""Tolerated difference of a writer's clock, or time that its transaction takes."""

LOOKED_THROUGH_AT_LEAST_EVERY = timedelta(hours=1)


@dataclass
class Discovery:
    """Result of looking through a store, in numbers of sessions."""

    sessions: int = 0
    """All sessions in the store."""
    new: int = 0
    written: int = 0
    """Registered before, and written to since."""
    missing: int = 0
    """Registered, not erased, and no longer in the store: removed by something else."""
    returned: int = 0
    """Erased, and there again."""
    odd_ids: int = 0
    """Not listed, because the registry cannot store their ids."""
    fingerprint: str = ""
    """Fingerprint of the store, taken before it was looked through."""
    began_at: str = ""
    """Beginning of this discovery. What is new in it was written after the beginning of the one before."""
    zone_check: ZoneCheck | None = None
    """Result of the last comparison of times in the writers' zone with those of discovery; None without any."""
    asked_up_to: str = ""
    """Our id of the session after which `revisit` continues; empty at the beginning of a round."""
    returned_so_far: int = 0
    """Erased sessions found again in this round of `revisit`."""
    compared: int = 0
    """Number of sessions whose times were compared this time. Not kept."""
    off_seconds: list[int] = field(default_factory=list)
    """By how much those are too early that are. Not kept."""
    returned_ids: list[str] = field(default_factory=list)
    """Sessions of this time that are to be erased again. Not kept."""


class ZoneCheck(TypedDict):
    """Whether times of sessions that were written between two discoveries lie between them."""

    zone: str
    """As which the times were read."""
    off_seconds: int
    """At least by so much they are too early; 0 if they are not."""


def discover_sessions() -> int:
    """Looks through every attached store without a fence; returns how many responded. The others wait for the next
    time.
    """
    answered = 0
    for store in SessionStore.objects.all():
        try:
            if is_discovered(store):
                with counting_store_call(store.kind):
                    found = discover_changes(store)
                if found:
                    sweep(store, found.returned_ids)
                answered += 1
        except StoreUnavailable:
            logger.warning("store %s is not responding; its new sessions are found once it responds", store.pk)
    return answered


def discover_now(store: SessionStore, *, by: User) -> Discovery:
    """Looks through one store at a user's request. Raises StoreUnavailable."""
    audit.record_alone(audit_events.DISCOVERY_ASKED, by=by, target=store)
    found = discover(store)
    sweep(store, found.returned_ids)
    return found


def discover_changes(store: SessionStore) -> Discovery | None:
    """Result of `discover`, from the last hour if nothing changed since. Raises StoreUnavailable."""
    fingerprint = backend_for(store).fingerprint()
    is_known = fingerprint and store.discovery.get("fingerprint") == fingerprint
    if is_known and store.discovered_at and now() - store.discovered_at < LOOKED_THROUGH_AT_LEAST_EVERY:
        return None
    return discover(store)


def discover(store: SessionStore) -> Discovery:
    """Looks through a store for sessions, and records the new, the written and the missing ones. Safe to repeat.

    Costs a walk over the store's list of sessions; if it has none, registered ones are requested (`revisit`). Raises
    StoreUnavailable; what was recorded until then stays.
    """
    backend = backend_for(store)
    if Capability.ENUMERATE not in backend.capabilities:
        return revisit(store)
    found = Discovery(began_at=now().isoformat(), zone_check=store.discovery.get("zone_check"))
    found.fingerprint = backend.fingerprint()
    seen, cursor, is_begun = 0, "", False
    while cursor or not is_begun:
        page = backend.enumerate_sessions(cursor, limit=SESSIONS_AT_ONCE)
        listed = [session for session in page.sessions if can_be_registered(session.session_id)]
        found.odd_ids += page.odd_ids + len(page.sessions) - len(listed)
        seen += note(store, {session.session_id: session for session in listed}, found)
        cursor, is_begun = page.next_cursor, True
    present = _records(store).on_record().filter(missing_since=None)
    # A session that is listed twice makes the sum too large, so none is missing by mistake; the next walk corrects it.
    if present.count() > seen:
        _note_missing(store)
    found.missing = _records(store).on_record().exclude(missing_since=None).count()
    _save_discovery(store, found)
    return found


def revisit(store: SessionStore) -> Discovery:
    """Requests the registered sessions that were written last, and the next of all others in turn.

    At most twice ASKED_AT_ONCE sessions each time, however many there are: so a change in one that was quiet for long
    is found after as many rounds as that takes. Raises StoreUnavailable.
    """
    # The id of a forgotten session is not known, so it cannot be requested.
    records = _records(store).filter(is_forgotten=False)
    after = store.discovery.get("asked_up_to") or None
    following = records.filter(pk__gt=after) if after else records
    in_turn = list(following.order_by("pk")[:ASKED_AT_ONCE])
    latest = set(records.newest_first()[:ASKED_AT_ONCE]) - set(in_turn)
    found = Discovery(sessions=records.on_record().count())
    returned = _note_found(store, in_turn, found)
    _note_found(store, latest, found)
    is_through = len(in_turn) < ASKED_AT_ONCE
    # The number of returned sessions is known when all were requested; until then the last one counts.
    found.returned_so_far = (store.discovery.get("returned_so_far", 0) if after else 0) + returned
    found.returned = found.returned_so_far
    if not is_through:
        found.asked_up_to = str(in_turn[-1].pk)
        found.returned = max(found.returned, store.discovery.get("returned", 0))
    found.missing = records.on_record().exclude(missing_since=None).count()
    _save_discovery(store, found)
    return found


def _note_found(store: SessionStore, records: Collection[SessionRecord], found: Discovery) -> int:
    """Requests registered sessions, and records which were written to and which are gone; returns how many erased ones
    are there again.
    """
    if not records:
        return 0
    session_ids = sorted(record.session_id for record in records)
    there = backend_for(store).look_up(session_ids)
    numbers = Discovery()
    note(store, there, numbers)
    found.written += numbers.written
    found.returned_ids += [each for each in numbers.returned_ids if each not in found.returned_ids]
    gone = [session_id for session_id in session_ids if session_id not in there]
    _records(store).on_record().filter(session_id__in=gone, missing_since=None).update(missing_since=now())
    return numbers.returned


def _save_discovery(store: SessionStore, found: Discovery) -> None:
    kept = {name: value for name, value in asdict(found).items() if name not in NOT_KEPT}
    kept["swept"] = store.discovery.get("swept", 0)
    SessionStore.objects.filter(pk=store.pk).update(discovered_at=now(), discovery=kept)
    store.refresh_from_db(fields=["discovered_at", "discovery"])


def note(store: SessionStore, sessions: Mapping[str, FoundSession], found: Discovery) -> int:
    """Records one page of sessions; returns how many of them are now registered and were not missing before."""
    if not sessions:
        return 0
    known = {record.session_id: record for record in _records(store).filter(session_id__in=list(sessions))}
    # After those on record: one that is forgotten between the two is found by the second.
    forgotten = SessionRecord.objects.forgotten(store, [each for each in sessions if each not in known])
    found.returned_ids += sorted(forgotten)
    new = [
        session for session_id, session in sessions.items() if session_id not in known and session_id not in forgotten
    ]
    written, returned, present = [], len(forgotten), 0
    for session_id, record in known.items():
        if record.erased_at:
            returned += 1
            found.returned_ids.append(session_id)
            continue
        present += record.missing_since is None
        if record.change_mark != sessions[session_id].change_mark or record.missing_since:
            written.append(record)
    found.sessions += len(sessions)
    found.new += len(new)
    found.written += len(written)
    found.returned += returned
    _check_zone(store, [record for record in written if not record.missing_since], sessions, found)
    if new or written:
        _save(store, new, written, sessions)
    return present + len(new)


def _check_zone(
    store: SessionStore, written: Sequence[SessionRecord], sessions: Mapping[str, FoundSession], found: Discovery
) -> None:
    """Compares the times of sessions that were written since the last discovery with the time of that."""
    before = store.discovery.get("began_at")
    if not before or not kind_of(store).has_zone:
        return
    for record in written:
        at = sessions[record.session_id].last_activity_at
        # Without a mark it was not found before. Where an item was taken back the time is the one from before.
        if at is None or not record.change_mark or at <= record.last_activity_at:
            continue
        off = datetime.fromisoformat(before) - at
        found.compared += 1
        if CLOCKS_DIFFER_BY < off < ZONES_SPAN:
            found.off_seconds.append(int(off.total_seconds()))
    if found.compared:
        # One agent can write any time for its own sessions, which tells nothing about those of the others.
        is_off = found.off_seconds and 2 * len(found.off_seconds) >= found.compared
        found.zone_check = ZoneCheck(zone=store.writer_timezone, off_seconds=found.off_seconds[-1] if is_off else 0)


def _save(
    store: SessionStore,
    new: Sequence[FoundSession],
    written: Collection[SessionRecord],
    sessions: Mapping[str, FoundSession],
) -> None:
    instant = now()
    with transaction.atomic(), audit.recording(audit_events.STORE_DISCOVERED) as event:
        event.target, event.is_void = store, not new
        event.counters = {"sessions": len(new)}
        SessionRecord.objects.bulk_create(
            [
                SessionRecord(
                    store=store,
                    session_id=session.session_id,
                    registered_at=session.created_at or instant,
                    last_activity_at=session.last_activity_at or instant,
                    change_mark=session.change_mark,
                    expires_at=session.expires_at,
                )
                for session in new
            ],
            ignore_conflicts=True,
        )
        # In the order of their ids, like all code that locks several.
        for record in sorted(written, key=lambda record: record.session_id):
            session = sessions[record.session_id]
            _records(store).on_record().filter(session_id=record.session_id).update(
                last_activity_at=session.last_activity_at or instant,
                activity_count=F("activity_count") + 1,
                change_mark=session.change_mark,
                missing_since=None,
                expires_at=session.expires_at,
            )


NOT_KEPT = ("returned_ids", "compared", "off_seconds")


def _note_missing(store: SessionStore) -> None:
    """Asks the store for each registered session whether it exists."""
    backend, after = backend_for(store), ""
    present = _records(store).on_record().filter(missing_since=None).order_by("session_id")
    is_begun = False
    while ids := list(
        present.filter(Q(session_id__gt=after) if is_begun else Q()).values_list("session_id", flat=True)[
            :SESSIONS_AT_ONCE
        ]
    ):
        previews = backend.previews(ids)
        gone = [session_id for session_id in ids if previews[session_id].item_count is None]
        if gone:
            _records(store).filter(session_id__in=gone).update(missing_since=now())
        after, is_begun = ids[-1], True


def _records(store: SessionStore) -> SessionRecordQuerySet:
    return SessionRecord.objects.filter(store=store)
