"""Legal holds that are placed while an erasure runs: from their commit on nothing that they cover goes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User

from memadmin.erasure import services
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.retention.holds.services import NothingToHold
from memadmin.retention.models import LegalHold
from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.runs.services import resume_run
from memories_app.models import Evidence, Memory, Recall, Signal
from sessions_app.models import SessionRecord, SessionStore, SubjectAlias
from sessions_app.services.subjects import merge_subjects
from tests.agents import second_connection
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import ROWS, erased_of, items_of, with_sessions, work_to_the_end
from tests.meanwhile import somebody_else
from tests.memories.builders import approved as approved_memory
from tests.people import signed_in
from tests.retention.builders import make_hold, released

pytestmark = pytest.mark.usefixtures("transactional_db")

State = SubjectRequest.State

PAIRS = int(os.environ.get("MEMADMIN_HOLD_PAIRS", "20"))
"""Holds that race an erasure before a release; `MEMADMIN_HOLD_PAIRS=1000` for the whole number of E-15."""


def test_a_session_that_is_held_meanwhile_stays_and_all_else_goes(
    kept_main_store: SessionStore,
    officer: User,
    second: User,
    small_chunks: None,
    after_chunk: Callable[[int, Callable[[], object]], None],
) -> None:
    subject = with_sessions("ada", by=officer, sessions=3)
    held = SessionRecord.objects.get(session_id="ada:2")
    kept, gone = approved_memory("likes tea", subject=subject), approved_memory("likes milk", subject=subject)
    Evidence.objects.create(memory=kept, record_id=held.pk, session_id="ada:2", quote="tea")
    Signal.objects.create(subject=subject, kind="preference", text="milk")
    Recall.objects.create(subject=subject, record_id=held.pk)
    request = approved(subject, by=officer, second=second)
    after_chunk(2, lambda: make_hold(held, by=officer))

    work_to_the_end(request)

    assert (request.state, items_of("ada")) == (State.COMPLETE_WITH_EXCEPTIONS, 25)
    assert list(Memory.objects.all()) == [kept]
    assert not Memory.objects.filter(pk=gone.pk).exists()
    assert (Evidence.objects.count(), Recall.objects.count(), Signal.objects.count()) == (1, 1, 0)
    assert list(SessionRecord.objects.filter(erased_at=None)) == [held]
    assert SubjectAlias.objects.filter(subject=subject).exists(), "a held session is found by the person's id"
    receipt = json.loads(request.receipt)["payload"]
    assert receipt["outcome"] == "exceptions"
    assert receipt["counts"]["sessions/main"] == 50
    learned = {"memories": 1, "evidence": 1, "versions": 1, "reviews": kept.reviews.count(), "recalls": 1}
    assert receipt["held"] == learned | {"sessions/main": 25, "identity": 2}
    assert kept.reviews.exists()


def test_what_a_released_hold_kept_goes_before_the_end(
    kept_main_store: SessionStore,
    officer: User,
    second: User,
    small_chunks: None,
    after_chunk: Callable[[int, Callable[[], object]], None],
) -> None:
    """A hold that is placed before the session's turn, and released when its step is over."""
    subject = with_sessions("ada", by=officer, sessions=3)
    Signal.objects.create(subject=subject, kind="preference", text="milk")
    held = SessionRecord.objects.get(session_id="ada:2")
    request = approved(subject, by=officer, second=second)
    hold = make_hold(held, by=officer)

    def release() -> None:
        assert (items_of("ada"), Signal.objects.count()) == (25, 0), "this is after the session's turn"
        released(hold, by=officer, second=second)

    after_chunk(8, release)

    work_to_the_end(request)

    assert (items_of("ada"), erased_of(request)["sessions/main"]) == (0, 75)
    nothing_is_kept(request)
    assert not SessionRecord.objects.filter(erased_at=None).exists()


def test_what_is_released_until_the_second_scan_goes_with_it(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    subject = with_sessions("ada", by=officer)
    hold = make_hold(SessionRecord.objects.get(session_id="ada:1"), by=officer)
    request = approved(subject, by=officer, second=second)
    work_off(request)
    assert (request.state, items_of("ada")) == (State.SCANNING, 25)
    released(hold, by=officer, second=second)
    work_to_the_end(request)
    assert (items_of("ada"), erased_of(request)["sessions/main"]) == (0, 50)
    nothing_is_kept(request)


def nothing_is_kept(request: SubjectRequest) -> None:
    payload = json.loads(request.receipt)["payload"]
    assert payload["held"] == {}
    assert payload["exceptions"] == []
    assert not LegalHold.objects.exclude(session_id="").exists()


@pytest.mark.parametrize(
    "chunk", [pytest.param(1, marks=pytest.mark.release), 4, pytest.param(7, marks=pytest.mark.release)]
)
def test_a_subject_that_is_held_meanwhile_stops_the_run_before_its_next_chunk(
    kept_main_store: SessionStore,
    officer: User,
    second: User,
    small_chunks: None,
    after_chunk: Callable[[int, Callable[[], object]], None],
    chunk: int,
) -> None:
    """In the first session, in the second one, and in a later step."""
    subject = with_sessions("ada", by=officer)
    for number in range(3):
        Signal.objects.create(subject=subject, kind="preference", text=f"tea {number}")
    request = approved(subject, by=officer, second=second)
    left: list[tuple[int, int, dict[str, int]]] = []
    told: list[str] = []

    def rows() -> tuple[int, int, dict[str, int]]:
        return items_of("ada"), Signal.objects.count(), erased_of(request)

    def hold() -> None:
        make_hold(subject, by=officer)
        left.append(rows())
        told.append(signed_in(officer).get(LegalHold.objects.get().get_absolute_url()).content.decode())

    after_chunk(chunk, hold)

    run = work_off(request)

    number = LegalHold.objects.get().number
    assert (run.state, request.state) == (Run.State.STOPPED, State.RUNNING)
    assert run.reason == f"The subject is under the legal hold H-{number}. Resume this run when it is released."
    assert [rows()] == left, "something went after the hold"
    gone = ((50 - left[0][0], "main"), (3 - left[0][1], "Signals"))
    words = ", ".join(f"{count} in {place}" for count, place in gone if count)
    assert f"{request} has erased {sum(count for count, _ in gone)} rows of this subject: {words}." in told[0]
    resume_run(run, by=officer)
    assert work_off(request).state == Run.State.STOPPED
    released(LegalHold.objects.get(), by=officer, second=second)
    resume_run(run, by=officer)
    work_to_the_end(request)
    assert (request.state, items_of("ada"), Signal.objects.count()) == (State.COMPLETE, 0, 0)
    counts = erased_of(request)
    assert (counts["sessions/main"], counts["signals"]) == (50, 3)


def test_a_hold_that_comes_too_late_is_told_what_went(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    subject = with_sessions("ada", by=officer)
    request = approved(subject, by=officer, second=second)
    work_to_the_end(request)
    rows = sum(erased_of(request).values())
    with pytest.raises(NothingToHold, match=f"{request} has erased {rows} rows of this subject: 50 in main, "):
        make_hold(subject, by=officer)
    assert not LegalHold.objects.exists()


def test_a_hold_on_one_session_names_the_erasure_of_its_merged_subject(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    """Its session is of a subject that was merged into the one that is erased."""
    subject, other = with_sessions("ada", by=officer), with_sessions("eve", by=officer, sessions=1)
    merge_subjects(other, subject, by=officer)
    held = SessionRecord.objects.get(session_id="eve:0")
    make_hold("urgent", by=officer)
    hold = make_hold(held, by=officer)
    page = signed_in(officer)
    assert "has erased" not in page.get(hold.get_absolute_url()).content.decode()
    request = approved(subject, by=officer, second=second)
    work_off(request)
    assert (items_of("ada"), items_of("eve")) == (0, 25)
    assert f"{request} has erased" in page.get(hold.get_absolute_url()).content.decode()


def test_a_subject_that_is_held_after_the_approval_is_not_touched(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    subject = with_sessions("ada", by=officer)
    request = approved(subject, by=officer, second=second)
    hold = make_hold(subject, by=officer)
    run = work_off(request)
    assert (run.state, request.state, items_of("ada")) == (Run.State.STOPPED, State.APPROVED, 50)
    services.cancel_request(request, note="the claim comes first", by=officer)
    request.refresh_from_db()
    assert request.state == State.CANCELLED
    assert not ErasureStep.objects.exists()
    assert SessionRecord.objects.filter(erased_at=None).count() == 2
    assert not hold.is_released


# Four: on a subject and on a session, twice each.
@pytest.mark.parametrize("pairs", [4, pytest.param(PAIRS, marks=pytest.mark.release)])
def test_raced_with_holds_no_row_goes_after_the_commit_of_a_hold(
    kept_main_store: SessionStore,
    officer: User,
    second: User,
    small_chunks: None,
    monkeypatch: pytest.MonkeyPatch,
    pairs: int,
) -> None:
    """Each hold is placed by somebody else while a transaction of the erasure is open, every time a later one.

    On a busy machine a hold may come when everything is gone, and is refused: not all of them.
    """
    too_late = 0
    for pair in range(pairs):
        key = f"person-{pair}"
        subject = with_sessions(key, by=officer, sessions=1, items=6 * ROWS)
        record = SessionRecord.objects.get(session_id=f"{key}:0")
        request = approved(subject, by=officer, second=second)
        assert request.run is not None
        with in_transaction(monkeypatch, 2 + pair % 5) as comes_to_it, somebody_else() as elsewhere:
            erasing = elsewhere(lambda run=request.run: engine.carry_on(run))
            assert comes_to_it.wait(60)
            try:
                make_hold(subject if pair % 2 else record, by=officer)
            except NothingToHold:
                too_late += 1
                erasing.result()
                assert (items_of(key), erased_of(request)["sessions/main"]) == (0, 6 * ROWS)
                continue
            left = items_seen_elsewhere(key)
            run = erasing.result()
        assert items_of(key) == left, f"rows of {key} went after the hold"
        assert erased_of(request).get("sessions/main", 0) == 6 * ROWS - left
        assert (run.state in (Run.State.WAITING, Run.State.STOPPED), run.attempts) == (True, 0), run.reason
    assert too_late < pairs


@contextmanager
def in_transaction(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[threading.Event]:
    """The event is set when an erasure has begun so many transactions; the last of them is open then."""
    reached, chunk, began = threading.Event(), engine.Lease.chunk, iter(range(1, 1_000))

    @contextmanager
    def watched(lease: engine.Lease) -> Iterator[Run]:
        with chunk(lease) as run:
            if next(began) == number:
                reached.set()
            yield run

    with monkeypatch.context() as patching:
        patching.setattr(engine.Lease, "chunk", watched)
        yield reached


def items_seen_elsewhere(key: str) -> int:
    with second_connection() as other:
        row = other.execute("SELECT count(*) FROM agent_messages WHERE session_id = %s", [f"{key}:0"]).fetchone()
    assert row is not None
    return int(row[0])
