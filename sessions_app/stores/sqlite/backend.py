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

from memadmin.batching import batched
from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import (
    COUNTED_EXACTLY,
    ITEM_HEAD_BYTES,
    ITEM_TAIL_BYTES,
    WHOLE_ITEM_BYTES,
    Capability,
    Deleted,
    ItemChanged,
    Place,
    SessionPage,
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.kinds import PathField, StoreKind
from sessions_app.stores.paged import PagedBackend, erasing, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from
from sessions_app.stores.sql_text import as_text
from sessions_app.stores.sqlite import file as sqlite_file
from sessions_app.stores.sqlite import statements
from sessions_app.stores.sqlite.rows import as_bytes, as_parameters, found_session, stored_item

ASKED_AT_ONCE = 500
"""Number of sessions in one statement; SQLite limits its parameters."""

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
            Capability.ERASE_IN_STEPS,
            Capability.ERASE_ITEMS,
            Capability.REPLACE_ITEMS,
        }
    )

    shown = ""
    """Further SQL condition on the items to read."""

    @property
    def path(self) -> str:
        return str(self.store.options.get("path", ""))

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
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
                    problems.append(
                        StoreProblem("damaged", f"The file {self.path} is damaged: {verdict}.", is_fatal=True)
                    )
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth(tuple(problems), sessions, items, answered_in_ms=answered_in_ms)

    def _about(self, connection: sqlite3.Connection, table: str, number: str) -> int:
        """Number of rows of a table: exact if small, otherwise estimated from the highest rowid."""
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {COUNTED_EXACTLY})"
        count = int(self._rows(connection, query)[0][0])
        return (
            count
            if count < COUNTED_EXACTLY
            else int(self._rows(connection, f"SELECT max({number}) FROM {table}")[0][0])
        )

    def _problems(self, connection: sqlite3.Connection) -> Iterator[StoreProblem]:
        if not os.access(self.path, os.W_OK) or not os.access(os.path.dirname(self.path), os.W_OK):
            yield StoreProblem(
                "read-only", f"This console may read {self.path} but not write to it: nothing can be erased in it."
            )
        yield from self._problems_of_branches(has_branches=has_branches(connection))

    def _problems_of_branches(self, *, has_branches: bool) -> Iterator[StoreProblem]:
        if has_branches:
            yield StoreProblem("has-branches", f"{self.path} {OF_ADVANCED}", is_fatal=True)

    def system(self) -> str:
        return "file"

    def places(self) -> frozenset[Place]:
        return sqlite_file.places(self.path, self.store.sessions_table, self.store.messages_table)

    def fingerprint(self) -> str:
        return sqlite_file.fingerprint(self.path)

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        limit = min(limit, ASKED_AT_ONCE)
        wanted = {"after": json.loads(cursor) if cursor else None, "limit": limit}
        beyond = "WHERE session_id > CAST(:after AS TEXT)" if cursor else ""
        with self.reading() as connection:
            queries = (statements.SESSIONS, statements.SESSIONS_WITH_ITEMS)
            named = [row for query in queries for row in self._rows(connection, query, wanted, beyond=beyond)]
            # In SQLite's own order, which is that of the bytes.
            ids = sorted({row[0] for row in named}, key=as_bytes)[:limit]
            rows = self._rows_about(connection, statements.FOUND, ids)
        return SessionPage([found_session(*row) for row in rows], json.dumps(ids[-1]) if len(ids) == limit else "")

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        previews: dict[str, SessionPreview] = {}
        ids = list(dict.fromkeys(session_ids))
        if not ids:
            return previews
        with self.reading() as connection:
            for some in batched(ids, ASKED_AT_ONCE):
                heads: dict[str, list[str]] = {}
                for session_id, head in self._rows_about(connection, statements.HEADS, some):
                    heads.setdefault(session_id, []).append(as_text(head))
                for session_id, is_there, count in self._rows_about(connection, statements.COUNTS, some):
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
        """Reads one more item than wanted, to find out whether there are more."""
        condition = "" if pivot is None else "AND id >= :place" if direction == "ASC" else "AND id < :place"
        rows = self._rows(
            connection,
            statements.WINDOW,
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
        with suppress(OverflowError):  # on the last day that Python can represent
            instant += timedelta(microseconds=-instant.microsecond % 1_000_000)
        wanted = {"session_id": session_id, "instant": instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ")}
        with self.reading() as connection:
            ((number,),) = self._rows(connection, statements.FROM_INSTANT, wanted)
        return None if number is None else Position((number,))

    def item(self, session_id: str, item_id: str) -> StoredItem:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}
        with self.reading() as connection:
            rows = self._rows(connection, statements.ITEM, wanted)
        if not rows:
            raise UnknownItem(item_id)
        return stored_item(*rows[0])

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        with self.reading() as connection:
            return int(self._rows(connection, statements.COUNT, {"session_id": session_id, "cap": cap + 1})[0][0])

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        wanted = {"session_id": session_id, "limit": at_most, "cap": COUNT_CAP + 1}
        with erasing(self.store, session_id):
            self._refuse_wrong_kind()
            with self.writing() as connection:
                count = self._delete_newest(connection, wanted)
                left = int(self._rows(connection, statements.COUNT, wanted)[0][0])
                if not left:
                    self._delete_rest(connection, wanted)
        return Deleted(count, left)

    def _refuse_wrong_kind(self) -> None:
        """Raises StoreUnavailable for a file with tables that this kind would not erase."""
        with self.reading() as connection:
            if has_branches(connection):
                raise StoreUnavailable(f"{self.path} {OF_ADVANCED}")

    def _delete_newest(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> int:
        return self._change(connection, statements.DELETE_NEWEST, wanted)

    def _delete_rest(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> None:
        """The session's row, by a statement of its own: the SDK never switches foreign keys on."""
        self._change(connection, statements.DELETE_SESSION, wanted)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}
        with self.writing() as connection:
            self._expect(connection, wanted, expected)
            self._change(connection, statements.REPLACE, {**wanted, "text": text})

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
        self._change(connection, statements.DELETE_ITEM, wanted)

    def _expect(self, connection: sqlite3.Connection, wanted: dict[str, Any], expected: str) -> None:
        """Raises UnknownItem and ItemChanged."""
        rows = self._rows(connection, statements.STORED, wanted)
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
            columns=statements.COLUMNS,
            shown=self.shown,
            **parts,
        )


def identifier(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def has_branches(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'message_structure'").fetchone() is not None


KIND = StoreKind(
    "sqlite",
    "SQLite file",
    "file-database",
    open=SqliteBackend,
    form=SqliteForm,
    has_tables=True,
)
