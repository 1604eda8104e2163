"""Batches: broken lines, approval, and a case for each line from the first to the last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin.accounts.approvals.services import NotAllowed
from memadmin.audit.models import AuditEvent
from memadmin.erasure.batches import checking, outcomes, services, work
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.batches.parsing import parse
from memadmin.erasure.batches.sealed import unseal
from memadmin.erasure.batches.view_models import LineView
from memadmin.erasure.batches.work import open_case
from memadmin.erasure.models import BatchLine, RequestBatch, SubjectRequest
from memadmin.erasure.services import (
    AlreadyStarted,
    NotLater,
    PreviewNeeded,
    WrongState,
    extend_request,
    latest_due_date,
)
from memadmin.erasure.steps.away import RETRY_BUSY
from memadmin.erasure.together import LONGEST_WAIT, wait_for_cases
from memadmin.runs import engine
from memadmin.runs import services as runs
from memadmin.runs.models import Run
from memories_app.models import Memory
from sessions_app.models import SubjectAlias, TextSearch
from sessions_app.services.subjects import merge_subjects
from tests.approvals import shown
from tests.builders import make_subject
from tests.erasure.batches import (
    approved_batch,
    awaiting_batch,
    csv_of,
    let_a_day_pass,
    make_subjects,
    uploaded,
    work_off_batch,
)
from tests.erasure.builders import make_request
from tests.memories.builders import proposed
from tests.people import person
from tests.retention.builders import make_hold

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

State = RequestBatch.State


def sentences(batch: RequestBatch) -> dict[int, str]:
    return {line.number: LineView(line).sentence for line in batch.lines.exclude(problem="")}


# --- upload -----------------------------------------------------------------------------------------------------------


def test_broken_lines_are_named_and_not_part_of_the_batch(officer: User) -> None:
    make_subjects(["cust_41213", "cust_50977", "acct_112", "cust_9"])
    merged, held, open_one = make_subjects(["acct_207", "held_1", "open_1"])
    merge_subjects(merged, SubjectAlias.objects.get(key="acct_112").subject, by=officer)
    hold = make_hold(held, by=officer)
    case = make_request(open_one, by=officer)
    batch = uploaded(
        csv_of(
            *("cust_50977", "cust_4l213", ",user", "cust_50977,user,again", "cust_9;", "acct_207", "held_1", "open_1"),
            *("nobody-at-all", "cust_9,person", "x" * 600),
        ),
        by=officer,
    )
    assert sentences(batch) == {
        3: "Unknown subject. Did you mean cust_41213?",
        4: "The key is missing.",
        5: "Duplicate of line 2.",
        6: "Two separators, 3 columns expected.",
        7: "Merged into acct_112; erase the merged subject by its own request.",
        8: f"On hold H-{hold.number}: left out.",
        9: f"Erasure {case} is open; this line would join it.",
        10: "Unknown subject.",
        11: "The kind is not user, project or tenant.",
        12: "The key or the note is too long, or contains a NUL.",
    }
    assert [line.number for line in services.accepted_lines(batch)] == [2]
    event = AuditEvent.objects.get(type="batch.uploaded")
    assert event.counters == {"lines": 11, "accepted": 1}


def test_two_ids_of_one_subject_are_duplicates(officer: User) -> None:
    subject = make_subject("ann")
    SubjectAlias.objects.create(subject=subject, kind="user", key="ann@example.com")
    assert sentences(uploaded(csv_of("ann", "ann@example.com"), by=officer)) == {3: "Duplicate of line 2."}


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.release)])
def test_5000_lines_of_which_a_tenth_is_broken_take_few_queries(officer: User, count: int) -> None:
    """A thousand need as few."""
    make_subjects(f"cust_{number}" for number in range(count))
    lines = [f"cust_{number}" if number % 10 else f"wrong_{number}" for number in range(count)]
    with CaptureQueriesContext(connection) as queries:
        checked = checking.check_lines(parse(csv_of(*lines)))
    assert len(queries) <= 4
    assert sum(not line.problem for line in checked) == count * 9 // 10
    assert {line.problem for line in checked} == {"", "unknown"}
    with CaptureQueriesContext(connection) as queries:
        batch = services.upload(csv_of(*lines), name="a.csv", ground="consent", note="", by=officer)
    assert len(queries) <= 40
    assert services.accepted_lines(batch).count() == count * 9 // 10


def test_no_key_is_readable_in_the_database(officer: User) -> None:
    make_subjects(["secret-key-1"])
    batch = uploaded(csv_of("secret-key-1,user,secret-note", "secret-unknown"), by=officer)
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(l::text || convert_from(sealed, 'UTF8'), '') FROM erasure_batchline AS l")
        (stored,) = cursor.fetchone()
        cursor.execute("SELECT string_agg(b::text, '') FROM erasure_requestbatch AS b")
        stored += cursor.fetchone()[0]
    assert "secret" not in stored
    assert unseal(batch.lines.get(number=2).sealed).note == "secret-note"


def test_a_key_with_a_separator_is_known_or_named(officer: User) -> None:
    make_subjects(["a;b"])
    batch = uploaded(csv_of("a;b,user", "c;user,", "d,user"), by=officer)
    assert [line.number for line in services.accepted_lines(batch)] == [2]
    assert sentences(batch)[3] == "Two separators, 3 columns expected."


def test_a_file_name_hides_nothing(officer: User) -> None:
    batch = services.upload(csv_of("ann"), name="a\u202e\udcff.csv" + "x" * 200, ground="consent", note="", by=officer)
    assert batch.file_name == "a.csv" + "x" * 75


def test_a_file_is_open_once(officer: User) -> None:
    make_subjects(["ann"])
    batch = uploaded(csv_of("ann"), by=officer)
    with pytest.raises(services.AlreadyUploaded, match=str(batch)):
        uploaded(csv_of("ann"), by=officer)
    services.cancel(batch, by=officer)
    assert uploaded(csv_of("ann"), by=officer) != batch


def test_a_line_is_corrected(officer: User) -> None:
    make_subjects(["ann", "bob"])
    batch = uploaded(csv_of("ann", "bbo,user,left"), by=officer)
    line = batch.lines.get(number=3)
    assert services.correct_line(batch, line, key="ann", kind="user", by=officer).problem == "duplicate"
    line = batch.lines.get(number=3)
    with pytest.raises(WrongState):
        services.correct_line(batch, line, key="bob", kind="user", by=officer)
    BatchLine.objects.filter(pk=line.pk).update(problem="unknown")
    line = services.correct_line(batch, line, key="bob", kind="user", by=officer)
    assert (line.problem, unseal(line.sealed).note) == ("", "left")
    batch.refresh_from_db()
    assert batch.previewed_at is None  # it is counted again
    assert AuditEvent.objects.filter(type="batch.line_corrected").count() == 2


def test_the_preview_counts_by_place(officer: User) -> None:
    for subject in make_subjects(["ann", "bob", "eve"]):
        proposed("likes tea", subject=subject)
    batch = uploaded(csv_of("ann", "bob"), by=officer)
    rows = batch.preview["places"][""][1]
    alone = uploaded(csv_of("eve"), by=officer).preview["places"][""][1]
    assert rows == 2 * alone > 0


def test_the_preview_counts_searches_for_the_ids_as_the_run_does(officer: User) -> None:
    make_subjects(["ann", "bob"])
    TextSearch.objects.create(text="what did ann say", searched_by=officer, expires_at=now() + timedelta(days=1))
    with_search = uploaded(csv_of("ann"), by=officer).preview["places"][""][1]
    without = uploaded(csv_of("bob"), by=officer).preview["places"][""][1]
    assert with_search == without + 1


# --- approval ---------------------------------------------------------------------------------------------------------


def test_one_other_person_approves_all(officer: User, second: User) -> None:
    make_subjects(["ann", "bob"])
    batch = awaiting_batch(csv_of("ann", "bob"), by=officer)
    with pytest.raises(NotAllowed):
        services.approve(batch, by=officer, typed="erase 2", shown=shown(batch))
    same = person("compliance", "support")
    same.email = officer.email = "one@example.com"
    same.save()
    officer.save()
    with pytest.raises(NotAllowed):
        services.approve(batch, by=same, typed="erase 2", shown=shown(batch))
    assert AuditEvent.objects.filter(type="approval.decided", outcome="denied").count() == 2
    for wrong in ("", "erase", "erase 3", "2"):
        with pytest.raises(services.WrongConfirmation):
            services.approve(batch, by=second, typed=wrong, shown=shown(batch))
    batch = services.approve(batch, by=second, typed=" Erase  2 ", shown=shown(batch))
    assert batch.starts_at is not None
    assert batch.starts_at > now() + timedelta(hours=3)
    assert batch.run is not None
    assert not engine.is_due(batch.run)
    with pytest.raises(WrongState):
        services.approve(batch, by=second, typed="erase 2", shown=shown(batch))


def test_nobody_approves_a_line_about_themselves(officer: User, second: User) -> None:
    make_subjects(["ann", second.username.upper()])
    batch = awaiting_batch(csv_of("ann", second.username.upper()), by=officer)
    with pytest.raises(NotAllowed, match="is about yourself"):
        services.approve(batch, by=second, typed="erase 2", shown=shown(batch))


def test_each_step_needs_the_one_before(officer: User, second: User) -> None:
    make_subjects(["ann"])
    batch = services.upload(csv_of("ann"), name="a", ground="consent", note="", by=officer)
    with pytest.raises(PreviewNeeded):
        services.request_approval(batch, by=officer)
    with pytest.raises(WrongState):
        services.approve(batch, by=second, typed="erase 1", shown="")
    empty = uploaded(csv_of("nobody"), by=officer)
    for impossible in (services.request_approval, services.count_again):
        with pytest.raises(services.NothingAccepted):
            impossible(empty, by=officer)


def test_it_is_cancelled_until_it_starts(officer: User, second: User) -> None:
    subjects = make_subjects(["ann", "bob"])
    batch = awaiting_batch(csv_of("ann", "bob"), by=officer)
    batch = services.approve(batch, by=second, typed="erase 2", shown=shown(batch))
    batch = services.cancel(batch, by=officer)
    assert batch.state == State.CANCELLED
    assert batch.run is not None
    assert batch.run.state == Run.State.CANCELLED
    assert not any(bytes(line.sealed) for line in batch.lines.all())
    assert not SubjectRequest.objects.filter(subject__in=subjects).exists()
    with pytest.raises(WrongState):
        services.cancel(batch, by=officer)


def test_it_is_sent_back_with_a_note(officer: User, second: User) -> None:
    make_subjects(["ann"])
    batch = services.reject(awaiting_batch(csv_of("ann"), by=officer), note="which list?", by=second)
    assert batch.approval
    assert (batch.state, batch.approval.decision) == (State.UPLOADED, "rejected")
    assert "which list?" in batch.note


# --- run --------------------------------------------------------------------------------------------------------------


def test_its_time_is_extended_once_with_that_of_its_cases(officer: User, second: User) -> None:
    """Of those that are open, and of those to come; a case that a line has joined keeps its own."""
    bob, *_ = make_subjects(["bob", "ada", "eve"])
    letter = make_request(bob, by=officer)
    batch = approved_batch(csv_of("bob", "ada", "eve"), by=officer, second=second)
    RequestBatch.objects.filter(pk=batch.pk).update(state=State.RUNNING, started_at=now())
    _, ada, eve = batch.lines.order_by("number").select_related("subject")
    open_case(batch, ada)
    first, latest = batch.due_on, latest_due_date(batch)
    for wrong in (first, latest + timedelta(days=1)):
        with pytest.raises(NotLater):
            services.extend(batch, until=wrong, note="many stores", by=second)
    batch = services.extend(batch, until=latest, note="many stores", by=second)
    assert (batch.due_on, batch.first_due_on, batch.note) == (latest, first, "closed accounts\nExtended: many stores")
    open_case(batch, eve)
    letter.refresh_from_db()
    assert (letter.due_on, letter.first_due_on) == (first, None)
    cases = SubjectRequest.objects.filter(channel="file")
    assert set(cases.values_list("due_on", "first_due_on")) == {(latest, first)}
    extended = AuditEvent.objects.filter(type__in=["batch.extended", "request.extended"])
    assert set(extended.values_list("object_ref", flat=True)) == {batch.id, cases.get(subject=ada.subject).id}
    with pytest.raises(WrongState):
        services.extend(batch, until=latest, note="again", by=officer)
    for case in cases:
        with pytest.raises(WrongState):
            extend_request(case, until=latest, note="again", by=officer)


def test_an_extension_sends_as_many_statements_for_many_cases(officer: User, second: User) -> None:
    """A batch has up to 5,000 cases, which are locked meanwhile."""
    counts = []
    for size in (2, 6):
        keys = [f"person-{size}-{number}" for number in range(size)]
        make_subjects(keys)
        batch = approved_batch(csv_of(*keys), by=officer, second=second)
        RequestBatch.objects.filter(pk=batch.pk).update(state=State.RUNNING, started_at=now())
        for line in batch.lines.select_related("subject"):
            open_case(batch, line)
        with CaptureQueriesContext(connection) as queries:
            services.extend(batch, until=latest_due_date(batch), note="many stores", by=second)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    extended = AuditEvent.objects.filter(type="request.extended")
    assert set(extended.values_list("object_ref", flat=True)) == set(
        SubjectRequest.objects.filter(channel="file").values_list("id", flat=True)
    )
    assert {event.subject_ref for event in extended} == set(SubjectRequest.objects.values_list("subject", flat=True))


def test_a_case_that_opens_while_its_batch_is_extended_is_extended(
    officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has read the batch before."""
    make_subjects(["ada"])
    batch = approved_batch(csv_of("ada"), by=officer, second=second)
    latest, start = latest_due_date(batch), work.start

    def start_and_extend(lease: engine.Lease, known: RequestBatch) -> None:
        start(lease, known)
        services.extend(RequestBatch.objects.get(pk=known.pk), until=latest, note="many stores", by=second)

    monkeypatch.setattr(work, "start", start_and_extend)
    work_off_batch(batch)
    assert SubjectRequest.objects.get().due_on == latest


def test_it_looks_again_soon_while_another_worker_has_a_case(officer: User, second: User) -> None:
    """The other worker leaves the scan of the case to the batch, which would come ten minutes later."""
    make_subjects(["ada"])
    batch = approved_batch(csv_of("ada"), by=officer, second=second)
    RequestBatch.objects.filter(pk=batch.pk).update(state=State.RUNNING, started_at=now())
    open_case(batch, batch.lines.select_related("subject").get())
    children = Run.objects.filter(subject_request__batch_lines__batch=batch)
    children.update(state=Run.State.RUNNING, lease_until=now() + timedelta(minutes=1))
    assert wait_for_cases(children, "One case is open.", None).retry_after == RETRY_BUSY
    children.update(state=Run.State.WAITING, lease_until=None, retry_at=None)
    assert wait_for_cases(children, "One case is open.", None).retry_after == LONGEST_WAIT


def test_each_line_becomes_a_case_with_its_receipt(officer: User, second: User) -> None:
    subjects = make_subjects(["ann", "bob", "eve"])
    for subject in subjects:
        proposed("likes tea", subject=subject)
    batch = approved_batch(csv_of("ann,user,asked twice", "bob"), by=officer, second=second)
    run = work_off_batch(batch)
    assert (batch.state, run.state) == (State.RUNNING, Run.State.WAITING), run.reason
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 2}
    assert (run.done, run.total) == (2, 2)
    assert [memory.subject for memory in Memory.objects.all()] == [subjects[2]]
    with pytest.raises(AlreadyStarted):
        services.cancel(batch, by=officer)
    let_a_day_pass(batch)
    run = work_off_batch(batch)
    assert (batch.state, run.state) == (State.COMPLETE, Run.State.COMPLETE), run.reason
    for line in batch.lines.all():
        assert line.request is not None
        assert line.request.state == "complete"
        assert line.request.receipt
        assert line.request.decision == batch.approval
        assert line.request.channel == "file"
        assert not bytes(line.sealed)
    assert AuditEvent.objects.get(type="batch.closed").counters == {"subjects": 2, "complete": 2}


def test_a_hold_placed_meanwhile_stops_its_subject_only(officer: User, second: User) -> None:
    ann, bob, eve = make_subjects(["ann", "bob", "eve"])
    for subject in (ann, bob, eve):
        proposed("likes tea", subject=subject)
    batch = approved_batch(csv_of("ann", "bob", "eve"), by=officer, second=second)
    make_hold(bob, by=officer)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 2, LineOutcome.HELD: 1}
    assert [memory.subject for memory in Memory.objects.all()] == [bob]


def test_a_subject_merged_meanwhile_is_left_out(officer: User, second: User) -> None:
    _ann, bob = make_subjects(["ann", "bob"])
    other = make_subject("eve")
    proposed("likes tea", subject=other)
    batch = approved_batch(csv_of("ann", "bob"), by=officer, second=second)
    merge_subjects(bob, other, by=officer)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 1, LineOutcome.LEFT_OUT: 1}
    assert Memory.objects.filter(subject=other).exists()
    assert batch.lines.get(subject=bob).problem == "changed"


def test_a_line_joins_a_case_that_was_opened_meanwhile(officer: User, second: User) -> None:
    ann, bob = make_subjects(["ann", "bob"])
    batch = approved_batch(csv_of("ann", "bob"), by=officer, second=second)
    case = make_request(ann, by=officer)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 1, LineOutcome.OTHER_CASE: 1}
    case.refresh_from_db()
    assert case.decision is None  # that case needs an approval of its own
    assert bob.requests.get().is_started


def test_a_failing_line_does_not_stop_the_others_and_is_retried(
    officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memadmin.erasure import work

    ann, _, _ = make_subjects(["ann", "bob", "eve"])
    batch = approved_batch(csv_of("ann", "bob", "eve"), by=officer, second=second)
    start = work.start

    def failing(lease: engine.Lease, request: SubjectRequest) -> None:
        if request.subject == ann:
            raise RuntimeError
        start(lease, request)

    monkeypatch.setattr(work, "start", failing)
    monkeypatch.setattr(engine, "MOST_ATTEMPTS", 1)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 2, LineOutcome.FAILED: 1}
    monkeypatch.setattr(work, "start", start)
    assert services.retry_failed(batch, by=officer) == 1
    Run.objects.filter(request_batch=batch).update(retry_at=None)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
    with pytest.raises(WrongState):
        services.retry_failed(batch, by=officer)


def test_a_paused_batch_begins_no_further_subject(officer: User, second: User, monkeypatch: pytest.MonkeyPatch) -> None:
    make_subjects(["ann", "bob", "eve"])
    batch = approved_batch(csv_of("ann", "bob", "eve"), by=officer, second=second)
    assert batch.run is not None
    carry_on: Callable[..., Run] = engine.carry_on

    def then_pause(run: Run, **given: float) -> Run:
        run = carry_on(run, **given)
        if run.kind == "erasure":
            runs.pause_run(Run.objects.get(request_batch=batch), by=officer)
        return run

    monkeypatch.setattr(engine, "carry_on", then_pause)
    carry_on(batch.run)
    assert SubjectRequest.objects.count() == 1
    monkeypatch.undo()
    batch.run.refresh_from_db()
    runs.resume_run(batch.run, by=officer)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
