"""Search in the tables of our own database: every column that holds text, as the catalogue lists them.

Each table is read once, in ranges of its pages. The texts of a range are put together and searched as one, because the
start of each search costs more than the search of a message; only in a range with a hit the rows are read one by one,
and their texts examined here. So a scan costs little more than to read the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql
from psycopg.errors import LockNotAvailable, QueryCanceled

from memadmin.erasure.exceptions import Left
from memadmin.erasure.scan.progress import Progress
from memadmin.erasure.scan.variants import Finder

FIRST_PAGES, MOST_PAGES = 64, 1_024
RANGE_SECONDS = 0.25
"""Time that the read of one range should take."""

TIMEOUT = "60s"
LOCK_TIMEOUT = "5s"

LONG_TEXT = 8_192
"""Bytes of a row's texts from which they are searched by themselves: together they could become too long."""

ROWS_AT_ONCE = 100

OF_THE_CASE = ("erasure_subjectrequest", "erasure_requestnote", "erasure_erasurestep")
"""Tables that are not searched: the case keeps the person's ids, encrypted, and what people wrote about the request,
until it is closed; both are destroyed then."""

COLUMNS = """
SELECT n.nspname, c.relname, c.oid, has_table_privilege(c.oid, 'SELECT'),
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE has_column_privilege(c.oid, a.attnum, 'SELECT')),
       array_agg(t.typname::text ORDER BY a.attnum) FILTER (WHERE has_column_privilege(c.oid, a.attnum, 'SELECT')),
       count(*) FILTER (WHERE NOT has_column_privilege(c.oid, a.attnum, 'SELECT')),
       EXISTS (SELECT FROM pg_attribute AS s WHERE s.attrelid = c.oid AND s.attname = 'subject_id'
               AND s.atttypid = 'uuid'::regtype AND has_column_privilege(c.oid, s.attnum, 'SELECT'))
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_type AS e ON e.oid = t.typelem AND t.typcategory = 'A'
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
  AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'USAGE')
  AND ('S' IN (t.typcategory, e.typcategory)
       OR ltrim(t.typname, '_') IN ('json', 'jsonb', 'xml', 'hstore', 'tsvector', 'bytea'))
GROUP BY n.nspname, c.relname, c.oid
ORDER BY n.nspname, c.relname
"""

PAGES = "SELECT pg_relation_size(%s::oid) / current_setting('block_size')::int"

RANGE = """
SELECT row_count, has_long, {together} FROM (
    SELECT count(*) AS row_count, coalesce(bool_or(CASE WHEN octet_length(text) >= {long} THEN {alone} END), false)
           AS has_long, string_agg(CASE WHEN octet_length(text) < {long} THEN text END, E'\\n') AS together
    FROM (SELECT {text} AS text FROM {table} {where} {once}) AS rows
) AS searched
"""

ROWS = "SELECT {session}, {subject}, {columns} FROM {table} {where}"


@dataclass(frozen=True)
class TextTable:
    """A table with columns that hold text."""

    schema: str
    name: str
    oid: int
    is_readable: bool
    """Whether we may read all of it; otherwise the columns that we may read are read at once."""
    columns: Sequence[str]
    types: Sequence[str]
    hidden: int
    """Number of columns that hold text and that we may not read."""
    has_subject: bool

    @property
    def place(self) -> str:
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def text_of(self, column: str) -> sql.Composable:
        """The column as text. Bytes keep the letters of ASCII in them, as far as they are text."""
        is_bytes = self.types[self.columns.index(column)] == "bytea"
        form = "encode({}, 'escape')" if is_bytes else "{}::text"
        return sql.SQL(form).format(sql.Identifier(column))

    def text(self) -> sql.Composable:
        if len(self.columns) == 1:
            return self.text_of(self.columns[0])
        return sql.SQL("concat_ws(E'\\n', {})").format(sql.SQL(", ").join(map(self.text_of, self.columns)))


def tables() -> list[TextTable]:
    """All tables of all schemas that hold text, except those of the case itself. One query."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        found = [
            TextTable(schema, name, oid, is_readable, columns or [], types or [], hidden, has_subject)
            for schema, name, oid, is_readable, columns, types, hidden, has_subject in cursor.fetchall()
        ]
    return [table for table in found if (table.schema, table.name) not in {("public", name) for name in OF_THE_CASE}]


@dataclass(frozen=True)
class OwnSessions:
    """What is known of the sessions in an agents' table: whose hits are the person's own, which other steps count."""

    column: str
    are_own: Callable[[Sequence[str]], set[str]]
    """Those of the session ids that are the person's."""


def search_tables(
    finder: Finder,
    progress: Progress,
    *,
    own_subjects: Sequence[UUID] = (),
    agents: dict[int, OwnSessions] | None = None,
) -> None:
    """Searches every table that is not done. `agents`: the agents' tables, by their oid."""
    for table in tables():
        part = f"table {table.place}"
        if progress.is_done(part):
            continue
        if table.hidden:
            progress.note_hidden(table.place)
        if table.columns:
            try:
                TableScan(table, finder, progress, own_subjects, (agents or {}).get(table.oid)).work(part)
            except OperationalError as problem:
                if not isinstance(problem.__cause__, LockNotAvailable):
                    raise
                raise TableLocked(table.place) from problem
        progress.finish(part)


class TableLocked(Exception):
    def __init__(self, place: str) -> None:
        super().__init__(f"Another transaction has locked the table {place}. The scan continues when it is over.")


class TableScan:
    def __init__(
        self,
        table: TextTable,
        finder: Finder,
        progress: Progress,
        own_subjects: Sequence[UUID],
        agents: OwnSessions | None,
    ) -> None:
        self.table, self.finder, self.progress = table, finder, progress
        self.own_subjects, self.agents = set(own_subjects), agents

    def work(self, part: str) -> None:
        start = self.progress.begin(part) or 0
        if not self.table.is_readable:
            rows, is_hit = self.read(sql.SQL(""))
            if is_hit:
                self.examine(sql.SQL(""))
            self.progress.move(1, rows=rows)
            return
        size = FIRST_PAGES
        # What is written meanwhile is at the end, or in pages that were read: for that there is the second scan.
        while start < self.page_count():
            began = time.monotonic()
            where = page_range(start, start + size)
            try:
                rows, is_hit = self.read(where)
                if is_hit:
                    self.examine(where)
            except OperationalError as problem:
                if size == 1 or not isinstance(problem.__cause__, QueryCanceled):
                    raise
                size = 1
                continue
            start += size
            self.progress.move(start, rows=rows)
            took = time.monotonic() - began
            size = min(size * 2, MOST_PAGES) if took < RANGE_SECONDS / 2 else size
            size = max(size // 2, 1) if took > RANGE_SECONDS * 2 else size

    def page_count(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(PAGES, [self.table.oid])
            return int(cursor.fetchone()[0] or 0)

    def read(self, where: sql.Composable) -> tuple[int, bool]:
        """Number of rows in a range, and whether one of them is worth a closer look."""
        query = sql.SQL(RANGE).format(
            text=self.table.text(),
            table=self.table.identifier,
            where=where,
            long=sql.Literal(LONG_TEXT),
            alone=contains_needle(self.finder, sql.SQL("text")),
            together=contains_needle(self.finder, sql.SQL("together")),
            # Several columns are put together once; of a single one the length is known without reading it.
            once=sql.SQL("OFFSET 0" if len(self.table.columns) > 1 else ""),
        )
        with reading() as cursor:
            cursor.execute(query)
            rows, is_alone, is_together = cursor.fetchone()
        return rows, bool(is_alone or is_together)

    def examine(self, where: sql.Composable) -> None:
        """Counts the rows of a range in which something is found, by column."""
        counts: dict[tuple[str, str], int] = {}
        for batch in self.rows_with_hits(where):
            own = self.agents.are_own(sorted({row[0] for row in batch})) if self.agents else set()
            for session_id, subject_id, *texts in batch:
                if session_id in own or subject_id in self.own_subjects:
                    continue
                code = Left.OTHERS_TEXT if self.agents else Left.STILL_FOUND
                for column, text in zip(self.table.columns, texts, strict=True):
                    if text is not None and self.finder.finds(text):
                        key = (f"{self.table.place}.{column}", code.value)
                        counts[key] = counts.get(key, 0) + 1
        for (place, code_value), count in counts.items():
            self.progress.found(place, code=code_value, count=count)

    def rows_with_hits(self, where: sql.Composable) -> Iterator[list[tuple[Any, ...]]]:
        texts = [self.table.text_of(column) for column in self.table.columns]
        wanted = [
            sql.SQL("CASE WHEN {} THEN {} END").format(contains_needle(self.finder, text), text) for text in texts
        ]
        any_hit = sql.SQL(" OR ").join(contains_needle(self.finder, text) for text in texts)
        query = sql.SQL(ROWS).format(
            session=sql.Identifier(self.agents.column) if self.agents else sql.SQL("''"),
            subject=sql.SQL("subject_id" if self.table.has_subject else "NULL"),
            columns=sql.SQL(", ").join(wanted),
            table=self.table.identifier,
            where=sql.SQL("{} ({})").format(
                sql.SQL("{} AND").format(where) if where.as_string(None) else sql.SQL("WHERE"), any_hit
            ),
        )
        with reading(), connection.chunked_cursor() as cursor:
            cursor.execute(query)
            while batch := cursor.fetchmany(ROWS_AT_ONCE):
                yield batch


def page_range(start: int, end: int) -> sql.Composable:
    return sql.SQL("WHERE ctid >= {}::tid AND ctid < {}::tid").format(
        sql.Literal(f"({start},0)"), sql.Literal(f"({end},0)")
    )


def contains_needle(finder: Finder, text: sql.Composable) -> sql.Composable:
    """Condition: the text contains what `Finder.needles` asks for."""
    groups = sql.SQL(" OR ").join(
        sql.SQL("({})").format(
            sql.SQL(" AND ").join(sql.SQL("strpos(t, {}) > 0").format(sql.Literal(part)) for part in group)
        )
        for group in finder.needles
    )
    # Within a subquery of its own: lower() is called once. With the collation C it is a matter of bytes.
    return sql.SQL('(SELECT {} FROM (SELECT lower({} COLLATE "C") AS t OFFSET 0) AS lowered)').format(groups, text)


@contextmanager
def reading() -> Iterator[CursorWrapper]:
    """A transaction that only reads and cannot take long."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)",
            [TIMEOUT, LOCK_TIMEOUT],
        )
        yield cursor
