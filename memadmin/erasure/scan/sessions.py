"""Search for people's sessions by key in every store, and in the items of stores outside of our database.

A session is a person's if its record belongs to one of the subjects, or if it has no owner on record and a pattern of
its store reads one of the person's ids from its id.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import CharField, F, Func
from django.db.models.functions import Now

from memadmin import audit
from memadmin.audit.log import erasing as audit_erasing
from memadmin.audit.models import AuditDetail
from memadmin.erasure import audit_events
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.scan.people import NOBODY, Cases, People, ScannedPerson
from memadmin.erasure.scan.progress import Progress
from memadmin.erasure.scan.tables import OwnSessions
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.away import store_steps
from memadmin.runs.engine import Lease, NeedsDecision
from memadmin.runs.models import Run
from sessions_app.items import can_be_registered
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore
from sessions_app.patterns import Pattern
from sessions_app.registry import MAIN_KIND
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.services.re_erasure import erased_record
from sessions_app.stores import backend_for
from sessions_app.stores.base import UNCAPPED, Capability, SessionUnreadable, StoreUnavailable
from sessions_app.stores.kinds import kind_of
from sessions_app.stores.sqlalchemy.postgres import table_identifier

PAGE_SESSIONS = 200

OIDS = "SELECT to_regclass(%s)::oid, to_regclass(%s)::oid"

FORGOTTEN = """
SELECT wanted, r.subject_id FROM (
    SELECT wanted, memadmin_session_digest(%s, wanted) AS digest FROM unnest(%s::text[]) AS wanted OFFSET 0
) AS asked
JOIN sessions_app_sessionrecord AS r ON r.session_id = asked.digest
WHERE r.is_forgotten AND r.subject_id = ANY (%s::uuid[])
"""
"""The digest of an id names the store, too; OFFSET 0 keeps it from being computed for every row."""


@dataclass
class Owners:
    """Finds the cases to which sessions of a store belong."""

    people: People
    store: SessionStore

    def __post_init__(self) -> None:
        self._patterns = [
            (Pattern.parse(row.pattern), row.subject_kind) for row in SessionIdPattern.objects.of(self.store)
        ]

    def split(self, session_ids: Sequence[str]) -> tuple[dict[str, Cases], dict[str, Cases]]:
        """Cases by session id: for sessions on record, and for strays, which no record leads to. Two queries."""
        # Ids that PostgreSQL does not take are on no record.
        storable = [each for each in session_ids if can_be_registered(each)]
        records = SessionRecord.objects.filter(store=self.store, session_id__in=storable)
        subjects = dict(records.values_list("session_id", "subject_id"))
        of_subjects = self.people.subjects
        recorded = {each: of_subjects[subject] for each, subject in subjects.items() if subject in of_subjects}
        named = {each: self.named_by(each) for each in session_ids if subjects.get(each) is None}
        stray = {each: cases for each, cases in named.items() if cases}
        for session_id, subject_id in self.forgotten(storable):
            stray[session_id] = stray.get(session_id, NOBODY) | of_subjects[subject_id]
        return recorded, stray

    def forgotten(self, session_ids: Sequence[str]) -> list[tuple[str, UUID]]:
        """Pairs of a session id and its subject, for erased sessions to which an agent has written again."""
        with connection.cursor() as cursor:
            cursor.execute(FORGOTTEN, [self.store.pk, list(session_ids), list(self.people.subjects)])
            return list(cursor.fetchall())

    def owners(self, session_ids: Sequence[str]) -> dict[str, Cases]:
        recorded, stray = self.split(session_ids)
        return {each: recorded.get(each, NOBODY) | stray.get(each, NOBODY) for each in {*recorded, *stray}}

    def named_by(self, session_id: str) -> Cases:
        """Cases whose person has the id that a pattern of the store reads from the session id.

        An id that only contains the person's is somebody else's just as well: it is found as a text, and stays.
        """
        for pattern, kind in self._patterns:
            if match := pattern.match(session_id):
                # The first that matches decides, as for the registry.
                return self.people.keys.get((kind, match.subject), NOBODY)
        return NOBODY


def agents_tables(people: People) -> dict[int, OwnSessions]:
    """The agents' tables in our own database, by their oid."""
    found: dict[int, OwnSessions] = {}
    for store in SessionStore.objects.in_this_database():
        owners = Owners(people, store)
        with connection.cursor() as cursor:
            names = (store.sessions_table, store.messages_table)
            cursor.execute(OIDS, [table_identifier(name).as_string(None) for name in names])
            for oid in cursor.fetchone():
                if oid is not None:
                    found[int(oid)] = owners.owners
    return found


def is_here(store: SessionStore) -> bool:
    """Whether the store's rows are in our own database, whose tables are all searched."""
    return store.kind == MAIN_KIND


def search_stores(people: People, progress: Progress) -> dict[str, StoreUnavailable]:
    """Searches every store that is not done, for those who did not leave it out; returns those that do not respond,
    with their problems. One that was never attached is not waited for.
    """
    away: dict[str, StoreUnavailable] = {}
    for store in SessionStore.objects.order_by("name"):
        part = part_of(store.name)
        if progress.is_done(part):
            continue
        if wanted := people.searched_in(store.name):
            try:
                search_store(store, people, wanted, progress, part)
            except StoreUnavailable as problem:
                progress.give_up(part)
                if store.was_attached():
                    away[store.name] = problem
                continue
        progress.finish(part)
    return away


def part_of(store: str) -> str:
    """Name of the part of a scan that is a store."""
    return f"store {store}"


def search_store(store: SessionStore, people: People, wanted: Cases, progress: Progress, part: str) -> None:
    backend, owners = backend_for(store), Owners(people, store)
    may_erase = Capability.ERASE_SESSIONS in backend.capabilities
    at = progress.begin(part)
    for page, following in session_pages(store, at or ""):
        recorded, stray = owners.split(page)
        rows = 0
        for session_id in page:
            strays = stray.get(session_id, NOBODY)
            if found := strays & wanted:
                # One that has no items is there, too.
                count = max(backend.count(session_id, cap=UNCAPPED), 1)
                code = "" if can_be_registered(session_id) else Left.ODD_ID.value
                progress.found(found, store.name, code=code if may_erase else Left.CANNOT_ERASE.value, count=count)
            others = wanted - strays - recorded.get(session_id, NOBODY)
            if others and people.finder and not is_here(store):
                rows += search_session(store, session_id, people, others, progress)
        progress.move(following, rows=rows)


def search_session(store: SessionStore, session_id: str, people: People, others: Cases, progress: Progress) -> int:
    """Searches the items of a session for those whose it is not; returns their number."""
    rows = 0
    found: Counter[int] = Counter()
    try:
        for stored in backend_for(store).every_item(session_id):
            rows += 1
            found.update(people.named_in(stored.raw) & others)
            progress.keep()
    except SessionUnreadable:
        # The files of a local store are searched byte by byte besides.
        if kind_of(store).watched_field is None:
            progress.found(others, store.name, code=Left.NOT_SEARCHED.value)
    for case, count in found.items():
        progress.found([case], store.name, code=Left.OTHERS_TEXT.value, count=count)
    return rows


def session_pages(store: SessionStore, cursor: str) -> Iterator[tuple[list[str], str]]:
    """Pages of session ids, each with the cursor of the next one. Of a store that lists none: those on record.

    Raises StoreUnavailable.
    """
    backend = backend_for(store)
    if Capability.ENUMERATE in backend.capabilities:
        while True:
            page = backend.enumerate_sessions(cursor, limit=PAGE_SESSIONS)
            yield [found.session_id for found in page.sessions], page.next_cursor
            if not page.next_cursor:
                return
            cursor = page.next_cursor
    else:
        known = SessionRecord.objects.filter(store=store, is_forgotten=False)
        records = known.filter(session_id__gt=cursor).order_by("session_id")
        while page_ids := list(records.values_list("session_id", flat=True)[:PAGE_SESSIONS]):
            yield page_ids, page_ids[-1]
            records = records.filter(session_id__gt=page_ids[-1])


def erase_strays(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> dict[str, StoreUnavailable]:
    """Erases sessions that are the person's and that no record leads to, as `Sessions` erases the others; returns the
    stores that do not respond, with their problems. Raises what the lease raises.
    """
    people = People([ScannedPerson(request.pk, scope.group, keys=scope.keys)])
    away: dict[str, StoreUnavailable] = {}
    for store in SessionStore.objects.exclude(name__in=left_out_of([request])[request.pk]).order_by("name"):
        backend, owners = backend_for(store), Owners(people, store)
        if Capability.ERASE_SESSIONS not in backend.capabilities:
            continue
        try:
            for page, _ in session_pages(store, ""):
                # Others are named by the scan: the registry takes no mark that they are erased.
                for session_id in sorted(filter(can_be_registered, owners.split(page)[1])):
                    erase_stray(lease, request, store, session_id)
                lease.keep()
        except StoreUnavailable as problem:
            if store.was_attached():
                away[store.name] = problem
    return away


def erase_stray(lease: Lease, request: SubjectRequest, store: SessionStore, session_id: str) -> None:
    backend = backend_for(store)

    def erase(run: Run, at_most: int) -> int:
        record = (
            erased_record(store, session_id) or SessionRecord.objects.filter(store=store, session_id=session_id).first()
        )
        try:
            check_deletion(records=[record.pk] if record else [], subjects=[request.subject_id])
        except DeletionRefused as problem:
            sentence = "A legal hold keeps data that came back. Resume this run when it is released."
            raise NeedsDecision(sentence) from problem
        deleted = backend.delete_some(session_id, at_most=at_most)
        if deleted.count:
            audit.record(
                audit_events.ROWS_ERASED,
                target=request,
                subject=request.subject_id,
                counters={"rows": deleted.count, "held": 0},
            )
            store_steps([request.pk], store.name).update(erased=F("erased") + deleted.count, changed_at=Now())
        if not deleted.left:
            forget(store, session_id, request)
        return deleted.count if deleted.left else 0

    with suppress(DeletionRefused):
        lease.in_chunks(erase)


def forget(store: SessionStore, session_id: str, request: SubjectRequest) -> None:
    """Takes the id out of the record with which the store has marked the session as erased, and out of the log."""
    digest = Func(F("store_id"), F("session_id"), function="memadmin_session_digest", output_field=CharField())
    for record in SessionRecord.objects.filter(store=store, session_id=session_id, erased_at__isnull=False):
        SessionRecord.objects.filter(pk=record.pk).update(
            session_id=digest, is_forgotten=True, ticket="", agent="", labels=[]
        )
        details = AuditDetail.objects.filter(event__object_ref=record.pk).values_list("pk", flat=True)
        audit_erasing.erase_details_of(list(details), subject=request.subject_id)


def left_out_of(requests: Iterable[SubjectRequest]) -> dict[int, set[str]]:
    """Stores without which a person decided to end, by case. One query."""
    found: dict[int, set[str]] = defaultdict(set)
    rows = ErasureStep.objects.filter(request__in=requests, state=ErasureStep.State.LEFT_OUT).exclude(place="")
    for case, place in rows.values_list("request", "place"):
        found[case].add(place)
    return found
