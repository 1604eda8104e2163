"""Search in the tables of our own database: every column that holds text, as the catalogue lists them.

Each table is read once, in ranges of its pages. The database sends the texts of some pages as one, which is searched
here; only where an id may be, the rows are read one by one. So a scan takes no longer than to read the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.errors import LockNotAvailable, QueryCanceled

from memadmin.erasure.data_map.places import Location, places
from memadmin.erasure.exceptions import Left
from memadmin.erasure.scan.people import NOBODY, Cases, People
from memadmin.erasure.scan.progress import Progress

FIRST_PAGES, MOST_PAGES = 64, 1_024
RANGE_SECONDS = 0.25
"""Time that the read of one range should take."""

PIECE_PAGES = 32
"""Pages whose texts are sent as one: a few hundred kilobytes, usually."""

TIMEOUT = "60s"
LOCK_TIMEOUT = "5s"

LONG_TEXT = 8_192
"""Bytes of a row's texts from which the row is read by itself: together they could need too much memory."""

OwnSessions = Callable[[Sequence[str]], dict[str, Cases]]
"""Cases by the ids of their subjects' own sessions in an agents' table, which their steps count."""

Hit = tuple[str, Cases]
"""Name of the column of a text, and those who are named in it."""

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

PIECES = """
SELECT page, piece.* FROM generate_series({start}, {end} - 1, {pages}) AS page, LATERAL (
    SELECT count(*), string_agg(text, E'\\n') FILTER (WHERE octet_length(text) < {long}),
           bool_or(octet_length(text) >= {long})
    FROM (
        SELECT {text} AS text FROM {table}
        WHERE ctid >= format('(%s,0)', page)::tid AND ctid < format('(%s,0)', page + {pages})::tid OFFSET 0
    ) AS rows
) AS piece
"""
"""OFFSET 0: the columns of a row are put together once."""

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
        return sql.SQL("concat_ws(E'\\n', {})").format(sql.SQL(", ").join(map(self.text_of, self.columns)))


def tables() -> list[TextTable]:
    """All tables of all schemas that hold text, except those of the case itself. One query."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        found = [
            TextTable(
                schema, name, oid, is_readable, *without_digests(schema, name, columns, types), hidden, has_subject
            )
            for schema, name, oid, is_readable, columns, types, hidden, has_subject in cursor.fetchall()
        ]
    return [table for table in found if (table.schema, table.name) not in {("public", name) for name in OF_THE_CASE}]


def without_digests(
    schema: str, table: str, columns: Sequence[str] | None, types: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The columns of a table that can hold text, and their types.

    Digests, salts and ciphertexts of ours cannot: among millions of them some have three bytes that look like a short
    ID, and the erasure of whom it belongs to would never be complete.
    """
    pairs = zip(columns or (), types or (), strict=True)
    kept = [each for each in pairs if not (each[1] == "bytea" and schema == "public" and (table, each[0]) in digests())]
    return [name for name, _ in kept], [type_name for _, type_name in kept]


@cache
def digests() -> frozenset[tuple[str, str]]:
    """Tables of memadmin and their columns without personal data, by the data map: digests and secrets at most."""
    ours = (place for place in places() if place.location is Location.MEMADMIN and not place.is_personal)
    return frozenset((place.name, column) for place in ours for column in place.columns)


def search_tables(people: People, progress: Progress, *, agents: Mapping[int, OwnSessions] | None = None) -> None:
    """Searches every table that is not done. `agents`: the agents' tables, by their oid."""
    for table in tables():
        part = f"table {table.place}"
        if progress.is_done(part):
            continue
        if table.hidden:
            progress.note_hidden(table.place)
        if not table.columns:
            progress.pass_over(part)
            continue
        try:
            TableScan(table, people, progress, (agents or {}).get(table.oid)).work(part)
        except OperationalError as problem:
            if not isinstance(problem.__cause__, LockNotAvailable):
                raise
            raise TableLocked(table.place) from problem


class TableLocked(Exception):
    def __init__(self, place: str) -> None:
        super().__init__(f"Another transaction has locked the table {place}. The scan continues when it is over.")


class TextAsBytes(Loader):
    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class TableScan:
    def __init__(
        self,
        table: TextTable,
        people: People,
        progress: Progress,
        own_sessions: OwnSessions | None = None,
    ) -> None:
        self.table, self.people, self.progress, self.own_sessions = table, people, progress, own_sessions

    def work(self, part: str) -> None:
        start = self.progress.begin(part) or 0
        if not self.table.is_readable:
            # Without pages: which page a row is on may only be read with the whole table.
            rows, hits = self.examine(sql.SQL(""))
            self.found(hits)
            self.progress.move(1, rows=rows)
            self.progress.finish(part)
            return
        if not (pages := self.page_count()):
            self.progress.pass_over(part)
            return
        size = FIRST_PAGES
        while start < pages:
            began = time.monotonic()
            try:
                rows, hits = self.read(start, start + size)
            except OperationalError as problem:
                if size == 1 or not isinstance(problem.__cause__, QueryCanceled):
                    raise
                size = 1
                continue
            self.found(hits)
            start += size
            self.progress.move(start, rows=rows)
            took = time.monotonic() - began
            size = min(size * 2, MOST_PAGES) if took < RANGE_SECONDS / 2 else size
            size = max(size // 2, 1) if took > RANGE_SECONDS * 2 else size
            # What is written meanwhile is at the end, or in pages that were read: for that there is the second scan.
            pages = self.page_count()
        self.progress.finish(part)

    def page_count(self) -> int:
        with reading() as cursor:
            cursor.execute(PAGES, [self.table.oid])
            return int(cursor.fetchone()[0] or 0)

    def found(self, hits: Sequence[Hit]) -> None:
        code = Left.OTHERS_TEXT if self.own_sessions else Left.STILL_FOUND
        for column, cases in hits:
            self.progress.found(cases, f"{self.table.place}.{column}", code=code.value)

    def read(self, start: int, end: int) -> tuple[int, list[Hit]]:
        """Number of rows on these pages, and each text that names a person."""
        pages = min(PIECE_PAGES, end - start)
        query = sql.SQL(PIECES).format(
            start=start, end=end, pages=pages, long=LONG_TEXT, text=self.table.text(), table=self.table.identifier
        )
        rows, closer = 0, []
        with reading() as cursor:
            cursor.adapters.register_loader("text", TextAsBytes)
            for page, count, together, has_long in cursor.stream(query):
                rows += count
                if together and self.people.finder.may_find(together):
                    closer.append(on_pages(page, page + pages))
                elif has_long:
                    is_long = sql.SQL("{} AND octet_length({}) >= {}")
                    closer.append(is_long.format(on_pages(page, page + pages), self.table.text(), LONG_TEXT))
        return rows, [hit for where in closer for hit in self.examine(where)[1]]

    def examine(self, where: sql.Composable) -> tuple[int, list[Hit]]:
        """The same of rows that are read one by one."""
        query = sql.SQL(ROWS).format(
            session=sql.SQL("session_id" if self.own_sessions else "''"),
            subject=sql.SQL("subject_id" if self.table.has_subject else "NULL"),
            columns=sql.SQL(", ").join(map(self.table.text_of, self.table.columns)),
            table=self.table.identifier,
            where=where,
        )
        self.progress.keep()
        rows, hits = 0, []
        with reading() as cursor:
            for session_id, subject_id, *texts in cursor.stream(query):
                rows += 1
                for column, text in zip(self.table.columns, texts, strict=True):
                    if text is not None and (named := self.people.named_in(text)):
                        hits.append((session_id, subject_id, column, named))
        own = self.own_sessions(sorted({hit[0] for hit in hits})) if self.own_sessions and hits else {}
        subjects = self.people.subjects
        # What is the person's own is not counted here, but by the steps.
        others = [
            (column, named - own.get(session_id, NOBODY) - subjects.get(subject_id, NOBODY))
            for session_id, subject_id, column, named in hits
        ]
        return rows, [hit for hit in others if hit[1]]


def on_pages(start: int, end: int) -> sql.Composable:
    return sql.SQL("WHERE ctid >= {}::tid AND ctid < {}::tid").format(f"({start},0)", f"({end},0)")


@contextmanager
def reading() -> Iterator[CursorWrapper]:
    """A transaction that only reads and cannot take long. Also errors of `cursor.stream` are Django's."""
    with transaction.atomic(), connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.execute(
            "SELECT set_config('transaction_read_only', 'on', true),"
            " set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true),"
            # Of pages of a large table the planner expects too much.
            " set_config('jit', 'off', true)",
            [TIMEOUT, LOCK_TIMEOUT],
        )
        yield cursor
