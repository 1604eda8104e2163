"""Pauses of a sweep: replicas that are behind, and tables full of dead rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from psycopg import IsolationLevel

from memadmin.retention.models import SweepResult
from memadmin.retention.sweep import pressure, work
from memadmin.retention.sweep.pressure import hidden_replicas, wait_for_database
from memadmin.retention.sweep.tables import swept_tables, with_too_many_dead
from memadmin.runs.engine import Wait, carry_on
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items, run_sql, second_connection, value_of
from tests.retention.policies import age, in_force, swept
from tests.table_statistics import keep_autovacuum_off, wait_for_statistics


@pytest.fixture(autouse=True)
def nobody_asked_before() -> Iterator[None]:
    pressure.ask_again()
    yield
    pressure.ask_again()


@pytest.fixture
def replicas(db: None) -> Iterator[None]:
    """PostgreSQL's view, replaced by a table of the same columns: the query is the product's own."""
    run_sql(
        """
        CREATE SCHEMA instead;
        CREATE TABLE instead.pg_stat_replication AS SELECT * FROM pg_catalog.pg_stat_replication WITH NO DATA;
        """
    )
    path = value_of("SELECT current_setting('search_path')")
    run_sql(f"SET search_path = instead, pg_catalog, {path}")
    yield
    run_sql("RESET search_path; DROP SCHEMA instead CASCADE")


def replica(
    lag: str, *, replayed: str = "pg_current_wal_lsn()", name: str = "reports", state: str = "streaming"
) -> None:
    run_sql(
        f"""
        INSERT INTO instead.pg_stat_replication (application_name, state, replay_lag, replay_lsn)
        VALUES (nullif('{name}', ''), nullif('{state}', ''), {lag}, {replayed})
        """
    )


def old_session(name: str = "old", items: int = 3) -> None:
    add_items(name, *(f"item {number}" for number in range(items)))
    age(name, timedelta(days=40))


# --- replicas ---------------------------------------------------------------------------------------------------------


def test_a_replica_that_keeps_up_delays_nothing(replicas: None) -> None:
    replica("'4 seconds'")
    replica("NULL")
    wait_for_database({})


def test_a_replica_that_is_behind_is_waited_for(replicas: None) -> None:
    replica("'6 seconds'")
    with pytest.raises(Wait, match=r"The replica reports is more than 5 seconds behind\."):
        wait_for_database({})
    run_sql("DELETE FROM instead.pg_stat_replication")
    wait_for_database({})


def test_a_replica_whose_lag_is_unknown_is_judged_by_what_it_has_not_replayed(
    replicas: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "BEHIND_BYTES", 2**20)
    replica("NULL", replayed="'0/0'")
    with pytest.raises(Wait, match=r"has not replayed .* MB"):
        wait_for_database({})


def test_who_only_receives_catches_up_or_cannot_be_seen_is_not_waited_for(replicas: None) -> None:
    replica("'1 hour'", state="catchup")
    replica("NULL", replayed="NULL", name="archive")
    replica("NULL", replayed="NULL", name="", state="")
    wait_for_database({})
    assert hidden_replicas() == 1


def test_the_wait_can_be_switched_off(replicas: None, settings: Any) -> None:
    settings.RETENTION_REPLICA_LAG = timedelta()
    replica("'1 hour'")
    wait_for_database({})


def test_the_database_is_asked_every_few_seconds(replicas: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressure, "ASK_EVERY_SECONDS", 3_600.0)
    wait_for_database({})
    replica("'1 hour'")
    wait_for_database({})
    pressure.ask_again()
    for _ in range(2):
        # Whoever waits asks anew.
        with pytest.raises(Wait):
            wait_for_database({})


def test_a_sweep_that_waits_has_taken_nothing_and_continues(kept_main_store: SessionStore, replicas: None) -> None:
    old_session()
    in_force()
    replica("'1 hour'")
    run = swept()
    assert run.state == Run.State.WAITING
    assert "behind" in run.reason
    assert run.retry_at is not None
    assert value_of("SELECT count(*) FROM agent_messages") == 3
    assert SweepResult.objects.get().taken == 0
    run_sql("DELETE FROM instead.pg_stat_replication")
    Run.objects.update(retry_at=None)
    assert carry_on(run).state == Run.State.COMPLETE
    assert not SessionRecord.objects.exists()


# --- dead rows --------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_dead(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty dead rows are many, of one table: autovacuum may come to others at any time."""
    settings.RETENTION_DEAD_ROWS = 20
    monkeypatch.setattr(pressure, "swept_tables", lambda: {"agent_messages": "main"})


def make_dead(rows: int) -> None:
    """Dead rows in the agents' table of items, of which the statistics know."""
    keep_autovacuum_off("agent_messages")
    add_items("young", "text")
    run_sql(
        f"INSERT INTO agent_messages (session_id, message_data) SELECT 'young', '{{}}' FROM generate_series(1, {rows})"
    )
    run_sql("DELETE FROM agent_messages WHERE session_id = 'young'")
    dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'agent_messages'"
    wait_for_statistics(lambda: value_of(dead) >= rows)


@pytest.mark.django_db(transaction=True)
def test_a_table_with_many_dead_rows_is_vacuumed_between_chunks(kept_main_store: SessionStore, few_dead: None) -> None:
    old_session()
    in_force()
    make_dead(100)
    assert "agent_messages" in with_too_many_dead(swept_tables())
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    assert value_of("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'agent_messages'") < 20
    assert run.log.filter(text="Vacuumed agent_messages, which had many dead rows.").count() == 1
    assert not SessionRecord.objects.filter(session_id="old").exists()


@pytest.mark.django_db(transaction=True)
def test_rows_that_vacuum_cannot_remove_do_not_stop_the_run_for_ever(
    kept_main_store: SessionStore, few_dead: None
) -> None:
    old_session()
    in_force()
    with second_connection() as reader:
        reader.isolation_level = IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM agent_messages")
        make_dead(100)
        run = swept()
        assert run.state == Run.State.COMPLETE, run.reason
        assert run.log.filter(text__contains="a transaction has been open for long. The run goes on.").count() == 1
    assert not SessionRecord.objects.filter(session_id="old").exists()


@pytest.mark.django_db(transaction=True)
def test_a_table_that_is_being_vacuumed_is_waited_for(kept_main_store: SessionStore, few_dead: None) -> None:
    old_session()
    in_force()
    make_dead(100)
    with second_connection() as upkeep:
        upkeep.execute("LOCK TABLE agent_messages IN SHARE UPDATE EXCLUSIVE MODE")
        run = swept()
        assert run.state == Run.State.WAITING
        assert "agent_messages is being vacuumed" in run.reason
        assert value_of("SELECT count(*) FROM agent_messages WHERE session_id = 'old'") == 3
    Run.objects.update(retry_at=None)
    assert carry_on(run).state == Run.State.COMPLETE


@pytest.mark.django_db(transaction=True)
def test_tables_that_the_role_may_not_vacuum_do_not_stop_the_run(
    kept_main_store: SessionStore, few_dead: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "vacuum", lambda table, *, analyze: False)
    old_session()
    in_force()
    make_dead(100)
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    assert run.log.filter(text__contains="VACUUM was not possible").count() == 1


def test_a_chunk_asks_before_it_takes_anything(kept_main_store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    old_session()
    in_force()

    def refuse(cursor: Any) -> None:
        assert value_of("SELECT count(*) FROM agent_messages") == 3
        raise Wait("The database is behind.")

    monkeypatch.setattr(work, "wait_for_database", refuse)
    assert swept().reason == "The database is behind."
