"""PostgreSQL's statistics of tables in tests: a connection reports what it did up to ten seconds later."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection

from tests.agents import agent_process, run_sql
from tests.waiting import wait_until


def wait_for_statistics(arrived: Callable[[], bool]) -> None:
    """Returns when the statistics are as they must be; fails when they never are.

    Our connection reports at once, and those of agents end, which makes them report.
    """
    agent_process.end()

    def have_arrived() -> bool:
        run_sql("SELECT pg_stat_force_next_flush()")
        # In a transaction the view would show the same again and again.
        run_sql("SELECT pg_stat_clear_snapshot()")
        return arrived()

    wait_until(have_arrived, "the statistics arrive")


def keep_autovacuum_off(table: str) -> None:
    """Autovacuum comes to this table, and to its partitions, at no time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relid::text FROM pg_partition_tree(%s::regclass) WHERE isleaf", [table])
        leaves = [name for (name,) in cursor.fetchall()]
    for name in leaves:
        run_sql(f"ALTER TABLE {name} SET (autovacuum_enabled = off)")
