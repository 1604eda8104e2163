"""The run of an erasure: fence, steps, scans, receipt. Every chunk is one transaction that checks lease and holds."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import takewhile

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.erasure import audit_events, closing, locators, scan
from memadmin.erasure.approving import ERASURE
from memadmin.erasure.exceptions import OutOfReach
from memadmin.erasure.mails import mail_handlers
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.erasure.preview import Preview, downloads, is_as_counted, preview_erasure, replace_out_of_reach
from memadmin.erasure.scan import CLEAN
from memadmin.erasure.scan.sessions import erase_strays
from memadmin.erasure.scope import SubjectScope, scope_of
from memadmin.erasure.steps import STEPS, step_named
from memadmin.erasure.steps.away import (
    RETRY_BUSY,
    RETRY_STORE,
    retry_after,
    stop_waiting,
    wait_for_stores,
    waiting_sentence,
)
from memadmin.erasure.steps.left_over import left_over
from memadmin.erasure.suppression.entering import enter, note_entry
from memadmin.erasure.suppression.ledger import LedgerError
from memadmin.runs.engine import CHUNK_SECONDS, Lease, NeedsDecision, Wait
from memadmin.runs.models import Run
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.services.erasing_subjects import fence_subject
from sessions_app.stores.base import StoreUnavailable

RUN_KIND = "erasure"

State, StepState = SubjectRequest.State, ErasureStep.State

ALERT = "alert"
"""Key of the run's cursor: a mail that is to be sent."""

KEEP_WRITING = "New data keeps appearing, as when agents write to a store without a fence. The erasure continues."

MOST_SCANS = 5
"""Scans in a row that find something to erase, before the next round waits."""

COUNTING = timedelta(minutes=10)
"""Time that the count before the start may take: of large sessions in a slow store."""

MOST_ROUNDS = 10
"""Rounds over the steps in one turn: agents that write to a store without a fence make another one necessary."""


def work(lease: Lease) -> None:
    """Works on an erasure from where it is. Raises what the lease raises, Wait and NeedsDecision."""
    request = SubjectRequest.objects.select_related("subject", "scanned_by").get(run=lease.run)
    if not request.is_started:
        start(lease, request)
    texts, keys = locators.unseal(request.locators), locators.unseal_keys(request.locators)
    scope = scope_of(request.subject, texts, keys)
    mail_about_reopening(lease, request)
    stop_waiting(lease, request)
    if CLEAN not in lease.run.cursor:
        erase_and_scan(lease, request, scope)
    clean = lease.run.cursor[CLEAN]
    if len(request.scans) == clean:
        if request.state == State.RUNNING:
            closing.issue_receipt(lease, request)
        rest = datetime.fromisoformat(request.scans[clean - 1]["at"]) + settings.RESCAN_AFTER - now()
        if rest > timedelta(0):
            raise Wait("Erased. The second scan looks for what agents wrote afterwards.", retry_after=rest)
        scan.scan(lease, request, scope)
    if scan.last_erasable(request):
        reopen(lease, request)
        mail_about_reopening(lease, request)
        erase_and_scan(lease, request, scope)
        closing.issue_receipt(lease, request)
        # An agent writes still, or again: only a scan a day later shows that it has stopped.
        raise Wait("The second scan found data. It is erased, and looked for again.", retry_after=settings.RESCAN_AFTER)
    closing.issue_receipt(lease, request)


def erase_and_scan(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> None:
    """Erases until a scan finds nothing that can be erased. Raises Wait as the steps and the scan do."""
    while True:
        # A scan that has begun goes on.
        if not request.pending_scan:
            if scan.last_erasable(request):
                wait_for_stores(lease, [request.pk], erase_strays(lease, request, scope))
            erase_until_nothing_is_left(lease, request, scope)
        if not scan.scan(lease, request, scope):
            return
        in_a_row = list(takewhile(lambda each: scan.erasable(each["places"]), reversed(request.scans)))
        if len(in_a_row) % MOST_SCANS == 0:
            raise Wait(KEEP_WRITING, retry_after=RETRY_STORE)


def reopen(lease: Lease, request: SubjectRequest) -> None:
    """Sets the case back to the state before its first scan, and notes the mail that `mail_about_reopening` sends."""
    with lease.chunk() as run:
        audit.record(audit_events.REQUEST_REOPENED, target=request, subject=request.subject_id)
        request.note(RequestNote.Code.REOPENED)
        SubjectRequest.objects.filter(pk=request.pk).update(state=State.RUNNING)
        run.cursor = {key: value for key, value in run.cursor.items() if key != CLEAN} | {ALERT: True}
    request.refresh_from_db()


def mail_about_reopening(lease: Lease, request: SubjectRequest) -> None:
    """Mails what `reopen` noted; what a mail server refuses is sent at the next turn of the run."""
    if not lease.run.cursor.get(ALERT):
        return
    sentence = f"A scan found data of the erased person. {request} was opened again, and the data is erased. Its page:"
    if mail_handlers(request, title=f"{request} was opened again", sentence=sentence):
        with lease.chunk() as run:
            run.cursor = {key: value for key, value in run.cursor.items() if key != ALERT}


# --- start ------------------------------------------------------------------------------------------------------------


def start(lease: Lease, request: SubjectRequest) -> None:
    """The fence, the steps, and the event: committed together before anything is erased.

    Raises Wait while the request can still be cancelled, and NeedsDecision while a hold covers the subject.
    """
    if request.starts_at and (rest := request.starts_at - now()) > timedelta(0):
        # A person can let a waiting run continue at any time.
        raise Wait("The time to cancel is not over.", retry_after=rest)
    scope = scope_of(request.subject)
    refuse_held(scope)
    lease.extend(COUNTING)
    preview = preview_erasure(scope)
    with lease.chunk() as run:
        locked = SubjectRequest.objects.select_for_update().get(pk=request.pk)
        if locked.state != State.APPROVED:
            raise NeedsDecision("The request is not approved any more.")
        audit.record(audit_events.ERASURE_STARTED, target=locked, subject=locked.subject_id)
        fence_subject(locked.subject)
        refuse_another_extent(locked)
        # As it is now that nothing more can be added: ids and holds may have come while it was counted.
        scope = scope_of(locked.subject)
        refuse_held(scope)
        approved = {each.holder: each.counted.rows for each in Preview.of_json(request.preview).holders}
        # Of a store that does not respond, what the approval was about.
        add_steps(
            locked,
            scope,
            expected={
                each.holder: approved.get(each.holder, 0) if each.counted.problem else each.counted.rows
                for each in preview.holders
            },
        )
        locked.note(RequestNote.Code.STARTED)
        # The receipt states what this process has found, not what the preview says.
        locked.preview = {**locked.preview, "out_of_reach": preview.out_of_reach}
        replace_out_of_reach(locked, OutOfReach.DOWNLOADS, downloads(scope))
        SubjectRequest.objects.filter(pk=locked.pk).update(
            state=State.RUNNING,
            preview=locked.preview,
            started_at=Now(),
            locators=locators.seal([*locators.unseal(locked.locators), *scope.texts], keys=scope.keys),
        )
        run.total, run.cursor = preview.rows, {}
        # Last before the commit: a backup that is restored later must not bring the person back.
        if "replays" not in run.parameters:
            enter_in_ledger(locked, scope)
    request.refresh_from_db()


def refuse_another_extent(request: SubjectRequest) -> None:
    """Raises NeedsDecision if what would be erased is not what was approved. Subjects, IDs and sessions are locked by
    the fence.
    """
    if request.subject.merged_into_id or not is_as_counted(request) or not is_approved(request):
        raise NeedsDecision(
            "Subjects were merged or separated, IDs or sessions were added or removed, or what was counted differs, "
            "after the approval. Nothing was erased. Cancel this request and open another."
        )


def is_approved(request: SubjectRequest) -> bool:
    """True if it was approved as it is now: alone, with its batch, or before the backup that a replay follows."""
    if request.run and "replays" in request.run.parameters:
        return True
    if (decision := request.decision) == request.approval:
        return approvals.is_as_approved(ERASURE, request)
    return decision is not None and decision.is_approved


def enter_in_ledger(request: SubjectRequest, scope: SubjectScope) -> None:
    try:
        entry = enter(request, scope)
    except LedgerError as problem:
        raise Wait(str(problem)) from problem
    if entry:
        note_entry(entry)


def refuse_held(scope: SubjectScope) -> None:
    """Raises NeedsDecision while a hold covers the subject. None can be placed before the caller's transaction ends."""
    try:
        check_deletion(subjects=scope.group)
    except DeletionRefused as problem:
        names = ", ".join(f"H-{number}" for number in scope.holds())
        sentence = f"The subject is under the legal hold {names}. Resume this run when it is released."
        raise NeedsDecision(sentence) from problem


def add_steps(request: SubjectRequest, scope: SubjectScope, expected: Mapping[str, int]) -> None:
    """Adds the rows of the steps, with the number of rows that each holder is expected to have."""
    rows = [
        ErasureStep(request=request, name=step.name, place=place, position=position)
        for position, step in enumerate(STEPS)
        for place in step.places(scope)
    ]
    for row in rows:
        row.expected = expected.get(row.holder, 0)
    ErasureStep.objects.bulk_create(rows)


# --- steps ------------------------------------------------------------------------------------------------------------


def erase_until_nothing_is_left(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> None:
    """Runs all steps, and those again at which rows appeared meanwhile.

    Raises Wait while a step cannot be finished, after all others were.
    """
    for _ in range(MOST_ROUNDS):
        run_steps(lease, request, scope)
        if not reopen_steps(lease, request, scope):
            return
    raise Wait(KEEP_WRITING, retry_after=RETRY_BUSY)


def run_steps(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> None:
    """Every step whose predecessors are finished. Raises Wait in the end if one could not be finished."""
    if not ErasureStep.objects.filter(request=request).exclude(state__in=ErasureStep.FINISHED).exists():
        return
    waits: dict[int, Wait] = {}
    chunks = StepChunks(request, scope, without=waits)
    while not chunks.are_over:
        try:
            lease.in_chunks(chunks.erase)
        except StoreUnavailable as problem:
            row = chunks.row
            sentence = waiting_sentence(row.place, problem)
            with lease.chunk():
                ErasureStep.objects.filter(pk=row.pk).update(state=StepState.WAITING, reason=sentence, changed_at=Now())
            waits[row.pk] = Wait(sentence, retry_after=retry_after(problem))
    if waits:
        raise min(waits.values(), key=lambda wait: wait.retry_after)


class StepChunks:
    """Chunks of the steps of a case. Each ends with the first step that has passed rows: most steps of a small subject
    have none, and share a transaction with the next one that has. `row` is the step at which a chunk is. The chunks
    `are_over` when one of them has come to the end of the steps.
    """

    def __init__(self, request: SubjectRequest, scope: SubjectScope, *, without: Container[int]) -> None:
        self._request, self._scope, self._without = request, scope, without
        self.row, self.are_over = ErasureStep(), False

    def erase(self, run: Run, at_most: int) -> int:
        """Erases at most so many rows of one step, and finishes the steps before it; returns the number of rows."""
        refuse_held(self._scope)
        self._scope.reread_holds()
        rows = list(ErasureStep.objects.filter(request=self._request))
        passed, finished, until = 0, [], time.monotonic() + CHUNK_SECONDS
        for self.row in rows:
            if self.row.state in ErasureStep.FINISHED or self.row.pk in self._without or is_blocked(self.row, rows):
                continue
            passed = self._erase_some(at_most)
            if passed:
                break
            self.row.state = StepState.DONE
            finished.append(self.row.pk)
            if time.monotonic() > until:
                break
        else:
            self.are_over = True
        if finished:
            ErasureStep.objects.filter(pk__in=finished).update(
                state=StepState.DONE,
                reason="",
                cursor="",
                started_at=Coalesce("started_at", Now()),
                ended_at=Now(),
                changed_at=Now(),
            )
        return passed

    def _erase_some(self, at_most: int) -> int:
        row, scope = self.row, self._scope
        done = step_named(row.name).erase_some(scope, row, at_most=at_most)
        if not (done.passed or done.held or done.exceptions):
            return 0
        exceptions = {**row.exceptions}
        for code, count in done.exceptions.items():
            exceptions[code] = exceptions.get(code, 0) + count
        ErasureStep.objects.filter(pk=row.pk).update(
            state=StepState.RUNNING,
            reason="",
            erased=F("erased") + done.erased,
            held=F("held") + done.held,
            exceptions=exceptions,
            cursor=done.cursor or row.cursor,
            started_at=Coalesce("started_at", Now()),
            changed_at=Now(),
        )
        if done.erased or done.held:
            audit.record(
                audit_events.ROWS_ERASED,
                target=self._request,
                subject=scope.subject.pk,
                shown=done.shown,
                counters={"rows": done.erased, "held": done.held},
            )
        return done.passed


def is_blocked(row: ErasureStep, rows: Iterable[ErasureStep]) -> bool:
    """True while a step that this one needs is unfinished."""
    needed = step_named(row.name).after
    return any(each.name in needed and each.state not in ErasureStep.FINISHED for each in rows)


def reopen_steps(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> bool:
    """Reopens the steps at which there are rows that no hold keeps; true if there are any. Raises Wait."""
    again = {row.pk for row, _ in left_over(lease, request, scope)}
    if again:
        with lease.chunk():
            ErasureStep.objects.filter(pk__in=again).update(
                state=StepState.TO_DO, cursor="", held=0, exceptions={}, ended_at=None, changed_at=Now()
            )
    return bool(again)
