"""Repeats the erasures of the ledger that a restored database does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from django.db import transaction
from django.utils.timezone import now

from memadmin.erasure.deadlines import due_date
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.suppression.entering import check_again, known_head, note_entry
from memadmin.erasure.suppression.ledger import Entry, own_ledger, session_digest, subject_digest
from memadmin.erasure.work import RUN_KIND
from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app.models import SessionRecord, Subject, SubjectAlias, SubjectSource
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.subjects import merge_target

State = SubjectRequest.State


@dataclass
class Replayed:
    """What a replay did."""

    entries: int = 0
    subjects: int = 0
    """Subjects that were back, and were erased again."""
    unfinished: list[str] = field(default_factory=list)
    """Requests whose erasure waits for something, with the reason: the database is not served before they are done."""


def replay(*, watch: Callable[[Run], object] = lambda run: None) -> Replayed:
    """Erases again whoever was erased after this database was saved. Safe to repeat. Raises LedgerError."""
    ledger, done = own_ledger(), Replayed()
    if ledger is None:
        return done
    entries = [entry for entry in ledger.entries() if entry.number > known_head()]
    # Stores of other systems were perhaps restored, too: their sessions must be in the registry.
    discover_sessions()
    for entry, subjects in found_again(entries):
        done.entries += 1
        is_finished = True
        for subject in subjects:
            request = approved_again(subject, entry)
            assert request.run is not None, "it is approved"
            engine.carry_out(request.run, watch=watch)
            request.refresh_from_db()
            if request.scans:
                done.subjects += 1
            else:
                is_finished = False
                done.unfinished.append(f"{request}: {request.run.reason}")
        if is_finished and not done.unfinished:
            note_entry(entry)
    check_again()
    return done


def found_again(entries: Iterable[Entry]) -> Iterator[tuple[Entry, list[Subject]]]:
    """Each entry with its subjects that are in this database, found by the digests of all ids. Two passes over ids."""
    entries = list(entries)
    wanted_subjects = {digest: entry.number for entry in entries for digest in entry.subjects}
    wanted_sessions = {digest: entry.number for entry in entries for digest in entry.sessions}
    found: dict[int, set[Subject]] = {entry.number: set() for entry in entries}
    for alias in SubjectAlias.objects.select_related("subject").iterator():
        if number := wanted_subjects.get(subject_digest(alias.kind, alias.key)):
            found[number].add(merge_target(alias.subject))
    records = SessionRecord.objects.select_related("store", "subject").filter(erased_at__isnull=True)
    strays: dict[int, list[SessionRecord]] = {}
    for record in records.iterator():
        if number := wanted_sessions.get(session_digest(record.store.name, record.session_id)):
            if record.subject is None:
                strays.setdefault(number, []).append(record)
            else:
                found[number].add(merge_target(record.subject))
    for number, lost in strays.items():
        # Without the person's ids, as an erasure leaves them: the sessions are erased all the same.
        owner = next(iter(found[number]), None) or Subject.objects.create()
        for record in lost:
            SessionRecord.objects.filter(pk=record.pk, session_id=record.session_id).update(
                subject=owner, subject_source=SubjectSource.OPERATOR
            )
        found[number].add(owner)
    for entry in entries:
        yield entry, sorted(found[entry.number], key=lambda subject: subject.pk)


@transaction.atomic
def approved_again(subject: Subject, entry: Entry) -> SubjectRequest:
    """The request that repeats an erasure: two people approved it before the backup was restored."""
    request = (
        SubjectRequest.objects.select_for_update(of=("self",))
        .filter(subject=subject, kind=SubjectRequest.Kind.ERASURE, closed_at__isnull=True)
        .first()
    )
    if request is None:
        today = now().date()
        request = SubjectRequest.objects.create(
            kind=SubjectRequest.Kind.ERASURE,
            subject=subject,
            channel=SubjectRequest.Channel.REPLAY,
            received_on=today,
            due_on=due_date(today),
        )
    if request.run is None:
        run = request_run(RUN_KIND, parameters={"replays": entry.number})
        SubjectRequest.objects.filter(pk=request.pk).update(run=run, state=State.APPROVED, approved_at=now())
    elif not request.is_started:
        Run.objects.filter(pk=request.run.pk).update(retry_at=None, parameters={"replays": entry.number})
    request.refresh_from_db()
    return request
