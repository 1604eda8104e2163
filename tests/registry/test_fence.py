"""An erased session stays erased: what a writer meets, and that no interleaving with an erasure leaves a row behind.

The proof that the tests can fail is among them: with a fence that only looks the erasure up, or with a registry
without its unique key, the same interleaving leaves rows behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import psycopg
import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from django.db import connection
from psycopg import IsolationLevel
from sqlalchemy.exc import DBAPIError

from sessions_app import registry
from sessions_app.models import FenceOutbox, SessionRecord, SessionStore
from sessions_app.registry.fence import triggers_for
from sessions_app.registry.tables import read_tables
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import Deleted
from tests.agents import add_items, attach_main_store, database_role, in_sdk, run_sql, second_connection, value_of
from tests.meanwhile import comes_to_wait
from tests.waiting import PATIENCE_SECONDS

LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]


@dataclass(frozen=True)
class Outcome:
    eraser_waited: bool
    messages: int
    sessions: int
    is_erased: bool


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    return attach_main_store()


@pytest.fixture
def dropping_store(agent_tables: None) -> SessionStore:
    return attach_main_store(mode="drop")


def erase_during_a_write(store: SessionStore, writer: psycopg.Connection) -> Outcome:
    """A writer has made the session's row; the eraser comes; the writer adds an item and commits."""
    writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('race') ON CONFLICT DO NOTHING")
    writer.execute("SELECT FROM agent_sessions WHERE session_id = 'race' FOR UPDATE")
    with ThreadPoolExecutor(1) as threads:
        erasure = threads.submit(erase, store, "race")
        waited = comes_to_wait(erasure, by=writer)
        writer.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('race', '{}')")
        writer.commit()
        erasure.result(PATIENCE_SECONDS)
    return Outcome(
        eraser_waited=waited,
        messages=value_of("SELECT count(*) FROM agent_messages WHERE session_id = 'race'"),
        sessions=value_of("SELECT count(*) FROM agent_sessions WHERE session_id = 'race'"),
        is_erased=SessionRecord.objects.filter(session_id="race", erased_at__isnull=False).exists(),
    )


def erase(store: SessionStore, session_id: str) -> int:
    """For a thread of its own, which has a connection of its own."""
    try:
        return backend_for(store).erase_session(session_id)
    finally:
        connection.close()


def cleared_before() -> None:
    """The session's registry row is there, its session row is not: the SDK's clear_session leaves it so."""
    add_items("race", "once upon a time")
    in_sdk(lambda tables: tables.session("race").clear_session())


HISTORIES: dict[str, Callable[[], None]] = {
    "never seen": lambda: None,
    "cleared before": cleared_before,
    "written before": lambda: add_items("race", "once upon a time"),
}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("mode", SessionStore.FenceMode.values)
def test_an_erasure_waits_for_the_write_under_way_and_takes_it_along(
    agent_tables: None, mode: str, history: str, level: IsolationLevel
) -> None:
    store = attach_main_store(mode=mode)
    HISTORIES[history]()
    with second_connection() as writer:
        writer.isolation_level = level
        outcome = erase_during_a_write(store, writer)
    assert outcome == TIGHT


def write_between_two_steps(store: SessionStore, level: IsolationLevel) -> Deleted:
    """A writer that began before the erasure adds an item after its first step, as the SDK does."""
    add_items("race", "once", "upon", "a time")
    with second_connection() as writer:
        writer.isolation_level = level
        writer.execute("SELECT count(*) FROM agent_messages")
        assert backend_for(store).delete_some("race", at_most=1) == Deleted(1, 2)
        with suppress(psycopg.Error):
            writer.execute("SELECT FROM agent_sessions WHERE session_id = 'race' FOR UPDATE")
            writer.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('race', '{}')")
            writer.execute("UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = 'race'")
            writer.commit()
    return backend_for(store).delete_some("race", at_most=1)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("mode", SessionStore.FenceMode.values)
def test_nothing_is_written_between_two_steps_of_an_erasure(
    agent_tables: None, mode: str, level: IsolationLevel
) -> None:
    assert write_between_two_steps(attach_main_store(mode=mode), level) == Deleted(1, 1)


def test_a_fence_that_only_follows_lets_an_item_in_between_two_steps(store: SessionStore) -> None:
    follow = next(t for t in triggers_for(store, read_tables(store)) if "follow" in t.name)
    body = follow.body.replace("IF ended IS NOT NULL", "IF false")
    assert body != follow.body
    run_sql(follow.create_function().as_string(None).replace(follow.body, body))
    assert write_between_two_steps(store, IsolationLevel.READ_COMMITTED) == Deleted(1, 2)


def test_without_the_mark_an_item_is_written_between_two_steps(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.stores.sqlalchemy.backend.mark_erased", lambda store, session_id: None)
    assert write_between_two_steps(store, IsolationLevel.READ_COMMITTED) == Deleted(1, 2)


@pytest.fixture
def fence_alone(store: SessionStore) -> SessionStore:
    """Without the trigger that follows the activity: it holds the registry row too, and hides a break in the fence."""
    run_sql(f"DROP FUNCTION memadmin_follow_{store.pk} CASCADE")
    return store


@pytest.fixture
def fence_that_only_looks_up(fence_alone: SessionStore) -> SessionStore:
    register = next(t for t in triggers_for(fence_alone, read_tables(fence_alone)) if "register" in t.name)
    body = register.body.replace("FOR KEY SHARE", "")
    assert body != register.body
    run_sql(register.create_function().as_string(None).replace(register.body, body))
    return fence_alone


@pytest.fixture
def registry_without_its_key(fence_alone: SessionStore) -> Iterator[SessionStore]:
    (key,) = [c for c in SessionRecord._meta.constraints if c.name == "session_record_fence"]
    with connection.schema_editor() as editor:
        editor.remove_constraint(SessionRecord, key)
    yield fence_alone
    SessionRecord.objects.all().delete()
    with connection.schema_editor() as editor:
        editor.add_constraint(SessionRecord, key)


TIGHT = Outcome(eraser_waited=True, messages=0, sessions=0, is_erased=True)
LEAKED = Outcome(eraser_waited=False, messages=1, sessions=1, is_erased=True)


def erase_after_a_clear(store: SessionStore) -> Outcome:
    cleared_before()
    with second_connection() as writer:
        return erase_during_a_write(store, writer)


def test_the_fence_alone_is_tight(fence_alone: SessionStore) -> None:
    assert erase_after_a_clear(fence_alone) == TIGHT


def test_a_fence_that_only_looks_up_leaks_and_the_check_names_it(fence_that_only_looks_up: SessionStore) -> None:
    assert erase_after_a_clear(fence_that_only_looks_up) == LEAKED
    assert "function-changed" in codes_of(fence_that_only_looks_up)


def test_a_registry_without_its_key_leaks_and_the_check_names_it(registry_without_its_key: SessionStore) -> None:
    assert erase_after_a_clear(registry_without_its_key) == LEAKED
    assert "registry-key-missing" in codes_of(registry_without_its_key)


def codes_of(store: SessionStore) -> list[str]:
    return [problem.code for problem in registry.check(store).problems]


class TestLateWrites:
    def test_a_late_write_fails_with_a_clear_message(self, store: SessionStore) -> None:
        add_items("gone", "hello")
        backend_for(store).erase_session("gone")

        with pytest.raises(DBAPIError, match="This session was erased and can never be written to again") as refusal:
            add_items("gone", "are you there?")
        assert getattr(refusal.value.orig, "sqlstate", None) == registry.ERASED
        assert backend_for(store).previews(["gone"])["gone"].item_count is None

    def test_the_message_names_no_session(self, store: SessionStore) -> None:
        backend_for(store).erase_session("customer_ann@example.com")
        with pytest.raises(DBAPIError) as refusal:
            add_items("customer_ann@example.com", "hello")
        assert "example.com" not in str(refusal.value.orig)

    @pytest.mark.parametrize("level", LEVELS[1:], ids=lambda level: level.name)
    def test_an_old_snapshot_does_not_pass(self, store: SessionStore, level: IsolationLevel) -> None:
        """A writer that began before the erasure still sees the registry as it was."""
        cleared_before()
        with second_connection() as writer:
            writer.isolation_level = level
            writer.execute("SELECT count(*) FROM sessions_app_sessionrecord")
            backend_for(store).erase_session("race")
            with pytest.raises((psycopg.errors.SerializationFailure, psycopg.errors.RaiseException)):
                writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('race')")

    def test_a_session_cannot_be_renamed_into_an_erased_one(self, store: SessionStore) -> None:
        backend_for(store).erase_session("gone")
        with second_connection() as writer:
            writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('other')")
            with pytest.raises(psycopg.Error) as refusal:
                writer.execute("UPDATE agent_sessions SET session_id = 'gone' WHERE session_id = 'other'")
        assert refusal.value.sqlstate == registry.ERASED

    def test_an_erased_session_of_one_store_is_free_in_another(self, store: SessionStore) -> None:
        run_sql('CREATE SCHEMA "Agents"; CREATE TABLE "Agents".s (LIKE agent_sessions INCLUDING ALL)')
        run_sql(
            'CREATE TABLE "Agents".m (LIKE agent_messages INCLUDING ALL,'
            ' FOREIGN KEY (session_id) REFERENCES "Agents".s)'
        )
        other = declare_store("other", sessions_table="Agents.s", messages_table="Agents.m")
        attach_store(other)
        backend_for(store).erase_session("both")
        run_sql("""INSERT INTO "Agents".s (session_id) VALUES ('both')""")
        assert SessionRecord.objects.get(store=other, session_id="both").erased_at is None


class TestDropMode:
    @pytest.mark.parametrize("items", [["one"], ["one", "two", "three"]], ids=["one item", "several items"])
    def test_a_late_write_is_discarded_and_noted_once(self, dropping_store: SessionStore, items: list[str]) -> None:
        add_items("gone", "hello")
        add_items("here", "hello")
        backend_for(dropping_store).erase_session("gone")

        add_items("gone", *items)
        add_items("here", *items)

        assert in_sdk(lambda tables: tables.session("gone").get_items()) == []
        assert backend_for(dropping_store).previews(["gone"])["gone"].item_count is None
        assert backend_for(dropping_store).count("here") == 1 + len(items)
        assert list(FenceOutbox.objects.values_list("store", "session_id", "event")) == [
            (dropping_store.pk, "gone", registry.WRITE_DROPPED)
        ]
        add_items("gone", *items)
        assert FenceOutbox.objects.count() == 2

    def test_items_written_without_a_session_row_are_noted_once_too(self, dropping_store: SessionStore) -> None:
        backend_for(dropping_store).erase_session("gone")
        with second_connection() as writer:
            for _ in range(3):
                writer.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('gone', '{}')")
            writer.commit()
        assert value_of("SELECT count(*) FROM agent_messages") == 0
        assert FenceOutbox.objects.count() == 1

    def test_a_write_that_rolls_back_is_not_noted(self, dropping_store: SessionStore) -> None:
        backend_for(dropping_store).erase_session("gone")
        with second_connection() as writer:
            writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('gone')")
            writer.rollback()
        assert not FenceOutbox.objects.exists()


def answer(session_id: str) -> str:
    """A whole run of the SDK's runner on a session, with a scripted model."""
    agent = Agent(name="Bot", model=ScriptedModel([[assistant_message("Hello yourself")]]))
    quiet = RunConfig(tracing_disabled=True)
    return in_sdk(
        lambda tables: Runner.run(agent, "Hello", session=tables.session(session_id), run_config=quiet)
    ).final_output_as(str)


def test_a_run_on_an_erased_session_completes_in_drop_mode_and_stores_nothing(dropping_store: SessionStore) -> None:
    backend_for(dropping_store).erase_session("gone")
    assert answer("gone") == "Hello yourself"
    assert value_of("SELECT count(*) FROM agent_messages") == 0
    assert answer("here") == "Hello yourself"
    assert value_of("SELECT count(*) FROM agent_messages") == 2


def test_a_run_on_an_erased_session_fails_in_reject_mode(store: SessionStore) -> None:
    backend_for(store).erase_session("gone")
    with pytest.raises(DBAPIError, match="This session was erased"):
        answer("gone")
    assert answer("here") == "Hello yourself"


class TestActivity:
    def test_last_activity_is_the_writers_instant_whatever_zone_it_writes_in(self, store: SessionStore) -> None:
        for zone in ("UTC", "Asia/Tokyo", "America/Caracas"):
            before = value_of("SELECT clock_timestamp()")
            add_items(f"from {zone}", "hello", timezone=zone)
            record = SessionRecord.objects.get(session_id=f"from {zone}")
            assert before <= record.last_activity_at <= value_of("SELECT clock_timestamp()")

    def test_each_write_is_counted_and_moves_the_last_activity(self, store: SessionStore) -> None:
        add_items("talk", "one")
        first = SessionRecord.objects.get(session_id="talk")
        add_items("talk", "two")
        second = SessionRecord.objects.get(session_id="talk")
        assert second.activity_count == first.activity_count + 1
        assert second.last_activity_at > first.last_activity_at
        assert second.last_activity_at.replace(tzinfo=None) == value_of("SELECT updated_at FROM agent_sessions")

    def test_a_cleared_session_keeps_its_record_and_goes_on_with_it(self, store: SessionStore) -> None:
        cleared_before()
        first = SessionRecord.objects.get(session_id="race")
        add_items("race", "again")
        second = SessionRecord.objects.get(session_id="race")
        assert second.pk == first.pk
        assert second.last_activity_at > first.last_activity_at
        assert second.activity_count > first.activity_count

    def test_a_session_whose_row_is_lost_from_the_registry_is_registered_by_its_next_write(
        self, store: SessionStore
    ) -> None:
        add_items("talk", "one")
        SessionRecord.objects.all().delete()
        add_items("talk", "two")
        assert SessionRecord.objects.filter(session_id="talk").count() == 1

    def test_agents_need_no_right_on_our_tables(self, store: SessionStore) -> None:
        with database_role("agent") as agent:
            run_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON agent_sessions, agent_messages TO {agent}")
            run_sql(f"GRANT USAGE ON SEQUENCE agent_messages_id_seq TO {agent}")
            with second_connection() as writer:
                writer.execute(f"SET ROLE {agent}")
                # A writer's own search_path must not lead our function to another table of the same name.
                writer.execute("CREATE TEMP TABLE sessions_app_sessionrecord (store_id int)")
                writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('theirs')")
                writer.execute("UPDATE agent_sessions SET updated_at = now()")
                writer.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('theirs', '{}')")
                writer.commit()
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    writer.execute(f"SELECT memadmin_register_{store.pk}()")
        assert SessionRecord.objects.filter(session_id="theirs").exists()
