"""Facts about the agents' tables from the database's catalog. Reads no row of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from sessions_app.models import FenceOutbox, SessionRecord, SessionStore
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlalchemy.postgres import fetch, in_plain_words, table_identifier


@dataclass(frozen=True, slots=True)
class Column:
    type: str
    """With its schema where it is none of PostgreSQL's own, which may have any name."""
    may_be_empty: bool
    is_deterministic: bool
    """False for a collation that takes different texts for the same."""

    @property
    def has_zone(self) -> bool:
        return self.type == "timestamptz"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that exists, by the name under which every session finds it whatever its search_path."""

    oid: int
    schema: str
    name: str
    kind: str
    columns: Mapping[str, Column]
    missing_rights: tuple[str, ...]
    is_owned: bool
    """True if our role may do what only the owner of the table may."""
    has_hidden_rows: bool
    """True if policies decide which rows our role sees."""

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    name: str
    is_enforced: bool


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    is_valid: bool


@dataclass(frozen=True, slots=True)
class StoreTables:
    """The two tables of a store, and the two of ours that its triggers write to."""

    sessions: Table
    messages: Table
    foreign_key: ForeignKey | None
    time_indexes: tuple[Index, ...]
    """Indexes of the messages that begin with session_id and created_at: pages of a session use them."""
    records: sql.Identifier
    outbox: sql.Identifier
    our_schema: str
    is_registry_owned: bool
    """True if our role owns the registry. Else it is the application's own, and others attach and erase."""


TABLES = """
SELECT wanted.name, c.oid, n.nspname, c.relname, c.relkind,
       ARRAY(SELECT needed FROM unnest(ARRAY['SELECT', 'UPDATE', 'DELETE', 'TRIGGER']) AS needed
             WHERE NOT has_table_privilege(c.oid, needed)),
       pg_has_role(c.relowner, 'USAGE'),
       row_security_active(c.oid),
       (SELECT json_object_agg(a.attname,
                               json_build_array(
                                   CASE s.nspname WHEN 'pg_catalog' THEN t.typname
                                                  ELSE format('%%I.%%I', s.nspname, t.typname) END,
                                   NOT a.attnotnull, coalesce(l.collisdeterministic, true)))
        FROM pg_attribute AS a
        JOIN pg_type AS t ON t.oid = a.atttypid JOIN pg_namespace AS s ON s.oid = t.typnamespace
        LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM unnest(%s::text[]) AS wanted(name)
JOIN pg_class AS c ON c.oid = to_regclass(wanted.name) JOIN pg_namespace AS n ON n.oid = c.relnamespace
"""

# A key that is NOT ENFORCED exists from PostgreSQL 18 on; one whose triggers are disabled is as good as none.
FOREIGN_KEY = """
SELECT k.conname,
       to_jsonb(k) ->> 'conenforced' IS DISTINCT FROM 'false'
       AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgconstraint = k.oid AND tgenabled = 'D')
FROM pg_constraint AS k
JOIN pg_attribute AS here ON here.attrelid = k.conrelid AND here.attname = 'session_id'
JOIN pg_attribute AS there ON there.attrelid = k.confrelid AND there.attname = 'session_id'
WHERE k.contype = 'f' AND k.conrelid = %s AND k.confrelid = %s
  AND k.conkey = ARRAY[here.attnum] AND k.confkey = ARRAY[there.attnum]
ORDER BY 2 DESC, 1
LIMIT 1
"""

TIME_INDEXES = """
SELECT c.relname, i.indisvalid AND i.indisready
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS m ON m.oid = c.relam AND m.amname = 'btree'
WHERE i.indrelid = %s AND i.indpred IS NULL
  AND (SELECT array_agg(a.attname::text ORDER BY key.place)
       FROM unnest(i.indkey) WITH ORDINALITY AS key(attnum, place)
       JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = key.attnum
       WHERE key.place <= 2) = ARRAY['session_id', 'created_at']
ORDER BY 2 DESC, 1
"""


def read_tables(store: SessionStore) -> StoreTables:
    """The tables of a store as they are now. Raises StoreUnavailable if they do not exist."""
    with in_plain_words(store):
        sessions, messages, records = find_tables(
            store.sessions_table, store.messages_table, SessionRecord._meta.db_table
        )
        if sessions is None or messages is None:
            absent = [store.sessions_table] * (sessions is None) + [store.messages_table] * (messages is None)
            raise StoreUnavailable(
                f"This database has no table {' and no table '.join(absent)}. The agents' SDK creates its tables with"
                f" create_tables=True; or the settings of the store {store} have the wrong names."
            )
        assert records is not None, "the registry is migrated before any store is looked at"
        keys = fetch(FOREIGN_KEY, [messages.oid, sessions.oid])
        indexes = fetch(TIME_INDEXES, [messages.oid])
    return StoreTables(
        sessions=sessions,
        messages=messages,
        foreign_key=ForeignKey(*keys[0]) if keys else None,
        time_indexes=tuple(Index(*row) for row in indexes),
        records=records.identifier,
        outbox=sql.Identifier(records.schema, FenceOutbox._meta.db_table),
        our_schema=records.schema,
        is_registry_owned=records.is_owned,
    )


def find_tables(*names: str) -> list[Table | None]:
    """Description of each `table` or `schema.table`; None if it does not exist. One query."""
    quoted = [table_identifier(name).as_string(None) for name in names]
    found = {name: table_of(*row) for name, *row in fetch(TABLES, [quoted])}
    return [found.get(name) for name in quoted]


def table_of(
    oid: int,
    schema: str,
    name: str,
    kind: str,
    missing_rights: list[str],
    is_owned: bool,
    has_hidden_rows: bool,
    columns: Mapping[str, list[Any]] | None,
) -> Table:
    return Table(
        oid=oid,
        schema=schema,
        name=name,
        kind=kind,
        columns={column: Column(*facts) for column, facts in (columns or {}).items()},
        missing_rights=tuple(missing_rights),
        is_owned=is_owned,
        has_hidden_rows=has_hidden_rows,
    )
