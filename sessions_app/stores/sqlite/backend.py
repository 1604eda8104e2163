"""A file of the SDK's SQLiteSession or AsyncSQLiteSession: one file is one store.

Items are read in the order of their ids, along the SDK's own index on `(session_id, id)`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from sessions_app.stores.sqlite import layouts, statements
from sessions_app.stores.sqlite.layouts import (
    BRANCH_TABLES,
    GENERATIONS,
    MESSAGE_COLUMNS,
    OF_ADVANCED,
    PLAIN_LAYOUTS,
    SESSION_COLUMNS,
    STRUCTURE,
    USAGE,
    BranchTable,
    identifier,
)
from sessions_app.stores.sqlite.rows import as_bytes, as_parameters, found_session, stored_item

ASKED_AT_ONCE = 500
"""Number of sessions in one statement; SQLite limits its parameters."""

UNKNOWN_NAMED = 5


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
                present, faults = self._branch_tables(connection)
                problems = [StoreProblem("unknown-layout", fault, is_fatal=True) for fault in faults]
                problems += self._problems(present)
                hints = list(self._hints(connection))
            if thorough:
                with self.reading(seconds=60) as connection:
                    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
                if verdict != "ok":
                    problems.append(
                        StoreProblem("damaged", f"The file {self.path} is damaged: {verdict}.", is_fatal=True)
                    )
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth(
            tuple(problems),
            sessions,
            items,
            answered_in_ms=answered_in_ms,
            hints=hints,
            layout=layouts.described(present),
        )

    def _branch_tables(self, connection: sqlite3.Connection) -> tuple[Collection[BranchTable], list[str]]:
        """The branch tables that the file has, and sentences about tables of an unknown layout, the usual two among
        them.
        """
        usual = {self.store.sessions_table: SESSION_COLUMNS, self.store.messages_table: MESSAGE_COLUMNS}
        tables = layouts.tables_of(connection, usual)
        present, faults = layouts.branch_tables_of(connection)
        for name, wanted in usual.items():
            faults += layouts.faults_of(name, tables.get(name.lower(), wanted), wanted)
        return present, faults

    def _hints(self, connection: sqlite3.Connection) -> Iterator[str]:
        usual = (self.store.sessions_table, self.store.messages_table)
        known = {name.lower() for name in (*usual, *(table.name for table in BRANCH_TABLES))}
        if unknown := layouts.unknown_tables(connection, known):
            yield (
                f"The file has further tables with a column session_id: {', '.join(unknown[:UNKNOWN_NAMED])}. Their"
                " rows are neither shown nor erased with a session."
            )

    def _about(self, connection: sqlite3.Connection, table: str, number: str) -> int:
        """Number of rows of a table: exact if small, otherwise estimated from the highest rowid."""
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {COUNTED_EXACTLY})"
        count = int(self._rows(connection, query)[0][0])
        return (
            count
            if count < COUNTED_EXACTLY
            else int(self._rows(connection, f"SELECT max({number}) FROM {table}")[0][0])
        )

    def _problems(self, present: Collection[BranchTable]) -> Iterator[StoreProblem]:
        if not os.access(self.path, os.W_OK) or not os.access(os.path.dirname(self.path), os.W_OK):
            yield StoreProblem(
                "read-only", f"This console may read {self.path} but not write to it: nothing can be erased in it."
            )
        if sentence := self._wrong_kind(has_branches=STRUCTURE in present):
            # In a store that is attached, the agents' sessions have changed since: they are read, and can be erased.
            yield StoreProblem("wrong-kind", f"{self.path} {sentence}", is_fatal=self.store.attached_at is None)

    def _wrong_kind(self, *, has_branches: bool) -> str:
        """The reason why the file is of another kind, as the second half of a sentence."""
        return OF_ADVANCED if has_branches else ""

    def system(self) -> str:
        return "file"

    def places(self) -> frozenset[Place]:
        return sqlite_file.places(self.path, self.store.sessions_table, self.store.messages_table)

    def fingerprint(self) -> str:
        return sqlite_file.fingerprint(self.path)

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        limit = min(limit, ASKED_AT_ONCE)
        wanted = {"after": json.loads(cursor) if cursor else None, "limit": limit}
        beyond = "AND session_id > CAST(:after AS TEXT)" if cursor else ""
        with self.reading() as connection:
            queries = (statements.SESSIONS, statements.SESSIONS_WITH_ITEMS)
            named = [row for query in queries for row in self._rows(connection, query, wanted, beyond=beyond)]
            # In SQLite's own order, which is that of the bytes.
            ids = sorted({row[0] for row in named}, key=as_bytes)[:limit]
            rows = self._rows_about(connection, statements.FOUND, ids)
            odd_ids = 0 if cursor else int(self._rows(connection, statements.ODD_IDS, {"limit": COUNTED_EXACTLY})[0][0])
        next_cursor = json.dumps(ids[-1]) if len(ids) == limit else ""
        return SessionPage([found_session(*row) for row in rows], next_cursor, odd_ids)

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
        with erasing(self.store, session_id), self.writing() as connection:
            present = self._known_branch_tables(connection)
            count = self._delete_newest(connection, wanted, present)
            left = int(self._rows(connection, statements.COUNT, wanted)[0][0])
            if not left:
                self._delete_rest(connection, wanted, present)
        return Deleted(count, left)

    def _known_branch_tables(self, connection: sqlite3.Connection) -> Collection[BranchTable]:
        """The branch tables that the file has. Raises StoreUnavailable for a layout that is not known."""
        present, faults = layouts.branch_tables_of(connection)
        if faults:
            raise StoreUnavailable(f"{self.path}: {' '.join(faults)}")
        return present

    def _delete_newest(
        self, connection: sqlite3.Connection, wanted: dict[str, Any], present: Collection[BranchTable]
    ) -> int:
        if STRUCTURE in present:
            self._change(connection, statements.DELETE_STRUCTURE_OF_NEWEST, wanted)
        return self._change(connection, statements.DELETE_NEWEST, wanted)

    def _delete_rest(
        self, connection: sqlite3.Connection, wanted: dict[str, Any], present: Collection[BranchTable]
    ) -> None:
        """The session's rows, by statements of their own: the SDK never switches foreign keys on."""
        for table in present:
            if not table.outlives_session:
                self._change(
                    connection, f"DELETE FROM {table.name} WHERE session_id = CAST(:session_id AS TEXT)", wanted
                )
        self._change(connection, statements.DELETE_SESSION, wanted)
        if GENERATIONS in present:
            self._change(connection, statements.BEGIN_ANEW, wanted)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}
        with self.writing() as connection:
            self._expect(connection, wanted, expected)
            self._change(connection, statements.REPLACE, {**wanted, "text": text})

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        count = 0
        with self.writing() as connection:
            present = self._known_branch_tables(connection)
            for stored in items:
                with suppress(UnknownItem):
                    wanted = {"session_id": session_id, "id": whole_number(stored.id)}
                    self._expect(connection, wanted, stored.raw)
                    self._delete_item(connection, wanted, present)
                    count += 1
        return count

    def _delete_item(
        self, connection: sqlite3.Connection, wanted: dict[str, Any], present: Collection[BranchTable]
    ) -> None:
        """Deletes an item from all branches that share it."""
        if STRUCTURE in present:
            self._change(connection, statements.DELETE_STRUCTURE_OF_ITEM, wanted)
        self._change(connection, statements.DELETE_ITEM, wanted)
        if STRUCTURE in present and USAGE in present:
            self._change(connection, statements.DELETE_USAGE_OF_EMPTY_TURNS, wanted)

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


KIND = StoreKind(
    "sqlite",
    "SQLite file",
    "file-database",
    open=SqliteBackend,
    form=SqliteForm,
    has_tables=True,
    layouts=PLAIN_LAYOUTS,
)
