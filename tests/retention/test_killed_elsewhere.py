"""Sweeps of another system that are killed between a deletion there and the commit here: nothing goes uncounted."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as ours
from django.db import connection
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.retention import audit_events
from memadmin.retention.models import PolicyVersion, SweepResult, UnfinishedExpiry
from memadmin.retention.policies.rules import Action
from memadmin.retention.sweep.starting import request_sweep
from memadmin.retention.targets import item_expiry, noting
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memadmin.runs.services import cancel_run
from memories_app.models import Evidence
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord
from sessions_app.services.discovery import discover
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionBusy, StoreUnavailable
from sessions_app.stores.rewriting import BackendRewriter
from sessions_app.stores.sqlite import file as sqlite_file
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import assistant, run_sql, second_connection, user
from tests.forks import PROCESSES
from tests.memories.builders import approved as approved_memory
from tests.people import person
from tests.retention import swept_and_killed
from tests.retention.builders import make_hold
from tests.retention.policies import in_force, swept
from tests.stores.sqlite_files import SqliteAgent

OLD = timedelta(days=40)

LONG = 25
"""Items of the long session: several chunks of ROWS."""

ROWS = 10


@pytest.fixture
def agent(transactional_db: None, tmp_path: Path) -> SqliteAgent:
    """With a long and two short sessions that are due, and a young one."""
    agent = SqliteAgent(tmp_path)
    for name, items in (("long", LONG), ("short:1", 3), ("short:2", 3), ("young", 2)):
        agent.add(name, *(user(f"item {number}") for number in range(items)))
        if name != "young":
            agent.age(name, OLD)
    discover(agent.store)
    # The SDK writes the row of a session, whose times are those of now.
    SessionRecord.objects.exclude(session_id="young").update(last_activity_at=now() - OLD, registered_at=now() - OLD)
    return agent


@pytest.fixture
def policy(agent: SqliteAgent) -> PolicyVersion:
    return in_force("Chats", days=30)


def killed_after_deletion(number: int, run: Run) -> bool:
    args = (connection.settings_dict["NAME"], ours.DATA_DIR, run.pk, number, ROWS)
    worker = PROCESSES.Process(target=swept_and_killed.main_elsewhere, args=args)
    worker.start()
    worker.join()
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
    assert worker.exitcode in (0, -signal.SIGKILL)
    return worker.exitcode == -signal.SIGKILL


def counted() -> tuple[int, int]:
    """Sessions and items, over all results."""
    results = SweepResult.objects.values_list("taken", "items")
    return sum(taken for taken, _ in results), sum(items for _, items in results)


def everything_is_counted(agent: SqliteAgent) -> None:
    assert [len(agent.stored(name)) for name in ("long", "short:1", "short:2", "young")] == [0, 0, 0, 2]
    assert set(SessionRecord.objects.values_list("session_id", flat=True)) <= {"young", "first"}
    assert counted() == (3, LONG + 6)
    assert not UnfinishedExpiry.objects.exists()


# --- whole sessions ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_after_each_deletion_everything_is_counted(agent: SqliteAgent, policy: PolicyVersion) -> None:
    """Each process does one deletion more than the one before, and dies after it."""
    run, kills = request_sweep(), 0
    while killed_after_deletion(kills + 1, run):
        kills += 1
        assert kills < 20
        if 0 < len(agent.stored("long")) < LONG:
            assert SessionRecord.objects.get(session_id="long").erased_at, "half of a session is gone in silence"
    assert kills >= 2, "it was never killed after a deletion"
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE, (run.reason, run.exceptions)
    everything_is_counted(agent)


@pytest.mark.parametrize("number", [1, *(pytest.param(number, marks=pytest.mark.release) for number in (2, 3, 4))])
def test_the_next_run_counts_it_although_the_store_was_looked_through(
    agent: SqliteAgent, policy: PolicyVersion, number: int
) -> None:
    run = request_sweep()
    assert killed_after_deletion(number, run)
    cancel_run(Run.objects.get(pk=run.pk), by=person("compliance"))
    discover(agent.store)
    assert swept().state == Run.State.COMPLETE
    everything_is_counted(agent)


@pytest.mark.slow
def test_so_does_a_run_under_another_version_by_which_it_is_not_due(agent: SqliteAgent, policy: PolicyVersion) -> None:
    run = request_sweep()
    assert killed_after_deletion(1, run)
    gone = [name for name in ("short:1", "short:2") if not agent.stored(name)]
    cancel_run(Run.objects.get(pk=run.pk), by=person("compliance"))
    in_force(policy=policy.policy, days=400)
    next_run = swept()
    assert next_run.state == Run.State.COMPLETE, (next_run.reason, next_run.exceptions)
    left = SessionRecord.objects.filter(session_id__startswith="short", erased_at=None).count()
    begun = len(agent.stored("long")) < LONG
    assert left == 2 - len(gone)
    assert counted()[0] == len(gone) + begun
    assert not UnfinishedExpiry.objects.exists()


def test_a_noted_session_to_which_an_agent_wrote_stays(
    agent: SqliteAgent, policy: PolicyVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*args: Any, **named: Any) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as away:
        away.setattr(SqliteBackend, "delete_some", die)
        swept()
    assert UnfinishedExpiry.objects.filter(items=3).count() == 2
    assert not SessionRecord.objects.filter(erased_at__isnull=False).exists()
    agent.add("short:1", user("one more"))
    assert swept().state == Run.State.COMPLETE
    assert len(agent.stored("short:1")) == 4
    assert SessionRecord.objects.get(session_id="short:1").erased_at is None
    assert counted() == (2, LONG + 3)
    assert not UnfinishedExpiry.objects.exists()


def test_a_long_session_is_fenced_before_a_part_of_it_goes(
    agent: SqliteAgent, policy: PolicyVersion, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_some = SqliteBackend.delete_some
    fenced = []

    def see(backend: SqliteBackend, session_id: str, **named: Any) -> Any:
        with second_connection() as other:
            query = "SELECT erased_at IS NOT NULL FROM sessions_app_sessionrecord WHERE session_id = %s"
            (row,) = other.execute(query, [session_id]).fetchall()
        fenced.append(session_id != "long" or row == (True,))
        return delete_some(backend, session_id, **named)

    monkeypatch.setattr(SqliteBackend, "delete_some", see)
    run = carry_on(request_sweep())
    assert run.state == Run.State.COMPLETE, (run.reason, run.exceptions)
    assert len(fenced) > 3
    assert all(fenced)
    everything_is_counted(agent)


# --- items of sessions that go on -------------------------------------------------------------------------------------


@pytest.fixture
def half_old(agent: SqliteAgent) -> SqliteAgent:
    """All sessions went on two hours ago, with two items each."""
    for name in ("long", "short:1", "short:2"):
        agent.add(name, user("new"), assistant("answer"))
    agent.ask(
        "UPDATE agent_messages SET created_at = datetime('now', '-2 hours') WHERE created_at > date('now', '-9 days')"
    )
    agent.ask("UPDATE agent_sessions SET updated_at = datetime('now', '-2 hours')")
    discover(agent.store)
    SessionRecord.objects.update(last_activity_at=now() - timedelta(hours=2))
    return agent


def learned_from(name: str) -> Evidence:
    """A quote of the oldest item of a session."""
    record = SessionRecord.objects.get(session_id=name)
    store = backend_for(record.store)
    (first,) = store.first_page(name, 1).items
    return Evidence.objects.create(
        memory=approved_memory(f"tea of {name}"), quote="tea", record_id=record.pk, session_id=name, item_id=first.id
    )


def item_policy(action: str) -> PolicyVersion:
    return in_force("Old items", target="items", clock="written", days=30, action=action)


def old_texts(agent: SqliteAgent, name: str) -> list[str]:
    return [text for text in agent.stored(name) if "item " in text]


def all_items_are_counted(agent: SqliteAgent, quotes: Sequence[Evidence]) -> None:
    """Each item and each session once, in the ledger and in the log, and what was learned from them has its outcome."""
    for name, count in (("long", LONG), ("short:1", 3), ("short:2", 3)):
        assert not old_texts(agent, name)
        assert len(agent.stored(name)) in (2, count + 2)
    assert len(old_texts(agent, "young")) == 2
    assert counted() == (3, LONG + 6)
    events = AuditEvent.objects.filter(type=audit_events.ITEMS_EXPIRED.name).values_list("counters", flat=True)
    assert sum(counters["items"] for counters in events) == LONG + 6
    assert [Evidence.objects.get(pk=quote.pk).quote for quote in quotes] == ["", ""]
    assert not UnfinishedExpiry.objects.exists()


@pytest.mark.parametrize("action", ["delete", pytest.param("redact", marks=pytest.mark.release)])
def test_killed_after_each_change_of_items_everything_is_counted(half_old: SqliteAgent, action: str) -> None:
    """Each process does one change more than the one before, and dies after it."""
    item_policy(action)
    quotes = [learned_from(name) for name in ("long", "short:1")]
    run, kills = request_sweep(), 0
    while killed_after_deletion(kills + 1, run):
        kills += 1
        assert kills < 20
    assert kills >= 2, "it was never killed after a change"
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE, (run.reason, run.exceptions)
    all_items_are_counted(half_old, quotes)


@pytest.mark.slow
def test_the_next_run_counts_the_items_although_the_policy_has_ended(half_old: SqliteAgent) -> None:
    version = item_policy("delete")
    run = request_sweep()
    assert killed_after_deletion(2, run)
    gone = LONG + 6 - sum(len(old_texts(half_old, name)) for name in ("long", "short:1", "short:2"))
    assert gone
    cancel_run(Run.objects.get(pk=run.pk), by=person("compliance"))
    in_force(policy=version.policy, days=400, target="items", clock="written")
    assert swept().state == Run.State.COMPLETE
    assert counted()[1] == gone
    assert not UnfinishedExpiry.objects.exists()


def only_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of all three sessions are noted, and none is gone."""
    item_policy("delete")

    def die(*args: Any, **named: Any) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as away:
        away.setattr(SqliteBackend, "delete_items", die)
        swept()
    assert UnfinishedExpiry.objects.filter(item_marks__isnull=False).count() == 3


def test_noted_items_of_a_session_that_is_held_by_now_stay(
    half_old: SqliteAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_noted(monkeypatch)
    make_hold(SessionRecord.objects.get(session_id="long"), by=person("compliance"))
    assert swept().state == Run.State.COMPLETE
    assert len(old_texts(half_old, "long")) == LONG
    assert counted() == (2, 6)
    assert not UnfinishedExpiry.objects.exists()


@pytest.mark.parametrize("is_held", [True, False])
def test_a_noted_item_with_another_text_by_now_is_still_there(
    half_old: SqliteAgent, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    only_noted(monkeypatch)
    if is_held:
        make_hold(SessionRecord.objects.get(session_id="long"), by=person("compliance"))
    half_old.ask(
        "UPDATE agent_messages SET message_data = replace(message_data, 'item 7', 'item seven')"
        " WHERE session_id = 'long'"
    )
    assert swept().state == Run.State.COMPLETE
    assert len(old_texts(half_old, "long")) == (LONG if is_held else 0)
    assert counted() == ((2, 6) if is_held else (3, LONG + 6))


def test_items_go_and_are_counted_although_the_log_cannot_be_emptied(
    half_old: SqliteAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_policy("delete")
    quotes = [learned_from(name) for name in ("long", "short:1")]
    monkeypatch.setattr(sqlite_file, "WRITE_PATIENCE_SECONDS", 0.2)
    with closing(sqlite3.connect(half_old.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM agent_messages").fetchone()
        run = swept()
    assert run.state == Run.State.COMPLETE
    all_items_are_counted(half_old, quotes)


def test_items_that_went_stay_noted_while_their_file_is_locked(
    half_old: SqliteAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotes = [learned_from(name) for name in ("long", "short:1")]
    only_noted(monkeypatch)
    half_old.ask("DELETE FROM agent_messages WHERE message_data LIKE '%item%' AND session_id <> 'young'")

    def locked(*args: Any, **named: Any) -> None:
        raise SessionBusy("locked")

    with monkeypatch.context() as busy:
        busy.setattr(SqliteBackend, "every_item", locked)
        swept()
    assert counted() == (0, 0)
    assert swept().state == Run.State.COMPLETE
    all_items_are_counted(half_old, quotes)


@pytest.fixture
def small_steps(half_old: SqliteAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The items of the long session, of which each has a time of its own, go in steps of ROWS."""
    change_items = BackendRewriter.change_items

    def change_few(rewriter: BackendRewriter, *arguments: Any, **named: Any) -> Position | None:
        return change_items(rewriter, *arguments, **named, limit=ROWS)

    monkeypatch.setattr(BackendRewriter, "change_items", change_few)
    half_old.ask(
        "UPDATE agent_messages SET created_at = datetime(created_at, (id - 1000) || ' seconds')"
        " WHERE session_id = 'long'"
    )
    discover(half_old.store)
    SessionRecord.objects.update(last_activity_at=now() - timedelta(hours=2))


def test_items_are_counted_once_if_the_store_is_away_between_two_steps(
    half_old: SqliteAgent, small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_policy("delete")
    quotes = [learned_from(name) for name in ("long", "short:1")]
    delete_items = SqliteBackend.delete_items
    steps: list[str] = []

    def away_once(backend: SqliteBackend, session_id: str, items: Sequence[StoredItem]) -> int:
        steps.append(session_id)
        if steps.count("long") == 2 and session_id == "long":
            raise StoreUnavailable("away")
        return delete_items(backend, session_id, items)

    monkeypatch.setattr(SqliteBackend, "delete_items", away_once)
    assert swept().state == Run.State.COMPLETE
    assert steps.count("long") > 2
    all_items_are_counted(half_old, quotes)


def test_a_busy_session_with_more_items_than_a_note_does_not_keep_the_others(
    half_old: SqliteAgent, small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_policy("delete")
    monkeypatch.setattr(item_expiry, "MOST_NOTED", ROWS)
    delete_items = SqliteBackend.delete_items
    tried: list[str] = []

    def busy(backend: SqliteBackend, session_id: str, items: Sequence[StoredItem]) -> int:
        tried.append(session_id)
        assert tried.count("long") < 4, "for ever"
        if session_id == "long":
            raise SessionBusy("locked")
        return delete_items(backend, session_id, items)

    monkeypatch.setattr(SqliteBackend, "delete_items", busy)
    assert swept().state == Run.State.COMPLETE
    assert tried.count("long") == 1
    assert len(old_texts(half_old, "long")) == LONG
    assert counted() == (2, 6)
    assert not UnfinishedExpiry.objects.exists()


def test_items_that_changed_after_they_were_noted_are_known_by_their_texts_where_they_have_no_ids() -> None:
    class WithoutIds:
        capabilities: frozenset[Capability] = frozenset()

        def every_item(self, session_id: str) -> Iterator[StoredItem]:
            for number, text in enumerate(self.texts):
                yield StoredItem(str(number), Position((number,)), text, len(text), None)

        texts = ("one", "two", "three")

    backend: Any = WithoutIds()
    action = Action.DELETE
    record = SessionRecord(session_id="any")
    marks = [noting.mark(item) for item in backend.every_item("any")][:2]
    assert all(noting.key_of(backend, action, mark) in noting.keys_there(backend, action, record) for mark in marks)
    backend.texts = ("two", "three")
    there = noting.keys_there(backend, action, record)
    assert [noting.key_of(backend, action, mark) in there for mark in marks] == [False, True]
