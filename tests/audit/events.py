"""Events to try things with, and connections beside the one of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, transaction

from memadmin import audit
from memadmin.audit.log import types
from memadmin.audit.models import AuditEvent, AuditLeaf, AuditPending
from tests.flushing import GUARDS

TRIED = types.declare("test.tried", "Only tests try this.", counters=("items",))

INSERT = (
    "INSERT INTO audit_event (type, actor_kind, shown, outcome, counters)"
    " VALUES ('test.tried', 'database', '{}', 'succeeded', '{\"items\": 1}') RETURNING number"
)


def record_events(count: int, **columns: Any) -> list[UUID]:
    """That many events, of one committed transaction."""
    with transaction.atomic():
        return [audit.record(TRIED, counters={"items": number}, **columns) for number in range(count)]


def write_events(count: int) -> None:
    """The same in one statement, for tests that need many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_event (type, actor_kind, shown, outcome, counters) SELECT 'test.tried', 'database',"
            " '{}', 'succeeded', jsonb_build_object('items', item) FROM generate_series(1, %s) AS item",
            [count],
        )


@contextmanager
def another_connection() -> Iterator[psycopg.Connection[Any]]:
    """To the same database, in its own transaction, which is rolled back unless it is committed."""
    with psycopg.connect(**connection.get_connection_params()) as beside:
        try:
            yield beside
        finally:
            beside.rollback()


def insert_event(beside: psycopg.Connection[Any]) -> int:
    """An event of whoever is connected; returns its number."""
    row = beside.execute(INSERT).fetchone()
    assert row
    return int(row[0])


def assert_sequenced() -> None:
    """Every event has one place, and every place is taken."""
    assert not AuditPending.objects.exists()
    indexes = list(AuditLeaf.objects.order_by("index").values_list("index", flat=True))
    assert indexes == list(range(len(indexes)))
    assert sorted(AuditLeaf.objects.values_list("event_number", flat=True)) == sorted(
        AuditEvent.objects.values_list("number", flat=True)
    )


TABLES = (
    "audit_event",
    "audit_detail",
    "audit_pending",
    "audit_leaf",
    "audit_node",
    "audit_checkpoint",
    "audit_anchor",
)


def as_owner(*statements: str) -> None:
    """What only whoever owns the tables can do: with every trigger and constraint out of the way."""
    named = [table for table in TABLES if any(table in statement for statement in statements)]
    with transaction.atomic(), connection.cursor() as cursor:
        for table in named:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        for statement in statements:
            cursor.execute(statement)
        for table in named:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
        # Those that nobody passes fire always, whatever a connection says of itself.
        cursor.execute(GUARDS)
        for table, guard in cursor.fetchall():
            if table in named:
                cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {guard}")


@contextmanager
def earlier_state() -> Iterator[None]:
    """After the block the log is what it was before: somebody restored an older dump."""
    back_up("backup")
    yield
    bring_back("backup")
    drop_backup("backup")


def back_up(name: str) -> None:
    """Copies the log's tables to tables with this prefix."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TABLE {name}_{table} AS TABLE {table}")


def bring_back(name: str) -> None:
    as_owner(
        *(f"DELETE FROM {table}" for table in TABLES),
        *(
            f"INSERT INTO {table} {'' if table in ('audit_leaf', 'audit_node') else 'OVERRIDING SYSTEM VALUE'}"
            f" TABLE {name}_{table}"
            for table in TABLES
        ),
    )


def drop_backup(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {', '.join(f'{name}_{table}' for table in TABLES)}")
