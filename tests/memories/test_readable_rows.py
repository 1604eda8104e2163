"""Rows that agents wrote before the database refused them, and what the migration makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from memadmin.migrating import sql_text
from memadmin.times import EARLIEST, LATEST
from memories_app.models import Evidence, Memory
from tests.agents import run_sql
from tests.builders import make_subject
from tests.memories.test_gate import approved
from tests.people import person

CONSTRAINTS = {
    "memory_validity_is_readable": "memories_app_memory",
    "memory_agents_are_a_list": "memories_app_memory",
    "evidence_time_is_readable": "memories_app_evidence",
}
"""Their tables."""
ROWS = {
    "no end": "valid_until = 'infinity'",
    "for ever": "valid_from = '-infinity', valid_until = 'infinity'",
    "ended": "valid_until = '-infinity'",
    "no beginning": "valid_from = '-infinity'",
    "not begun": "valid_from = '200000-01-01'",
    "two dimensions": "agents = ARRAY[['a', 'b'], ['c', 'd']]",
    "approved with NULL": "agents = ARRAY['a', NULL]",
}


@pytest.fixture
def memories(transactional_db: None) -> Iterator[dict[str, Memory]]:
    """A memory for each of them, one of them approved with its list, and one that was always readable."""
    by, subject = person("reviewer"), make_subject()
    made = {
        name: Memory.objects.create(kind="fact", statement=name, subject=subject)
        for name in (*ROWS, "readable")
        if name != "approved with NULL"
    }
    for name, table in CONSTRAINTS.items():
        run_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    for name, memory in made.items():
        if name in ROWS:
            run_sql(f"UPDATE memories_app_memory SET {ROWS[name]} WHERE id = '{memory.pk}'")
    made["approved with NULL"] = approved("approved with NULL", by, subject=subject, agents=["a", None])
    Evidence.objects.create(memory=made["readable"], quote="tea")
    run_sql("UPDATE memories_app_evidence SET said_at = 'infinity'")
    yield made
    add_constraints()


@transaction.atomic
def migrate(changes: str) -> None:
    run_sql(changes)
    add_constraints()


def add_constraints() -> None:
    """Adds them anew."""
    with connection.schema_editor() as editor:
        for model in (Memory, Evidence):
            for constraint in model._meta.constraints:
                if constraint.name in CONSTRAINTS:
                    editor.execute(f"ALTER TABLE {model._meta.db_table} DROP CONSTRAINT IF EXISTS {constraint.name}")
                    editor.execute(constraint.create_sql(model, editor), params=None)


def test_what_could_not_be_read_can_be_read_afterwards(memories: dict[str, Memory]) -> None:
    """In one transaction with the new constraints, as the migration does it. In the broken variant, without firing the
    deferred checks, a row that is changed twice keeps the table from being altered.
    """
    before = memories["readable"].version
    changes = sql_text("memories_app", "readable_rows.sql")
    broken = changes.replace("SET CONSTRAINTS ALL IMMEDIATE;", "")
    with pytest.raises(OperationalError, match="pending trigger events"):
        migrate(broken)
    migrate(changes)
    for memory in memories.values():
        memory.refresh_from_db()
    assert memories["no end"].valid_until is None
    assert (memories["for ever"].valid_from, memories["for ever"].valid_until) == (None, None)
    assert memories["ended"].valid_until == EARLIEST
    assert memories["no beginning"].valid_from is None
    assert memories["not begun"].valid_from == LATEST
    assert memories["two dimensions"].agents == ["a", "b", "c", "d"]
    assert memories["approved with NULL"].agents == ["a"]
    assert memories["approved with NULL"].status == "needs_revalidation", "its list was approved with NULL"
    assert (memories["readable"].version, memories["readable"].status) == (before, "proposed")
    assert Evidence.objects.get().said_at is None


@pytest.mark.django_db
def test_such_rows_are_refused_since() -> None:
    memory = Memory.objects.create(kind="fact", statement="readable")
    for change in ROWS.values():
        with pytest.raises(IntegrityError), transaction.atomic():
            run_sql(f"UPDATE memories_app_memory SET {change} WHERE id = '{memory.pk}'")
