"""Tables of the SDK's sessions in a file of SQLite, by the versions of openai-agents that create them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

SDK = "openai-agents"

SESSION_COLUMNS = frozenset({"session_id", "created_at", "updated_at"})
MESSAGE_COLUMNS = frozenset({"id", "session_id", "message_data", "created_at"})


@dataclass(frozen=True, slots=True)
class BranchTable:
    """A table that AdvancedSQLiteSession adds to the usual two. It has rows of a session, by `session_id`."""

    name: str
    since: str
    """First version that creates it. A newer version does not create it in a file of an older one at once."""
    columns: frozenset[str]
    """The columns that are used; a table without one of them is of an unknown layout."""
    outlives_session: bool = False


STRUCTURE = BranchTable(
    "message_structure",
    "0.3",
    frozenset({"session_id", "message_id", "branch_id", "sequence_number", "user_turn_number"}),
)
USAGE = BranchTable(
    "turn_usage",
    "0.3",
    frozenset(
        {"session_id", "branch_id", "user_turn_number", "requests", "input_tokens", "output_tokens", "total_tokens"}
    ),
)
RESERVATIONS = BranchTable("branch_reservations", "0.19.4", frozenset({"session_id", "branch_id"}))
"""Names of branches, which may contain text of users, kept so that none is used again."""
GENERATIONS = BranchTable(
    "session_clear_generations", "0.20", frozenset({"session_id", "generation"}), outlives_session=True
)
"""Agents that have the session open return to the branch main when this number changes; otherwise they would keep
writing to a deleted branch. The row contains only the session's id.
"""

BRANCH_TABLES = (STRUCTURE, USAGE, RESERVATIONS, GENERATIONS)

PLAIN_LAYOUTS = (f"{SDK} 0.2 and later",)
BRANCH_LAYOUTS = tuple(f"{SDK} {table.since} and later: {table.name}" for table in BRANCH_TABLES)

OF_ADVANCED = (
    "belongs to AdvancedSQLiteSession, which keeps branches: they are shown as one conversation. Connect it as"
    " advanced_sqlite."
)

Tables = Mapping[str, frozenset[str]]
"""Columns of tables, all in lower case."""

MOST_TABLES = 200


def tables_of(connection: sqlite3.Connection, names: Collection[str]) -> Tables:
    """Those of these tables that the file has."""
    found = {name.lower(): columns_of(connection, name) for name in names}
    return {name: columns for name, columns in found.items() if columns}


def columns_of(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Empty if there is no such table, or none that can be read."""
    with suppress(sqlite3.OperationalError):  # a virtual table of an extension that is not loaded
        rows = connection.execute(f"PRAGMA table_info({identifier(table)})").fetchall()
        return frozenset(row[1].lower() for row in rows)
    return frozenset()


def branch_tables_of(connection: sqlite3.Connection) -> tuple[Collection[BranchTable], list[str]]:
    """The branch tables that the file has, and sentences about those of an unknown layout."""
    tables = tables_of(connection, [table.name for table in BRANCH_TABLES])
    present = [table for table in BRANCH_TABLES if table.name in tables]
    faults = [sentence for table in present for sentence in faults_of(table.name, tables[table.name], table.columns)]
    return present, faults


def faults_of(name: str, columns: frozenset[str], wanted: frozenset[str]) -> Iterator[str]:
    if missing := sorted(wanted - columns):
        yield f"The table {name} has no column {', '.join(missing)}: no known version of {SDK} writes it like that."


def unknown_tables(connection: sqlite3.Connection, known: Collection[str]) -> list[str]:
    """Tables with a column `session_id` that are neither known nor a pair of another store."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^' LIMIT ?"
    names = [name for (name,) in connection.execute(query, [MOST_TABLES]) if name.lower() not in known]
    tables = {name: columns_of(connection, name) for name in names}
    return [
        name
        for name, columns in tables.items()
        if "session_id" in columns and not columns >= MESSAGE_COLUMNS and columns != SESSION_COLUMNS
    ]


def described(present: Collection[BranchTable]) -> str:
    """The layout of a file, as a sentence."""
    if not present:
        return f"Written by SQLiteSession of {PLAIN_LAYOUTS[0]}."
    absent = [f"{table.name} ({table.since} and later)" for table in BRANCH_TABLES if table not in present]
    without = f", without {' and '.join(absent)}" if absent else ""
    return f"Written by AdvancedSQLiteSession of {SDK}: {', '.join(table.name for table in present)}{without}."


def identifier(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
