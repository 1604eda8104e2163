"""VACUUM after big runs: which tables, what is noted, and what a role may not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from memadmin.retention.models import SweepResult, SweptTable
from memadmin.retention.sweep import ending
from memadmin.runs.engine import take
from memadmin.runs.models import Run
from tests.agents import add_items, attach_main_store, database_role, run_sql, value_of
from tests.retention.policies import age, in_force, swept
from tests.table_statistics import keep_autovacuum_off

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def swept_sessions(agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old session of 200 items, and a policy that takes it; 100 rows count as many."""
    monkeypatch.setattr(ending, "MANY_ROWS", 100)
    attach_main_store()
    keep_autovacuum_off("agent_messages")
    add_items("old", *(f"item {number} " + "x" * 500 for number in range(200)))
    age("old", timedelta(days=40))
    in_force()


def test_the_tables_that_lost_much_are_vacuumed_and_give_their_space_back(swept_sessions: None) -> None:
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    [swept_table] = SweptTable.objects.all()
    assert (swept_table.name, swept_table.rows, swept_table.run) == ("agent_messages", 200, run)
    assert value_of("SELECT pg_relation_size('agent_messages')") == 0
    assert swept_table.given_back
    assert value_of("SELECT last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'agent_messages'")


def test_a_small_run_vacuums_nothing(swept_sessions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "MANY_ROWS", 1_000)
    swept()
    assert not SweptTable.objects.exists()


def test_a_run_that_was_interrupted_vacuums_each_table_once(swept_sessions: None) -> None:
    run = swept()
    Run.objects.filter(pk=run.pk).update(state="waiting", ended_at=None)
    lease = take(run.pk)
    assert lease is not None
    ending.vacuum_after(lease)
    assert SweptTable.objects.count() == 1


def test_tables_that_the_role_may_not_vacuum_are_named(swept_sessions: None) -> None:
    with database_role("sweeper") as role:
        run_sql(f"GRANT USAGE ON SCHEMA public TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        run_sql(f"REVOKE MAINTAIN ON agent_messages FROM {role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
        run = Run.objects.create(kind="retention")
        SweepResult.objects.create(run=run, version=in_force(), state="done", tables={"agent_messages": 150})
        lease = take(run.pk)
        assert lease is not None
        run_sql(f"SET ROLE {role}")
        ending.vacuum_after(lease)
        run_sql("RESET ROLE")
        [swept_table] = SweptTable.objects.all()
        assert (swept_table.vacuumed_at, swept_table.size_after) == (None, None)
        lease.end()
    run.refresh_from_db()
    assert run.exceptions == [["not_vacuumed", "agent_messages", 1]]
    # It is a hint: everything that was due is gone.
    assert run.state == Run.State.COMPLETE


def test_no_vacuum_is_full_and_each_is_outside_a_transaction(swept_sessions: None) -> None:
    statements: list[tuple[str, bool]] = []

    def look(execute: Any, statement: Any, parameters: Any, many: bool, context: Any) -> Any:
        words = statement if isinstance(statement, str) else statement.as_string(None)
        if "VACUUM" in words:
            statements.append((words, connection.in_atomic_block))
        return execute(statement, parameters, many, context)

    with connection.execute_wrapper(look):
        swept()
    assert statements == [('VACUUM (ANALYZE) "agent_messages"', False)]
