"""`attach_store` beside PostgreSQL's own upkeep of the agents' tables, which may take hours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sessions_app import registry
from sessions_app.registry import AttachRefused, attach_plan
from sessions_app.services import attaching
from sessions_app.services.attaching import detach_store
from tests.agents import add_items, attached_store, make_agent_tables, run_sql, second_connection, value_of
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.waiting import PATIENCE_SECONDS, wait_until

VACUUM = "SELECT pid FROM pg_stat_progress_vacuum WHERE relid = 'agent_messages'::regclass"
HOLD_AS_A_VACUUM_DOES = "LOCK TABLE agent_messages IN SHARE UPDATE EXCLUSIVE MODE"


@pytest.fixture
def autovacuum(agent_tables: None) -> Iterator[None]:
    """A real one on the agents' items, which will take minutes: it sleeps after each of 1,400 pages."""
    make_agent_tables()
    run_sql("INSERT INTO agent_sessions (session_id) VALUES ('old')")
    run_sql(
        "INSERT INTO agent_messages (session_id, message_data)"
        " SELECT 'old', repeat('x', 500) FROM generate_series(1, 20000)"
    )
    run_sql("DELETE FROM agent_messages WHERE id % 2 = 0")
    run_sql(
        "ALTER TABLE agent_messages SET"
        " (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_cost_delay = 100)"
    )
    run_sql("ALTER SYSTEM SET autovacuum_naptime = '1s'")
    run_sql("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: value_of(VACUUM) is not None, "autovacuum begins")
        yield
    finally:
        run_sql("ALTER SYSTEM RESET autovacuum_naptime")
        run_sql("SELECT pg_reload_conf()")


@pytest.fixture(autouse=True)
def try_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "ATTEMPTS", 2)


def test_an_autovacuum_gives_way(autovacuum: None) -> None:
    worker = value_of(VACUUM)
    store = attached_store("main")
    assert registry.check(store).problems == ()
    assert value_of(f"{VACUUM} AND pid = {worker}") is None
    detach_store(store)


def test_broken_variant_that_only_asks_for_the_lock_of_a_trigger(
    autovacuum: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never waits as long as it would take until the autovacuum is cancelled."""
    monkeypatch.setattr(attach_plan, "_keep_upkeep_off", lambda table: [])
    worker = value_of(VACUUM)
    with pytest.raises(AttachRefused, match="by upkeep such as VACUUM, in 2 attempts"):
        attached_store("main")
    assert value_of(VACUUM) == worker


def test_agents_write_on_while_upkeep_is_waited_for(agent_tables: None) -> None:
    make_agent_tables()
    with second_connection() as upkeep, somebody_else() as start:
        upkeep.execute(HOLD_AS_A_VACUUM_DOES)
        attaching_store = start(lambda: attached_store("main"))
        wait_until_blocked(attaching_store, by=upkeep)
        add_items("meanwhile", "hello")
        assert not attaching_store.done()
        upkeep.rollback()
        store = attaching_store.result(PATIENCE_SECONDS)
        assert registry.check(store).problems == ()

        upkeep.execute(HOLD_AS_A_VACUUM_DOES)
        detaching_store = start(lambda: detach_store(store))
        wait_until_blocked(detaching_store, by=upkeep)
        add_items("meanwhile", "hello again")
        upkeep.rollback()
        detaching_store.result(PATIENCE_SECONDS)
    assert value_of("SELECT count(*) FROM agent_messages WHERE session_id = 'meanwhile'") == 2
    assert registry.check(store).problems != ()
