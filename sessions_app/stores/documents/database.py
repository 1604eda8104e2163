"""Databases of agno and phidata: the console's own PostgreSQL, another one by URL, or an SQLite file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple

from django.db import connection as own_connection
from sqlalchemy import URL, Connection, text

from sessions_app.models import SessionStore
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.remote_sql.database import LAYOUT_SECONDS, RemoteDatabase
from sessions_app.stores.remote_sql.dialects import Dialect, MySql, Refusal, Sqlite
from sessions_app.stores.sql_text import as_text, schema_and_table
from sessions_app.stores.sqlite.rows import as_bytes

SURROGATE = re.compile("[\ud800-\udfff]")

OWN = "the console's own settings"

DEFAULT_SCHEMA = "ai"
"""Default schema of both libraries in PostgreSQL."""

# Not from information_schema, which hides tables without a right of the user: a table with copies must not be missed.
COLUMNS_OF_POSTGRES = """
SELECT found.relname, columns.attname, format_type(columns.atttypid, NULL)
FROM pg_class AS found
JOIN pg_namespace AS place ON place.oid = found.relnamespace
JOIN pg_attribute AS columns ON columns.attrelid = found.oid AND columns.attnum > 0 AND NOT columns.attisdropped
WHERE place.nspname = :schema AND found.relkind IN ('r', 'p') AND NOT found.relispartition
ORDER BY 1, columns.attnum
"""
COLUMNS_OF_SQLITE = """
SELECT m.name, c.name, c.type FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
WHERE m.type = 'table' ORDER BY m.name, c.cid
"""

PARENTS_OF_POSTGRES = """
SELECT child.relname FROM pg_constraint AS key
JOIN pg_class AS child ON child.oid = key.conrelid
JOIN pg_class AS parent ON parent.oid = key.confrelid
JOIN pg_namespace AS place ON place.oid = parent.relnamespace
WHERE key.contype = 'f' AND place.nspname = :schema AND parent.relname = :name AND child.relnamespace = place.oid
"""
PARENTS_OF_SQLITE = """
SELECT m.name FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS key
WHERE m.type = 'table' AND key."table" = :name
"""

Layout = Mapping[str, Mapping[str, str]]
"""The tables of a schema, each with its columns and their types."""

_layouts: dict[tuple[str, str | None], tuple[float, Layout]] = {}


class DocumentDatabase(RemoteDatabase):
    """Connected like the SDK's tables elsewhere, or through the console's own address."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__(store)
        self.path = str(store.options.get("path", ""))
        self.is_own = not (self.variable or self.path)
        # Kept connections would outlive a request, beyond the connection limit of the web process.
        self.keeps_connections = not self.is_own
        self.variable = self.variable or self.path or OWN

    def address(self) -> str:
        if self.path:
            return f"sqlite:///{self.path}"
        if self.is_own:
            return own_address().render_as_string(hide_password=False)
        return super().address()

    @property
    def schema_and_table(self) -> tuple[str | None, str]:
        """Schema and table of the settings; without a schema, in PostgreSQL, that of the library."""
        schema, table = schema_and_table(str(self.store.options.get("table", "")))
        return (schema if isinstance(self.dialect, Sqlite) else schema or DEFAULT_SCHEMA), table

    @property
    def tables_in_words(self) -> str:
        return f"at {self.store.options.get('table', '')}"

    def _dialect_of(self, url: URL) -> Dialect:
        # A path may contain characters that are special in a URL.
        dialect = Sqlite(self.path) if self.path else super()._dialect_of(url)
        if isinstance(dialect, MySql):
            raise StoreUnavailable(f"{self.variable} names a MySQL. Only PostgreSQL and SQLite are read here.")
        return dialect

    @contextmanager
    def session(self, *, is_fresh: bool = False) -> Iterator[DatabaseSession]:
        """Read transaction on the database. Raises StoreUnavailable."""
        with self.reading() as connection:
            yield self.session_on(connection, is_fresh=is_fresh)

    def session_on(self, connection: Connection, *, is_fresh: bool = False) -> DatabaseSession:
        """Session on a connection of `reading` or `change`. Raises StoreUnavailable if the table is missing."""
        schema, table = self.schema_and_table
        layout = self._layout(connection, schema, is_fresh=is_fresh)
        if table not in layout:
            # It may have been created a moment ago.
            layout = self._layout(connection, schema, is_fresh=True)
        if table not in layout:
            raise self._unavailable(Refusal.NO_TABLES)
        return DatabaseSession(connection, self.dialect, schema, table, layout)

    def _layout(self, connection: Connection, schema: str | None, *, is_fresh: bool) -> Layout:
        seen_at, layout = _layouts.get((self.address(), schema), (0.0, {}))
        if is_fresh or not layout or monotonic() > seen_at + LAYOUT_SECONDS:
            query = COLUMNS_OF_SQLITE if isinstance(self.dialect, Sqlite) else COLUMNS_OF_POSTGRES
            parameters = {} if isinstance(self.dialect, Sqlite) else {"schema": schema}
            read: dict[str, dict[str, str]] = {}
            for table, column, kind in connection.execute(text(query), parameters):
                read.setdefault(table, {})[column] = str(kind).lower()
            layout = read
            _layouts[self.address(), schema] = (monotonic(), layout)
        return layout


def own_address() -> URL:
    """URL of the console's own database, from Django's settings; starts the embedded server."""
    given = own_connection.get_connection_params()
    query = {name: str(given[name]) for name in ("host", "port") if given.get(name)}
    query |= {name: str(value) for name, value in given.items() if name.startswith("ssl") and value}
    return URL.create(
        "postgresql", username=given.get("user"), password=given.get("password"), database=given["dbname"], query=query
    )


class DocumentRow(NamedTuple):
    """One row of any table, with the texts in it."""

    table: str
    place: str
    """Internal row address, valid within the transaction that has locked the row."""
    name: str
    """The library's own identifier, if requested."""
    texts: Mapping[str, str]
    """Texts by column, without empty ones."""


@dataclass(frozen=True)
class DatabaseSession:
    """An open connection with the table of a store and the other tables of its schema."""

    connection: Connection
    dialect: Dialect
    schema: str | None
    table: str
    layout: Layout

    @cached_property
    def is_sqlite(self) -> bool:
        return isinstance(self.dialect, Sqlite)

    @property
    def columns(self) -> Mapping[str, str]:
        return self.layout[self.table]

    def tables_with(self, *columns: str) -> list[str]:
        """The tables of the schema that have all these columns."""
        return [table for table, has in self.layout.items() if set(columns) <= has.keys()]

    def children(self) -> list[str]:
        """The tables with a foreign key to the store's."""
        query = PARENTS_OF_SQLITE if self.is_sqlite else PARENTS_OF_POSTGRES
        wanted = {"name": self.table} if self.is_sqlite else {"name": self.table, "schema": self.schema}
        return [row[0] for row in self.rows(query, **wanted)]

    def name(self, table: str = "") -> str:
        """Quoted table name for a statement."""
        return ".".join(f'"{part}"' for part in self._escaped(table or self.table))

    def _escaped(self, table: str) -> list[str]:
        """Escaped parts of a table name, for a statement whose parameters begin with a colon."""
        return [part.replace('"', '""').replace(":", "\\:") for part in (self.schema, table) if part]

    def text_of(self, column: str) -> str:
        return f'"{column}"' if self.is_sqlite else f'CAST("{column}" AS text)'

    def rows(self, query: str, **wanted: Any) -> list[Any]:
        """Rows of a query. An id that is no UTF-8, which SQLite stores, is sent as bytes; the query casts it back."""
        bound = {
            name: as_bytes(value) if isinstance(value, str) and SURROGATE.search(value) else value
            for name, value in wanted.items()
        }
        return list(self.connection.execute(text(query), bound))

    def run(self, statement: str, **wanted: Any) -> int:
        return self.connection.execute(text(statement), wanted).rowcount

    def ids_after(self, column: str, after: str | None) -> str:
        """Condition on a column of ids, after the parameter `after` if there is one. In SQLite a column may also have
        blobs, which come after all text.
        """
        is_text = f"{column} < x''" if self.is_sqlite else f"{column} IS NOT NULL"
        return is_text if after is None else f"{is_text} AND {column} > CAST(:after AS varchar)"

    def wanted(self, session_ids: Sequence[str]) -> tuple[str, dict[str, str]]:
        """Query that returns these ids, with its parameters."""
        each = [f"SELECT CAST(:id_{n} AS varchar) AS session_id" for n in range(len(session_ids))]
        return " UNION ALL ".join(each), {f"id_{n}": session_id for n, session_id in enumerate(session_ids)}

    # --- rows and their texts, whatever table -------------------------------------------------------------------------

    def locked_rows(
        self, table: str, columns: Sequence[str], condition: str, also: str = "''", **wanted: Any
    ) -> list[DocumentRow]:
        """Rows with their texts, locked until the end of the transaction. `also`: the column with their identifiers."""
        place = "rowid" if self.is_sqlite else "CAST(ctid AS text)"
        shown = ", ".join([place, also, *map(self.text_of, columns)])
        lock = "" if self.is_sqlite else "FOR UPDATE"
        query = f"SELECT {shown} FROM {self.name(table)} WHERE {condition} {lock}"
        return [
            DocumentRow(
                table,
                str(row[0]),
                as_text(row[1]),
                {
                    column: as_text(value)
                    for column, value in zip(columns, row[2:], strict=True)
                    if value not in (None, "")
                },
            )
            for row in self.rows(query, **wanted)
        ]

    def write(self, row: DocumentRow, texts: Mapping[str, str | None]) -> None:
        """Writes texts to columns of a locked row; once for each row of `locked_rows`."""
        if not texts:
            return
        changes = [f'"{column}" = {self._typed(row.table, column, n)}' for n, column in enumerate(texts)]
        values = {f"text_{n}": value for n, value in enumerate(texts.values())}
        self.run(f"UPDATE {self.name(row.table)} SET {', '.join(changes)} WHERE {self._at}", place=row.place, **values)

    def delete(self, row: DocumentRow) -> int:
        return self.run(f"DELETE FROM {self.name(row.table)} WHERE {self._at}", place=row.place)

    @property
    def _at(self) -> str:
        return "rowid = CAST(:place AS integer)" if self.is_sqlite else "ctid = CAST(:place AS tid)"

    def _typed(self, table: str, column: str, n: int) -> str:
        kind = self.layout[table][column]
        return f":text_{n}" if self.is_sqlite or kind not in ("json", "jsonb") else f"CAST(:text_{n} AS {kind})"

    def text_columns(self, table: str) -> list[str]:
        """Columns that may contain text of users or agents."""
        return [
            column
            for column, kind in self.layout[table].items()
            if kind.split("(")[0] in TEXT_TYPES and not column.endswith("_id") and column not in NOT_SAID
        ]


TEXT_TYPES = frozenset({"json", "jsonb", "text", "varchar", "character varying", "string"})

NOT_SAID = frozenset({"id", "session_type", "run_type", "status", "namespace", "path", "subpath", "framework"})
"""Columns that the library uses as identifiers."""
