"""One scan for all cases of a batch or a replay: each hit is that of its own case, and none is taken for scanned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now

from memadmin.erasure import services as requests
from memadmin.erasure import together, work
from memadmin.erasure.batches import outcomes
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.scan import progress, tables
from memadmin.erasure.suppression.ledger import Ledger, subject_digests
from memadmin.erasure.suppression.replay import replay
from memadmin.runs import engine
from memadmin.runs.models import Run
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store, attached_store, user, value_of
from tests.builders import make_subject
from tests.erasure.batches import approved_batch, csv_of, let_a_day_pass, make_subjects, work_off_batch
from tests.erasure.builders import work_off
from tests.erasure.faults import a_day_later, add_behind_the_fence, retry
from tests.retention.builders import make_hold

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

State = SubjectRequest.State

WhenRead = Callable[[str, Callable[[], object]], None]

ANN, BOB, EVE = "customer-1-ann", "customer-2-bob", "customer-3-eve"


@pytest.fixture(scope="module")
def store(committed_world: None) -> None:
    """The main store with a session of each."""
    attach_main_store()
    for key in (ANN, BOB, EVE, "other"):
        add_items(f"{key}:1", "tea", "coffee")


@pytest.fixture
def batch(store: None, officer: User, second: User) -> RequestBatch:
    """A batch of three, each with a session, beside somebody else with another."""
    SessionIdPattern.objects.create(store=SessionStore.objects.get(), name="ids", pattern="{subject}:{*}")
    for key, subject in zip((ANN, BOB, EVE, "other"), make_subjects([ANN, BOB, EVE, "other"]), strict=True):
        attach_sessions(SessionRecord.objects.filter(session_id=f"{key}:1"), subject, by=officer)
    return approved_batch(csv_of(ANN, BOB, EVE), by=officer, second=second)


def say(session_id: str, *texts: str) -> None:
    """Adds items to a session of an agent, on this connection."""
    with connection.cursor() as cursor:
        for text in texts:
            values = [session_id, json.dumps(user(text), ensure_ascii=False)]
            cursor.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (%s, %s)", values)


def cases(batch: RequestBatch) -> list[SubjectRequest]:
    """Those of the batch, in the order of its lines."""
    lines = batch.lines.filter(request__isnull=False).select_related("request").order_by("number")
    return [line.request for line in lines if line.request]


def found(batch: RequestBatch) -> list[dict[str, int]]:
    """What the last scan of each case has found, by place."""
    return [{row["place"]: row["found"] for row in case.scans[-1]["places"]} for case in cases(batch)]


@pytest.fixture
def when_read(monkeypatch: pytest.MonkeyPatch) -> WhenRead:
    """`when_read("a_table", act)` calls `act` once: when a scan has read that table, and is not over."""

    def when_read(table: str, act: Callable[[], object]) -> None:
        acts, finish = {f"table {table}": act}, progress.RunProgress.finish

        def finish_and_act(self: progress.RunProgress, part: str) -> None:
            finish(self, part)
            if due := acts.pop(part, None):
                due()

        monkeypatch.setattr(progress.RunProgress, "finish", finish_and_act)

    return when_read


class Killed(BaseException):
    """Ends a process as a signal does: nothing handles it."""


def killed() -> None:
    raise Killed


def leases_are_over(batch: RequestBatch) -> None:
    Run.objects.filter(lease_until__isnull=False).update(lease_until=None, state=Run.State.WAITING)
    assert batch.run is not None
    batch.run.refresh_from_db()


def test_all_cases_share_one_scan_at_once_and_a_day_later(batch: RequestBatch, reads: Counter[str]) -> None:
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
    assert reads["agent_messages"] == 1
    assert len({case.scans[0]["at"] for case in cases(batch)}) == 1
    let_a_day_pass(batch)
    work_off_batch(batch)
    assert batch.state == RequestBatch.State.COMPLETE
    assert reads["agent_messages"] == 2
    for case in cases(batch):
        assert [len(case.scans), case.pending_scan] == [2, {}]
        scans = json.loads(case.receipt)["payload"]["scans"]
        assert all(scan["rows_read"] > 2 and not scan["found"] for scan in scans)


def test_each_hit_is_that_of_its_own_case(batch: RequestBatch) -> None:
    say("other:1", f"ask {BOB.upper()}", f"{EVE} and {BOB}")
    work_off_batch(batch)
    place = "agent_messages.message_data"
    assert found(batch) == [{}, {place: 2}, {place: 1}]
    let_a_day_pass(batch)
    work_off_batch(batch)
    assert [case.state for case in cases(batch)] == ["complete", "exceptions", "exceptions"]
    exceptions = [json.loads(case.receipt)["payload"]["exceptions"] for case in cases(batch)]
    assert exceptions[0] == []
    assert exceptions[1] == [{"code": "others_text", "place": f"scan/{place}", "count": 2}]
    assert value_of("SELECT count(*) FROM agent_messages") == 4


def test_a_session_is_its_owners_and_for_all_others_a_place_to_search(batch: RequestBatch, officer: User) -> None:
    """Ann's session, which a hold keeps, names herself and Bob."""
    say(f"{ANN}:1", f"{ANN} knows {BOB}")
    make_hold(SessionRecord.objects.get(session_id=f"{ANN}:1"), by=officer)
    work_off_batch(batch)
    # The hold names the session, and stays.
    assert found(batch) == [{"retention_legalhold.session_id": 1}, {"agent_messages.message_data": 1}, {}]


def test_what_came_back_opens_its_own_case_again(batch: RequestBatch) -> None:
    work_off_batch(batch)
    let_a_day_pass(batch)
    add_behind_the_fence(f"{EVE}:late", "I came back")
    work_off_batch(batch)
    assert [case.state for case in cases(batch)] == [State.COMPLETE, State.COMPLETE, State.SCANNING]
    assert [len(case.scans) for case in cases(batch)] == [2, 2, 3]
    assert [case.notes.filter(code="reopened").count() for case in cases(batch)] == [0, 0, 1]
    assert value_of("SELECT count(*) FROM agent_messages") == 2
    let_a_day_pass(batch)
    work_off_batch(batch)
    assert batch.state == RequestBatch.State.COMPLETE


def test_a_case_that_joins_after_the_scan_began_gets_one_of_its_own(
    batch: RequestBatch, reads: Counter[str], when_read: WhenRead, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = work.start

    def eve_waits(lease: engine.Lease, request: SubjectRequest) -> None:
        if request.subject == batch.lines.order_by("number")[2].subject:
            raise engine.Wait("Not yet.", retry_after=timedelta(hours=1))
        start(lease, request)

    def eve_is_erased() -> None:
        monkeypatch.setattr(work, "start", start)
        # Written where this scan does not come any more.
        say("other:1", f"about {EVE} and {BOB}")
        eve = Run.objects.get(subject_request=cases(batch)[2])
        Run.objects.filter(pk=eve.pk).update(retry_at=None)
        engine.carry_on(eve)
        assert cases(batch)[2].pending_scan == {"number": 1}

    monkeypatch.setattr(work, "start", eve_waits)
    when_read("agent_messages", eve_is_erased)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
    assert reads["agent_messages"] == 2
    assert found(batch) == [{}, {}, {"agent_messages.message_data": 1}]


def test_a_scan_does_not_answer_for_a_later_one(batch: RequestBatch, reads: Counter[str], when_read: WhenRead) -> None:
    """A case can be scanned by itself meanwhile, find something, erase it, and wait for its next scan."""

    def ann_waits_for_another() -> None:
        SubjectRequest.objects.filter(pk=cases(batch)[0].pk).update(pending_scan={"number": 2})

    when_read("agent_messages", ann_waits_for_another)
    work_off_batch(batch)
    assert reads["agent_messages"] == 2
    at = [case.scans[0]["at"] for case in cases(batch)]
    assert at[0] > at[1] == at[2]


def test_a_scan_for_several_that_was_killed_goes_on_where_it_was(
    batch: RequestBatch, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FIRST_PAGES", 1)
    monkeypatch.setattr(tables, "MOST_PAGES", 1)
    say("other:1", *(f"item {n} for {BOB if n % 4 else EVE} {'x' * 1_500}" for n in range(40)))
    read, numbers = tables.TableScan.read, count(1)

    def dies_sometimes(self: tables.TableScan, start: int, end: int) -> Any:
        found = read(self, start, end)
        if self.table.place == "agent_messages" and next(numbers) in (3, 7):
            raise Killed
        return found

    monkeypatch.setattr(tables.TableScan, "read", dies_sometimes)
    for _ in range(2):
        with pytest.raises(Killed):
            work_off_batch(batch)
        leases_are_over(batch)
    work_off_batch(batch)
    place = "agent_messages.message_data"
    assert found(batch) == [{}, {place: 30}, {place: 10}]
    pages = value_of("SELECT pg_relation_size('agent_messages') / current_setting('block_size')::int")
    assert reads["agent_messages"] == pages + 2


def test_ids_that_cannot_be_decrypted_stop_their_own_case_only(
    batch: RequestBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_ATTEMPTS", 1)
    search = together.search

    def once_it_waits(lease: engine.Lease) -> bool:
        if progress.KEY not in lease.run.cursor:
            SubjectRequest.objects.filter(pk=cases(batch)[0].pk, scans=[]).update(locators=b"written with another key")
        return search(lease)

    monkeypatch.setattr(together, "search", once_it_waits)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 2, LineOutcome.FAILED: 1}
    assert "SecretKeyChanged" in Run.objects.get(subject_request=cases(batch)[0]).reason


def test_who_leaves_out_a_store_that_is_away_does_not_wait_for_it(
    batch: RequestBatch, reads: Counter[str], officer: User, tmp_path: Path
) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "x.json").write_text(json.dumps([{"role": "user", "content": f"ask {ANN}, {BOB}"}] * 7))
    attached_store("files", kind="json_file", options={"path": str(folder)})
    folder.rename(tmp_path / "away")
    run = work_off_batch(batch)
    assert run.reason.startswith("The store files does not respond. To leave it out,")
    assert outcomes.counts(batch) == {LineOutcome.TO_SCAN: 3}
    ann = cases(batch)[0]
    for case in cases(batch):
        assert case.steps.get(place="files").state == "waiting"
    requests.leave_out(ann, ann.steps.get(place="files"), note="", by=officer)
    Run.objects.filter(pk=run.pk).update(retry_at=None)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 1, LineOutcome.TO_SCAN: 2}
    eve = cases(batch)[2]
    requests.leave_out(eve, eve.steps.get(place="files"), note="", by=officer)
    (tmp_path / "away").rename(folder)
    Run.objects.filter(pk=run.pk).update(retry_at=None)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
    assert found(batch) == [{}, {"files": 7}, {}]
    # The rest was read once for all of them.
    assert reads["agent_messages"] == 1
    # In the end the store was read for Bob alone.
    ann, bob, eve = cases(batch)
    assert ann.scans[0]["rows"] == eve.scans[0]["rows"] == bob.scans[0]["rows"] - 7


def test_of_a_failed_batch_each_case_searches_by_itself(batch: RequestBatch, when_read: WhenRead) -> None:
    when_read("agent_messages", killed)
    with pytest.raises(Killed):
        work_off_batch(batch)
    leases_are_over(batch)
    Run.objects.filter(request_batch=batch).update(state=Run.State.FAILED, ended_at=Now())
    for case in cases(batch):
        assert case.run is not None
        Run.objects.filter(pk=case.run.pk).update(retry_at=None)
        engine.carry_on(case.run)
    assert [len(case.scans) for case in cases(batch)] == [1, 1, 1]


def test_erasures_that_are_repeated_after_a_restore_share_their_scans(
    store: None, ledger: Ledger, officer: User, reads: Counter[str]
) -> None:
    for key in (ANN, BOB, EVE):
        attach_sessions(SessionRecord.objects.filter(session_id=f"{key}:1"), make_subject(key), by=officer)
        ledger.append(uuid4(), subjects=subject_digests("user", key), sessions=[], after=0)
    done = replay()
    assert (done.entries, done.subjects, done.unfinished) == (3, 3, [])
    assert value_of("SELECT string_agg(DISTINCT session_id, '') FROM agent_messages") == "other:1"
    assert reads["agent_messages"] == 1

    run, repeated = Run.objects.get(kind="erasure_replay"), list(SubjectRequest.objects.all())
    for request in repeated:
        assert request.run is not None
        retry(request.run)
        work_off(request)
        a_day_later(request)
    retry(run)
    engine.carry_on(run)
    assert reads["agent_messages"] == 2
    for request in repeated:
        work_off(request)
        assert request.state == State.COMPLETE
    retry(run)
    assert engine.carry_on(run).state == Run.State.COMPLETE
