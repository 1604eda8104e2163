"""Repeats the erasures of the ledger that a restored database does not know.

One run carries the cases out and scans for all of them, as the run of a batch does. It stays open until their second
scans, a day later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from django.db import transaction
from django.utils.timezone import now

from memadmin.accounts.approvals.services import make_void
from memadmin.erasure import together
from memadmin.erasure.deadlines import due_date
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.preview import covered
from memadmin.erasure.suppression.entering import check_again, known_numbers, note_entry
from memadmin.erasure.suppression.ledger import Entry, own_ledger, session_digests, subject_digests
from memadmin.erasure.work import RUN_KIND as ERASURE
from memadmin.runs import engine
from memadmin.runs.engine import Lease
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app.models import SessionRecord, Subject, SubjectAlias, SubjectSource
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.subjects import merge_target

State = SubjectRequest.State

RUN_KIND = "erasure_replay"

FoundAgain: TypeAlias = tuple[Entry, list[Subject], list[str]]


@dataclass
class Replayed:
    """Result of a replay."""

    entries: int = 0
    subjects: int = 0
    """Subjects that were back, and were erased again."""
    unfinished: list[str] = field(default_factory=list)
    """Requests whose erasure waits for something, with the reason: the database is not served before they are done."""


def replay() -> Replayed:
    """Erases the subjects again that were erased after this database was saved. Safe to repeat. Raises LedgerError."""
    ledger, done = own_ledger(), Replayed()
    if ledger is None:
        return done
    known = known_numbers()
    entries = [entry for entry in ledger.entries() if entry.number not in known]
    # Stores of other systems were perhaps restored, too: their sessions must be in the registry.
    discover_sessions()
    found = list(found_again(entries))
    run, cases = open_cases(found)
    if run is not None:
        run = engine.carry_out(run)
    for entry, _, doubts in found:
        done.entries += 1
        done.unfinished += doubts
        is_finished = not doubts
        for request in cases[entry.number]:
            request.refresh_from_db()
            assert request.run is not None, "it is approved"
            if request.scans:
                done.subjects += 1
            else:
                is_finished = False
                # It waits for the scan, or its own run says for what.
                waiting = run if run and request.pending_scan else request.run
                done.unfinished.append(f"{request}: {waiting.reason}")
        if is_finished:
            note_entry(entry)
    check_again()
    return done


@transaction.atomic
def open_cases(found: Iterable[FoundAgain]) -> tuple[Run | None, dict[int, list[SubjectRequest]]]:
    """The run that carries out the cases and scans for them, none without a case; and the cases by the number of their
    entry. An earlier attempt that has not ended goes on.
    """
    cases = {entry.number: [approved_again(subject, entry) for subject in subjects] for entry, subjects, _ in found}
    numbers = [request.pk for requests in cases.values() for request in requests]
    if not numbers:
        return None, cases
    earlier = Run.objects.unfinished().filter(kind=RUN_KIND).select_for_update(no_key=True, of=("self",)).first()
    run = earlier or request_run(RUN_KIND)
    SubjectRequest.objects.filter(pk__in=numbers).update(scanned_by=run)
    Run.objects.filter(pk=run.pk, state=Run.State.WAITING).update(retry_at=None)
    run.refresh_from_db()
    return run, cases


def work(lease: Lease) -> None:
    """Carries out the cases until all are closed. Raises what the lease raises, and Wait while cases wait."""
    children = Run.objects.filter(subject_request__scanned_by=lease.run)

    def hand_over() -> None:
        with lease.chunk() as run:
            run.total, run.done = children.count(), children.finished().count()
        lease.checkpoint()

    problem = together.work_off(lease, children, hand_over)
    if unfinished := children.unfinished().count():
        sentence = str(problem or f"{unfinished:,} of the repeated erasures are not closed.")
        raise together.wait_for_cases(children, sentence, problem)


def found_again(entries: Iterable[Entry]) -> Iterator[FoundAgain]:
    """Each entry with its subjects that are in this database, and sentences about what a person has to decide.

    A subject is the erased one only if the entry names all of its ids: in an older database an id or a session can
    belong to somebody else. Two passes over all ids.
    """
    entries = list(entries)
    by_key = {digest: entry for entry in entries for digest in entry.subjects}
    by_session = {digest: entry for entry in entries for digest in entry.sessions}
    found: dict[int, set[Subject]] = {entry.number: set() for entry in entries}
    doubts: dict[int, list[str]] = {entry.number: [] for entry in entries}
    for alias in SubjectAlias.objects.select_related("subject").iterator():
        entry = first_known(by_key, subject_digests(alias.kind, alias.key))
        if entry is None:
            continue
        subject = merge_target(alias.subject)
        if named_whole(subject, entry):
            found[entry.number].add(subject)
        else:
            doubts[entry.number].append(
                f"Entry {entry.number}: the subject {subject.pk} has this person's ID and others. Separate them first."
            )
    strays: dict[int, list[SessionRecord]] = {}
    records = SessionRecord.objects.select_related("store", "subject").filter(erased_at__isnull=True)
    for record in records.iterator():
        entry = first_known(by_session, session_digests(record.store.name, record.session_id))
        if entry is None:
            continue
        if record.subject is None:
            strays.setdefault(entry.number, []).append(record)
        elif merge_target(record.subject) not in found[entry.number]:
            doubts[entry.number].append(
                f"Entry {entry.number}: the session {record.pk} belongs to another subject here. Detach it first."
            )
    for entry in entries:
        if lost := strays.get(entry.number):
            # Without the person's ids, as an erasure leaves them, they are erased by themselves.
            same = found[entry.number]
            owner = next(iter(same)) if len(same) == 1 else Subject.objects.create()
            for record in lost:
                SessionRecord.objects.filter(pk=record.pk, session_id=record.session_id).update(
                    subject=owner, subject_source=SubjectSource.OPERATOR
                )
            found[entry.number].add(owner)
        yield entry, sorted(found[entry.number], key=lambda subject: subject.pk), doubts[entry.number]


def first_known(entries: Mapping[str, Entry], digests: Iterable[str]) -> Entry | None:
    return next((entries[digest] for digest in digests if digest in entries), None)


def named_whole(subject: Subject, entry: Entry) -> bool:
    """Whether the entry names every id of the subject and of all that are merged with it. Two queries."""
    keys = SubjectAlias.objects.filter(subject_id__in=subject.group_ids()).values_list("kind", "key")
    return all(not entry.subjects.isdisjoint(subject_digests(kind, key)) for kind, key in keys)


@transaction.atomic
def approved_again(subject: Subject, entry: Entry) -> SubjectRequest:
    """The request that repeats an erasure: two people approved it before the backup was restored."""
    request = (
        SubjectRequest.objects.open()
        .select_for_update(of=("self",))
        .filter(subject=subject, kind=SubjectRequest.Kind.ERASURE)
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
        run = request_run(ERASURE, parameters={"replays": entry.number})
        make_void(request, by=None)
        preview = {**request.preview, "covers": covered(request.subject)}
        SubjectRequest.objects.filter(pk=request.pk).update(run=run, state=State.APPROVED, preview=preview)
    elif not request.is_started:
        SubjectRequest.objects.filter(pk=request.pk).update(
            starts_at=None, preview={**request.preview, "covers": covered(request.subject)}
        )
        # Also one that was paused, stopped or failed then: it was approved and needs no further decision.
        Run.objects.filter(pk=request.run.pk).update(
            state=Run.State.WAITING,
            parameters={"replays": entry.number},
            attempts=0,
            reason="",
            retry_at=None,
            ended_at=None,
        )
    request.refresh_from_db()
    return request
