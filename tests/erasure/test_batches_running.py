"""Batches on real stores: many subjects, a store that takes no change, a killed process, two approvers at once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from datetime import timedelta
from io import StringIO
from pathlib import Path
from threading import Barrier, Thread

import pytest
from django.conf import settings as ours
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from memadmin.erasure.batches import outcomes, services
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.models import RequestBatch, SubjectRequest, SuppressionEntry
from memadmin.erasure.scan import tables
from memadmin.erasure.services import WrongState
from memadmin.runs.models import Run
from memories_app.models import Memory
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.discovery import discover
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, run_sql, second_connection, user, value_of
from tests.approvals import shown
from tests.erasure import killed
from tests.erasure.batches import (
    approved_batch,
    awaiting_batch,
    csv_of,
    let_a_day_pass,
    make_subjects,
    work_off_batch,
)
from tests.forks import PROCESSES
from tests.memories.builders import proposed
from tests.people import person
from tests.stores.sqlite_files import SqliteAgent

pytestmark = pytest.mark.usefixtures("transactional_db")

ELSEWHERE = 3


def with_session(key: str, *, by: User) -> str:
    """Gives the subject a session of two items."""
    add_items(f"{key}:1", "tea", "coffee")
    (subject,) = make_subjects([key])
    attach_sessions(SessionRecord.objects.filter(session_id=f"{key}:1"), subject, by=by)
    return key


@pytest.mark.release
def test_many_subjects_of_which_some_wait_for_a_store(
    kept_main_store: SessionStore, tmp_path: Path, officer: User, second: User
) -> None:
    """Four further ones have nothing. A few share a scan in test_scan_together.py."""
    with_sessions = 20
    count = with_sessions + 4
    agent = SqliteAgent(tmp_path)
    keys = [f"cust_{number:03}" for number in range(count)]
    subjects = make_subjects(keys)
    for key, subject in zip(keys[:with_sessions], subjects, strict=False):
        add_items(f"{key}:1", "tea", "coffee")
        attach_sessions(SessionRecord.objects.filter(session_id=f"{key}:1"), subject, by=officer)
    for key in keys[:ELSEWHERE]:
        agent.add(f"{key}:file", user("cake"))
    discover(agent.store)
    for key, subject in zip(keys[:ELSEWHERE], subjects, strict=False):
        attach_sessions(SessionRecord.objects.filter(session_id=f"{key}:file"), subject, by=officer)
    (bystander,) = make_subjects(["bystander"])
    kept = proposed("likes tea", subject=bystander)
    proposed("likes coffee", subject=subjects[0])
    lines = [key if number % 10 else f"{key},user,\nwrong_{number}" for number, key in enumerate(keys)]
    batch = approved_batch(csv_of(*lines), by=officer, second=second)
    assert batch.preview["places"]["main"][:2] == [with_sessions, 2 * with_sessions]

    with agent.read_only():
        run = work_off_batch(batch)
        assert run.state == Run.State.WAITING
        assert outcomes.counts(batch) == {LineOutcome.SCANNING: count - ELSEWHERE, LineOutcome.WAITING: ELSEWHERE}
        assert value_of("SELECT count(*) FROM agent_messages") == 0
    Run.objects.filter(state=Run.State.WAITING, subject_request__state="running").update(retry_at=None)
    Run.objects.filter(pk=run.pk).update(retry_at=None)
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: count}
    assert not agent.leftovers("cake")
    let_a_day_pass(batch)
    run = work_off_batch(batch)
    assert (batch.state, run.state) == (RequestBatch.State.COMPLETE, Run.State.COMPLETE), run.reason
    assert SubjectRequest.objects.filter(state="complete").exclude(receipt="").count() == count
    assert list(Memory.objects.all()) == [kept]
    agent.close()


@pytest.mark.release
def test_killed_again_and_again_it_does_nothing_twice(
    kept_main_store: SessionStore, tmp_path: Path, settings: object, officer: User, second: User
) -> None:
    ledger = tmp_path / "suppressions.jsonl"
    settings.SUPPRESSION_LEDGER = ledger  # type: ignore[attr-defined]
    keys = [with_session(key, by=officer) for key in ("ann", "bob", "eve")]
    with_session("bystander", by=officer)
    batch = approved_batch(csv_of(*keys), by=officer, second=second)
    kills = 0
    while kill_at(4 + kills % 9, batch, ledger):
        kills += 1
        assert kills < 200
        # Each line has one case, and no case is without a line.
        assert batch.lines.filter(request__isnull=False).count() == SubjectRequest.objects.count()
    assert kills > 10
    work_off_batch(batch)
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
    assert value_of("SELECT string_agg(DISTINCT session_id, '') FROM agent_messages") == "bystander:1"
    for request in SubjectRequest.objects.all():
        counts = json.loads(request.receipt)["payload"]["counts"]
        assert counts["sessions/main"] == 2
        assert request.notes.filter(code="started").count() == 1
        assert request.notes.filter(code="approved").count() == 1
    assert (SubjectRequest.objects.count(), SuppressionEntry.objects.count()) == (3, 3)


def kill_at(point: int, batch: RequestBatch, ledger: Path) -> bool:
    """Whether a process that works on the batch came to this point, and was killed there."""
    args = (connection.settings_dict["NAME"], ours.DATA_DIR, ledger, batch.run_id, point)
    worker = PROCESSES.Process(target=killed.main, args=args)
    worker.start()
    worker.join()
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
    assert worker.exitcode in (0, -signal.SIGKILL)
    return worker.exitcode == -signal.SIGKILL


def test_locked_table_is_waited_for_and_named(
    kept_main_store: SessionStore, reads: Counter[str], officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [with_session(key, by=officer) for key in ("ann", "bob", "eve")]
    with_session("bystander", by=officer)
    batch = approved_batch(csv_of(*keys), by=officer, second=second)
    monkeypatch.setattr(tables, "LOCK_TIMEOUT", "50ms")
    run_sql("CREATE TABLE locked_table AS SELECT 'x' AS held")
    try:
        with second_connection() as somebody:
            somebody.execute("LOCK TABLE locked_table IN ACCESS EXCLUSIVE MODE")
            run = work_off_batch(batch)
            assert "locked_table" in run.reason
            assert outcomes.counts(batch) == {LineOutcome.TO_SCAN: 3}
        Run.objects.filter(pk=run.pk).update(retry_at=None)
        work_off_batch(batch)
    finally:
        run_sql("DROP TABLE locked_table")
    assert outcomes.counts(batch) == {LineOutcome.SCANNING: 3}
    assert (reads["agent_messages"], reads["locked_table"]) == (1, 1)


def test_of_two_approvers_at_once_one_approves(officer: User, second: User) -> None:
    third = person("compliance", "support")
    make_subjects(["ann"])
    batch = awaiting_batch(csv_of("ann"), by=officer)
    together, ends = Barrier(2), []

    def approve(by: User) -> None:
        try:
            mine = RequestBatch.objects.get(pk=batch.pk)
            together.wait()
            services.approve(mine, by=by, typed="erase 1", shown=shown(mine))
            ends.append("approved")
        except WrongState:
            ends.append("too late")
        finally:
            connection.close()

    threads = [Thread(target=approve, args=[by]) for by in (second, third)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["approved", "too late"]
    assert Run.objects.filter(kind=services.RUN_KIND).count() == 1


def test_the_command_erases_a_file_and_continues(
    agent_tables: None, tmp_path: Path, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memadmin.erasure.management.commands import erase_batch

    monkeypatch.setattr(erase_batch, "RECEIPT_SECONDS", 0)
    make_subjects(["ann", "bob"])
    file = tmp_path / "list.csv"
    file.write_bytes(csv_of("ann", "bob", "secret-unknown"))
    people = ("--requested-by", officer.username, "--reason", "consent")

    def erase(approver: User) -> dict[str, object]:
        out = StringIO()
        call_command("erase_batch", str(file), *people, "--approved-by", approver.username, "--json", stdout=out)
        assert "secret" not in out.getvalue()
        return json.loads(out.getvalue())  # type: ignore[no-any-return]

    with pytest.raises(CommandError, match="Another person than the requester"):
        erase(officer)
    with pytest.raises(CommandError, match="The same command continues"):
        erase(second)  # the log has not sequenced the events yet
    batch = RequestBatch.objects.get()
    assert batch.is_started
    work_off_batch(batch)
    Run.objects.filter(request_batch=batch).update(retry_at=None)
    report = erase(second)
    assert report["subjects"] == {"scanning": 2}
    assert report["broken"] == ["line 4: Unknown subject."]
    assert RequestBatch.objects.get() == batch
    assert batch.starts_at is not None
    assert batch.approval
    assert batch.approval.decided_at
    assert batch.starts_at - batch.approval.decided_at < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"\xff\xfe", "not UTF-8"), (b"", "no lines"), (b"x" * 1_000_001, "larger than 1 MB")]
)
def test_the_command_refuses_what_it_cannot_read(
    content: bytes, sentence: str, tmp_path: Path, officer: User, second: User
) -> None:
    file = tmp_path / "list.csv"
    file.write_bytes(content)
    names = ("--requested-by", officer.username, "--approved-by", second.username, "--reason", "consent")
    with pytest.raises(CommandError, match=f"{sentence}.*Nothing was changed"):
        call_command("erase_batch", str(file), *names)
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("erase_batch", str(tmp_path / "none.csv"), *names)
    assert not RequestBatch.objects.exists()
