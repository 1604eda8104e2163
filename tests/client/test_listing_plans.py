"""Plans of the lists of memories: a page of shared ones is read along an index, however many there are."""

from __future__ import annotations

from itertools import product
from uuid import UUID

import psycopg
import pytest

from memadmin.client import listing
from tests.agents import run_sql
from tests.client.conftest import address

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 20_000

CURSOR = f"2026-01-01T00:00:00+00:00|{UUID(int=7)}"


def test_a_page_of_shared_memories_is_not_sorted(dsn: str) -> None:
    run_sql("ALTER TABLE memories_app_memory DISABLE TRIGGER USER")
    try:
        run_sql(
            "INSERT INTO memories_app_memory (id, kind, key, statement, status, decided_at)"
            " SELECT gen_random_uuid(), 'fact', '', 'Statement ' || n, 'approved',"
            f" timestamptz '2026-02-01 00:00Z' - n * interval '1 hour' FROM generate_series(1, {ROWS}) AS n"
        )
    finally:
        run_sql("ALTER TABLE memories_app_memory ENABLE TRIGGER USER")
    run_sql("ANALYZE memories_app_memory")
    for role, cursor in product(("agents", "owner"), ("", CURSOR)):
        given = listing.parameters(kinds=[], limit=50, cursor=cursor, agent="Support")
        with psycopg.connect(dsn if role == "agents" else address()) as connection:
            plan = "\n".join(line for (line,) in connection.execute("EXPLAIN " + listing.LIST_SHARED, given))
        assert "memory_shared_by_decision" in plan, (role, cursor, plan)
        assert "Sort" not in plan, (role, cursor, plan)
