"""Queries on Django's PostgreSQL connection, with time limits, and errors as sentences for operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, InterfaceError, OperationalError, connection, connections, transaction
from psycopg import errors, sql

from memadmin.replica import alias_for_reading
from sessions_app.models import SessionStore
from sessions_app.stores.base import Place, SessionBusy, StoreLocked, StoreTooSlow, StoreUnavailable

BUSY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)
"""Errors of a lock conflict; the same statement may succeed a moment later."""

LOCK_TIMEOUT = "2s"
"""Time that a query waits for a lock on a whole table, as a change of its columns takes.

Writing agents do not block readers.
"""

PLACES = """
SELECT to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'),
       (SELECT oid FROM pg_database WHERE datname = current_database()), CAST(to_regclass(wanted.name) AS oid)
FROM (VALUES {wanted}) AS wanted(name)
"""
"""Query for the places of tables. A server is identified by its start time: no other value is readable without rights,
equal on every connection, and different for a server that was copied from its files."""

LIMIT_WAITING = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT))
"""For the rest of the transaction."""

LIMIT_TAKING = sql.SQL("SET LOCAL statement_timeout = {}")
"""Time limit of each following statement."""

# As text it has the microseconds and sorts like the instant; infinity has no digits of its own.
INSTANT = sql.SQL("coalesce(to_char(created_at, 'YYYY-MM-DD HH24:MI:SS.US'), created_at::text)")


def table_identifier(name: str) -> sql.Identifier:
    """`table` or `schema.table`, each part quoted."""
    return sql.Identifier(*name.split("."))


def with_parameters(table: str) -> sql.Identifier:
    """The same for a statement with parameters, where a percent sign has to be doubled."""
    return table_identifier(table.replace("%", "%%"))


def places_in(rows: Iterable[Sequence[object]]) -> frozenset[Place]:
    """Result of PLACES, without missing tables."""
    return frozenset(("postgresql", *map(str, row)) for row in rows if row[-1] is not None)


def fetch(
    query: str | sql.Composable, parameters: Sequence[Any] | Mapping[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    """All rows of a query, on Django's connection, or on the replica's within a view that reads from it.

    Raises StoreLocked after LOCK_TIMEOUT.
    """
    [rows] = _fetch_each([LIMIT_WAITING], [sql.SQL(query) if isinstance(query, str) else query], parameters)
    return rows


def fetch_within(
    seconds: float, queries: Sequence[sql.Composable], parameters: Mapping[str, Any]
) -> list[list[tuple[Any, ...]]]:
    """The rows of each query; PostgreSQL cancels one that takes longer. Leaves a transaction of the caller's usable."""
    assert seconds > 0, "PostgreSQL takes no time for all the time"
    limits = [LIMIT_WAITING, LIMIT_TAKING.format(sql.Literal(f"{seconds * 1000:.0f}ms"))]
    if not connection.in_atomic_block:
        return _fetch_each(limits, queries, parameters)
    with transaction.atomic():
        rows = _fetch_each(limits, queries, parameters)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")
        return rows


def _fetch_each(
    limits: Sequence[sql.Composable],
    queries: Sequence[sql.Composable],
    parameters: Sequence[Any] | Mapping[str, Any] | None,
) -> list[list[tuple[Any, ...]]]:
    # One message, which is one transaction: no further round trip, and no setting stays on a connection that a pooler
    # gives to another client.
    with connections[alias_for_reading()].cursor() as cursor, giving_up_on_locks():
        # Rendered once: otherwise every wrapper, such as the query log, would render it again.
        cursor.execute(sql.SQL("; ").join([*limits, *queries]).as_string(cursor.connection), parameters)
        for _ in limits:
            cursor.nextset()
        rows: list[list[tuple[Any, ...]]] = [cursor.fetchall()]
        for _ in queries[1:]:
            cursor.nextset()
            rows.append(cursor.fetchall())
    return rows


@contextmanager
def giving_up_on_locks() -> Iterator[None]:
    try:
        yield
    except OperationalError as problem:
        if isinstance(problem.__cause__, errors.LockNotAvailable):
            raise StoreLocked from problem
        raise


@contextmanager
def in_plain_words(store: SessionStore) -> Iterator[None]:
    """Turns errors of PostgreSQL and its driver into StoreUnavailable with a sentence; programming errors pass."""
    try:
        yield
    except ImproperlyConfigured as problem:  # the embedded server cannot be started, with the reason
        raise StoreUnavailable(str(problem)) from problem
    except Error as problem:
        cause = problem.__cause__
        tables = f"{store.sessions_table} and {store.messages_table}"
        if isinstance(cause, BUSY):
            raise SessionBusy("Agents are using this session now; nothing was changed. Try again.") from problem
        if isinstance(cause, errors.QueryCanceled):
            raise StoreTooSlow(f"The store {store} did not respond in time.") from problem
        if isinstance(cause, errors.UndefinedTable | errors.InvalidSchemaName):
            sentence = f"The tables {tables} are not in this database."
        elif isinstance(cause, errors.UndefinedColumn | errors.UndefinedFunction | errors.DatatypeMismatch):
            sentence = f"The tables {tables} do not have the columns that the agents' SDK uses."
        elif isinstance(cause, errors.InsufficientPrivilege):
            sentence = f"The database role of this console lacks a right: {cause.diag.message_primary}."
        elif isinstance(cause, errors.InvalidParameterValue):
            sentence = f"PostgreSQL does not know the time zone {store.writer_timezone} of the store {store}."
        elif isinstance(problem, OperationalError | InterfaceError):
            sentence = f"The database of the store {store} is not responding."
        else:
            raise
        raise StoreUnavailable(sentence) from problem
