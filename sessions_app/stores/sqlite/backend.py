"""A file of the SDK's SQLiteSession or AsyncSQLiteSession: one file is one store.

Items are read in the order of their ids, along the SDK's own index on `(session_id, id)`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from django import forms

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import (
    COUNTED_EXACTLY,
    ITEM_HEAD_BYTES,
    ITEM_TAIL_BYTES,
    WHOLE_ITEM_BYTES,
    Capability,
    FoundSession,
    Health,
    ItemChanged,
    Preview,
    Problem,
    SessionPage,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.kinds import Kind, PathField
from sessions_app.stores.paged import PagedBackend, erasing, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from
from sessions_app.stores.sqlite import file as sqlite_file

ASKED_AT_ONCE = 500
"""How many sessions one statement is about; SQLite limits its parameters."""

ROWS_A_TRANSACTION = 5_000
"""How many items an erasure takes away before it lets agents write again."""

COLUMNS = """
id, created_at, length(CAST(message_data AS BLOB)),
CASE WHEN length(CAST(message_data AS BLOB)) <= :whole THEN message_data ELSE substr(message_data, 1, :head) END,
CASE WHEN length(CAST(message_data AS BLOB)) <= :whole THEN '' ELSE substr(message_data, -:tail) END
"""

WINDOW = """
SELECT {columns} FROM (
    SELECT * FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) {shown} {condition}
    ORDER BY id {direction} LIMIT :limit
)
"""

ITEM = """
SELECT id, created_at, length(CAST(message_data AS BLOB)), message_data, ''
FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id = :id {shown}
"""

COUNT = """
SELECT count(*) FROM (SELECT 1 FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) {shown} LIMIT :cap)
"""
FROM_INSTANT = """
SELECT min(id) FROM {messages}
WHERE session_id = CAST(:session_id AS TEXT) {shown} AND datetime(created_at) >= CAST(:instant AS TEXT)
"""

SESSIONS = "SELECT session_id FROM {sessions} {beyond} ORDER BY session_id LIMIT :limit"
# From session to session along the index, however many items each has: some may have no row of their session.
SESSIONS_WITH_ITEMS = """
WITH RECURSIVE stepped(session_id) AS (
    SELECT min(session_id) FROM {messages} {beyond}
    UNION ALL
    SELECT (SELECT min(session_id) FROM {messages} WHERE session_id > stepped.session_id)
    FROM stepped WHERE session_id IS NOT NULL
)
SELECT session_id FROM stepped WHERE session_id IS NOT NULL LIMIT :limit
"""
FOUND = """
WITH wanted(session_id) AS (VALUES {wanted})
SELECT wanted.session_id, s.created_at, s.updated_at, last.id, last.created_at
FROM wanted
LEFT JOIN {sessions} AS s ON s.session_id = wanted.session_id
LEFT JOIN {messages} AS last
  ON last.id = (SELECT id FROM {messages} WHERE session_id = wanted.session_id ORDER BY id DESC LIMIT 1)
"""

COUNTS = """
WITH wanted(session_id) AS (VALUES {wanted})
SELECT wanted.session_id, EXISTS (SELECT 1 FROM {sessions} AS s WHERE s.session_id = wanted.session_id),
       (SELECT count(*) FROM (SELECT 1 FROM {messages} AS m WHERE m.session_id = wanted.session_id LIMIT {cap}))
FROM wanted
"""
HEADS = """
WITH wanted(session_id) AS (VALUES {wanted})
SELECT m.session_id, substr(m.message_data, 1, {head})
FROM wanted
JOIN {messages} AS m
  ON m.id IN (SELECT id FROM {messages} WHERE session_id = wanted.session_id ORDER BY id LIMIT {items})
ORDER BY m.id
"""

DELETE_SOME = """
DELETE FROM {messages}
WHERE id IN (SELECT id FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) ORDER BY id LIMIT :limit)
"""
DELETE_SESSION = "DELETE FROM {sessions} WHERE session_id = CAST(:session_id AS TEXT)"
STORED = "SELECT message_data FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id = :id"
REPLACE = (
    "UPDATE {messages} SET message_data = CAST(:text AS TEXT) WHERE session_id = CAST(:session_id AS TEXT) AND id = :id"
)
DELETE_ITEM = "DELETE FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id = :id"


OF_ADVANCED = "belongs to AdvancedSQLiteSession, which keeps branches. Connect it as advanced_sqlite."


class SqliteForm(forms.Form):
    path = PathField(label="File", max_length=1_000, help_text="The file that the agents give to SQLiteSession.")


class SqliteBackend(PagedBackend):
    capabilities = frozenset(
        {
            Capability.ENUMERATE,
            Capability.ITEM_TIMES,
            Capability.ITEM_IDS,
            Capability.ERASE_SESSIONS,
            Capability.ERASE_ITEMS,
            Capability.REPLACE_ITEMS,
        }
    )

    shown = ""
    """A further condition on the items that are read."""

    @property
    def path(self) -> str:
        return str(self.store.options.get("path", ""))

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> Health:
        began = perf_counter()
        try:
            with self.reading() as connection:
                sessions = self._about(connection, "{sessions}", "rowid")
                items = self._about(connection, "{messages}", "id")
                answered_in_ms = (perf_counter() - began) * 1000
                problems = list(self._problems(connection))
            if thorough:
                with self.reading(seconds=60) as connection:
                    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
                if verdict != "ok":
                    problems.append(Problem("damaged", f"The file {self.path} is damaged: {verdict}.", is_fatal=True))
        except StoreUnavailable as away:
            return Health(problems=(Problem("unavailable", str(away), is_fatal=True),))
        return Health(tuple(problems), sessions, items, answered_in_ms=answered_in_ms)

    def _about(self, connection: sqlite3.Connection, table: str, number: str) -> int:
        """How many rows a table has: exactly if they are few, else about, from the highest number given out."""
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {COUNTED_EXACTLY})"
        count = int(self._rows(connection, query)[0][0])
        return (
            count
            if count < COUNTED_EXACTLY
            else int(self._rows(connection, f"SELECT max({number}) FROM {table}")[0][0])
        )

    def _problems(self, connection: sqlite3.Connection) -> Iterator[Problem]:
        if not os.access(self.path, os.W_OK) or not os.access(os.path.dirname(self.path), os.W_OK):
            yield Problem(
                "read-only", f"This console may read {self.path} and not write to it: nothing can be erased in it."
            )
        yield from self._problems_of_branches(has_branches=has_branches(connection))

    def _problems_of_branches(self, *, has_branches: bool) -> Iterator[Problem]:
        if has_branches:
            yield Problem("has-branches", f"{self.path} {OF_ADVANCED}", is_fatal=True)

    def fingerprint(self) -> str:
        return sqlite_file.fingerprint(self.path)

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        limit = min(limit, ASKED_AT_ONCE)
        wanted = {"after": json.loads(cursor) if cursor else None, "limit": limit}
        beyond = "WHERE session_id > CAST(:after AS TEXT)" if cursor else ""
        with self.reading() as connection:
            queries = (SESSIONS, SESSIONS_WITH_ITEMS)
            named = [row for query in queries for row in self._rows(connection, query, wanted, beyond=beyond)]
            # In SQLite's own order, which is that of the bytes.
            ids = sorted({row[0] for row in named}, key=as_bytes)[:limit]
            rows = self._rows_about(connection, FOUND, ids)
        return SessionPage([found_session(*row) for row in rows], json.dumps(ids[-1]) if len(ids) == limit else "")

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, Preview]:
        previews: dict[str, Preview] = {}
        ids = list(dict.fromkeys(session_ids))
        if not ids:
            return previews
        with self.reading() as connection:
            for start in range(0, len(ids), ASKED_AT_ONCE):
                some = ids[start : start + ASKED_AT_ONCE]
                heads: dict[str, list[str]] = {}
                for session_id, head in self._rows_about(connection, HEADS, some):
                    heads.setdefault(session_id, []).append(as_text(head))
                for session_id, is_there, count in self._rows_about(connection, COUNTS, some):
                    previews[session_id] = preview_from(heads.get(session_id, []), count if is_there or count else None)
        return previews

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        with self.reading() as connection:
            before = self._side(connection, session_id, "DESC", pivot, earlier) if earlier or pivot else []
            after = self._side(connection, session_id, "ASC", pivot, later) if later or pivot else []
        shown = [*reversed(before[:earlier]), *after[:later]]
        return ItemPage(shown, has_earlier=len(before) > earlier, has_later=len(after) > later)

    def _side(
        self, connection: sqlite3.Connection, session_id: str, direction: str, pivot: Position | None, wanted: int
    ) -> list[StoredItem]:
        """One more item than wanted is read: it tells that there are more."""
        condition = "" if pivot is None else "AND id >= :place" if direction == "ASC" else "AND id < :place"
        rows = self._rows(
            connection,
            WINDOW,
            {
                "session_id": session_id,
                "place": pivot.key[0] if pivot else None,
                "limit": wanted + 1,
                "whole": WHOLE_ITEM_BYTES,
                "head": ITEM_HEAD_BYTES,
                "tail": ITEM_TAIL_BYTES,
            },
            condition=condition,
            direction=direction,
        )
        return [stored_item(*row) for row in rows]

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def position_from(self, session_id: str, instant: datetime) -> Position | None:
        with suppress(OverflowError):  # on the last day that Python knows
            instant += timedelta(microseconds=-instant.microsecond % 1_000_000)
        wanted = {"session_id": session_id, "instant": instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ")}
        with self.reading() as connection:
            ((number,),) = self._rows(connection, FROM_INSTANT, wanted)
        return None if number is None else Position((number,))

    def item(self, session_id: str, item_id: str) -> StoredItem:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}
        with self.reading() as connection:
            rows = self._rows(connection, ITEM, wanted)
        if not rows:
            raise UnknownItem(item_id)
        return stored_item(*rows[0])

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        with self.reading() as connection:
            return int(self._rows(connection, COUNT, {"session_id": session_id, "cap": cap + 1})[0][0])

    # --- one session, changed -----------------------------------------------------------------------------------------

    def erase_session(self, session_id: str) -> int:
        wanted = {"session_id": session_id, "limit": ROWS_A_TRANSACTION}
        count, gone = 0, ROWS_A_TRANSACTION
        with erasing(self.store, session_id):
            self._refuse_wrong_kind()
            while gone == ROWS_A_TRANSACTION:
                with self.writing() as connection:
                    gone = self._erase_some(connection, wanted)
                    if gone < ROWS_A_TRANSACTION:
                        self._erase_rest(connection, wanted)
                count += gone
        return count

    def _refuse_wrong_kind(self) -> None:
        """What is erased here would stay in the tables that this kind does not know."""
        with self.reading() as connection:
            if has_branches(connection):
                raise StoreUnavailable(f"{self.path} {OF_ADVANCED}")

    def _erase_some(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> int:
        return self._change(connection, DELETE_SOME, wanted)

    def _erase_rest(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> None:
        """The SDK never switches foreign keys on, so the session's row goes by itself."""
        self._change(connection, DELETE_SESSION, wanted)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}
        with self.writing() as connection:
            self._expect(connection, wanted, expected)
            self._change(connection, REPLACE, {**wanted, "text": text})

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        count = 0
        with self.writing() as connection:
            for stored in items:
                with suppress(UnknownItem):
                    wanted = {"session_id": session_id, "id": whole_number(stored.id)}
                    self._expect(connection, wanted, stored.raw)
                    self._delete_item(connection, wanted)
                    count += 1
        return count

    def _delete_item(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> None:
        self._change(connection, DELETE_ITEM, wanted)

    def _expect(self, connection: sqlite3.Connection, wanted: dict[str, Any], expected: str) -> None:
        """Raises UnknownItem and ItemChanged."""
        rows = self._rows(connection, STORED, wanted)
        if not rows:
            raise UnknownItem(str(wanted["id"]))
        if as_text(rows[0][0]) != expected:
            raise ItemChanged(str(wanted["id"]))

    # --- how it is asked ----------------------------------------------------------------------------------------------

    def reading(self, *, seconds: float = sqlite_file.READ_SECONDS) -> AbstractContextManager[sqlite3.Connection]:
        return sqlite_file.reading(self.path, seconds=seconds)

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return sqlite_file.writing(self.path)

    def _rows(
        self, connection: sqlite3.Connection, query: str, wanted: Mapping[str, Any] | None = None, **parts: object
    ) -> list[tuple[Any, ...]]:
        return connection.execute(self._compose(query, **parts), as_parameters(wanted or {})).fetchall()

    def _rows_about(
        self, connection: sqlite3.Connection, query: str, session_ids: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        if not session_ids:
            return []
        composed = self._compose(
            query,
            wanted=", ".join(["(CAST(? AS TEXT))"] * len(session_ids)),
            cap=COUNT_CAP + 1,
            head=PREVIEW_HEAD_CHARACTERS,
            items=PREVIEW_ITEMS,
        )
        return connection.execute(composed, [as_bytes(each) for each in session_ids]).fetchall()

    def _change(self, connection: sqlite3.Connection, statement: str, wanted: Mapping[str, Any]) -> int:
        return connection.execute(self._compose(statement), as_parameters(wanted)).rowcount

    def _compose(self, query: str, **parts: object) -> str:
        return query.format(
            sessions=identifier(self.store.sessions_table),
            messages=identifier(self.store.messages_table),
            columns=COLUMNS,
            shown=self.shown,
            **parts,
        )


def identifier(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def has_branches(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'message_structure'").fetchone() is not None


def as_bytes(text: str) -> bytes:
    """SQLite's own, also of what is no UTF-8 in the file; statements cast it back."""
    return text.encode(errors="surrogateescape" if is_escaped(text) else "surrogatepass")


def is_escaped(text: str) -> bool:
    return any("\udc80" <= letter <= "\udcff" for letter in text)


def as_text(stored: object) -> str:
    """A stored text, which somebody may have written as a blob or a number."""
    return stored.decode(errors="surrogateescape") if isinstance(stored, bytes) else str(stored)


def as_parameters(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_bytes(value) if isinstance(value, str) else value for name, value in wanted.items()}


def stored_item(number: int, created_at: object, byte_count: int, raw: object, raw_tail: object) -> StoredItem:
    return StoredItem(
        id=str(number),
        position=Position((number,)),
        raw=as_text(raw),
        byte_count=byte_count,
        written_at=instant(created_at),
        raw_tail=as_text(raw_tail),
    )


def found_session(
    session_id: str, created_at: object, updated_at: object, last_id: int | None, last_written_at: object
) -> FoundSession:
    times = [time for time in (instant(created_at), instant(updated_at), instant(last_written_at)) if time]
    return FoundSession(
        session_id,
        created_at=min(times, default=None),
        last_activity_at=max(times, default=None),
        # Without the id an item that was written within the same second would not be noticed.
        mark=f"{updated_at}/{last_id}"[:64],
    )


def instant(stored: object) -> datetime | None:
    """SQLite's CURRENT_TIMESTAMP is UTC, in whole seconds; None for what is no time."""
    try:
        time = datetime.fromisoformat(str(stored))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


KIND = Kind(
    "sqlite",
    "SQLite file",
    "file-database",
    open=SqliteBackend,
    form=SqliteForm,
    has_tables=True,
)
