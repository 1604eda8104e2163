"""Tables of the SDK's SQLAlchemySession in a database of their own: PostgreSQL, MySQL, MariaDB or SQLite by URL.

Items are read in the order in which the agent reads them, `(created_at, id)`, along the SDK's own index on
`(session_id, created_at)`. Tables made by hand are read, too: the SDK cannot create any in MySQL.
"""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from time import perf_counter
from typing import Any

from django import forms
from django.utils.timezone import now
from sqlalchemy import Connection, bindparam, text

from memadmin import times
from memadmin.batching import batched
from memadmin.counting import COUNT_CAP
from memadmin.times import ZONES_SPAN
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import (
    COUNTED_EXACTLY,
    ITEM_HEAD_BYTES,
    ITEM_TAIL_BYTES,
    WHOLE_ITEM_BYTES,
    Capability,
    Deleted,
    FoundSession,
    ItemChanged,
    Place,
    SessionPage,
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.kinds import EnvironmentField, StoreKind
from sessions_app.stores.paged import PagedBackend, erasing, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from
from sessions_app.stores.remote_sql.database import RemoteDatabase
from sessions_app.stores.remote_sql.dialects import Layout
from sessions_app.stores.remote_sql.statements import (
    ABOUT,
    COUNT,
    DELETE_ITEM,
    DELETE_MESSAGES,
    DELETE_SESSION,
    EARLIER,
    ITEM,
    LATER,
    LOCK_ITEM,
    LOCK_SESSION,
    LONE_ITEMS,
    NEWEST,
    NEWEST_IDS,
    OTHERS_ON_ROW,
    PREVIEW_COUNT,
    PREVIEW_HEADS,
    RENAME_SESSION,
    REPLACE_ITEM,
    RIGHTS_TO_CHANGE,
    SESSIONS,
    WINDOW,
)
from sessions_app.stores.sql_text import as_text, schema_and_table
from sessions_app.stores.sqlite import layouts
from sessions_app.stores.sqlite.layouts import OF_ADVANCED

ASKED_AT_ONCE = 100
"""Number of sessions in one statement: each adds a part to it."""

IDS_AT_ONCE = 1_000
"""Number of ids in one statement; databases limit its parameters."""

LARGEST_INTEGER = 2**31 - 1
IDS_USED_UP_AT = 0.8

AHEAD_AT_MOST = timedelta(minutes=5)
"""Tolerated error of a writer's clock."""


class RemoteSqlForm(forms.Form):
    url_env = EnvironmentField(
        label="Environment variable with the address",
        max_length=200,
        help_text="The environment variable with the SQLAlchemy URL of the agents' database, such as SUPPORT_DB_URL.",
    )


class RemoteSqlBackend(PagedBackend):
    """Times without a zone are taken to be in the store's `writer_timezone`."""

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

    @cached_property
    def database(self) -> RemoteDatabase:
        return RemoteDatabase(self.store)

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        began = perf_counter()
        try:
            with self.database.reading() as connection:
                layout = self.database.layout(connection, is_fresh=True)
                sessions = self._about(connection, self.store.sessions_table)
                items = self._about(connection, self.store.messages_table)
                answered_in_ms = (perf_counter() - began) * 1000
                problems = [*self._problems(layout), *self._problem_of_zone(layout)]
                problems += self._problems_of_newest(connection, layout)
                if self.database.dialect.has_branches(connection):
                    # In a store that is attached, the agents' sessions have changed since.
                    is_new = self.store.attached_at is None
                    problems.append(StoreProblem("wrong-kind", f"The file {OF_ADVANCED}", is_fatal=is_new))
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        try:
            self.database.change(self._try_rights)
        except StoreUnavailable as refusal:
            sentence = f"Nothing can be erased or changed in it from here. {refusal}"
            problems.append(StoreProblem("read-only", sentence))
        return StoreHealth(tuple(problems), sessions, items, answered_in_ms=answered_in_ms)

    def _about(self, connection: Connection, table: str) -> int:
        """Number of rows of a table: exact if small, otherwise estimated."""
        count = int(
            self._rows(connection, ABOUT, {"cap": COUNTED_EXACTLY}, table=self.database.dialect.quoted(table))[0][0]
        )
        if count < COUNTED_EXACTLY:
            return count
        schema, name = schema_and_table(table)
        wanted = {"schema": schema, "name": name, "quoted": self.database.dialect.quoted(table)}
        query = self.database.dialect.rows_by_statistics
        rows = self._rows(connection, query, wanted, table=self.database.dialect.quoted(table))
        return max(count, int(rows[0][0] or 0) if rows else 0)

    def _problems(self, layout: Layout) -> Iterator[StoreProblem]:
        messages = self.store.messages_table
        if not layout.ids_are_exact:
            yield StoreProblem(
                "ids-not-exact",
                "This database treats M1 and m1 as one session id: agents that use both read each other's items. The"
                " console shows two sessions. Give the column session_id of both tables a binary collation,"
                " such as utf8mb4_bin.",
            )
        if layout.has_short_texts:
            yield StoreProblem(
                "texts-too-short",
                f"The column message_data of {messages} holds 64 KB at most: agents fail to store longer items, such as"
                " pictures. Change its type to MEDIUMTEXT.",
            )
        if not layout.has_time_index:
            yield StoreProblem(
                "index-missing",
                f"{messages} has no index on (session_id, created_at): long sessions open slowly.",
            )
        if layout.times_may_be_empty:
            yield StoreProblem(
                "times-may-be-empty", f"created_at of {messages} may be empty; items without a time are not shown."
            )

    def _problem_of_zone(self, layout: Layout) -> Iterator[StoreProblem]:
        """Times that discovery found to be earlier than they can be. Those in the future are looked for in the rows."""
        check = self.store.discovery.get("zone_check")
        if layout.times_are_utc or not check or check["zone"] != self.store.writer_timezone:
            return
        if off := check["off_seconds"]:
            yield StoreProblem(
                "wrong-zone",
                f"What was written lately is at least {off / 3600:.1f} hours too early when read as"
                f" {self.store.writer_timezone}. Run attach_store {self.store} --timezone with the agents' zone.",
            )

    def _problems_of_newest(self, connection: Connection, layout: Layout) -> Iterator[StoreProblem]:
        rows = self._rows(connection, "SELECT id, {created_place} FROM {messages} ORDER BY id DESC LIMIT 5")
        for number, _ in rows[:1]:
            if layout.has_short_ids and number > IDS_USED_UP_AT * LARGEST_INTEGER:
                yield StoreProblem(
                    "ids-running-out",
                    f"{self.store.messages_table} has used {number:,} of {LARGEST_INTEGER:,} ids; after the last one"
                    " no agent can write. Change the column id to bigint.",
                )
        times = [self._instant(place, layout) for _, place in rows]
        ahead = [time for time in times if time and AHEAD_AT_MOST < time - now() < ZONES_SPAN]
        # One agent can write any time for its own items.
        if ahead and 2 * len(ahead) >= len(rows):
            yield StoreProblem(
                "wrong-zone",
                f"Times of the newest items are in the future when read as {self.store.writer_timezone}. Run"
                f" attach_store {self.store} --timezone with the agents' zone.",
            )

    def _try_rights(self, connection: Connection) -> None:
        for statement in RIGHTS_TO_CHANGE:
            connection.execute(text(self._compose(statement)))

    def system(self) -> str:
        return self.database.dialect.system

    def places(self) -> frozenset[Place]:
        return self.database.places(*map(schema_and_table, (self.store.sessions_table, self.store.messages_table)))

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        """In the database's own order of ids; each page includes sessions that have items and no row."""
        wanted = {"after": json.loads(cursor) if cursor else None, "limit": limit}
        with self.database.reading() as connection:
            layout = self.database.layout(connection)
            rows = self._rows(connection, SESSIONS, wanted, beyond="WHERE session_id > :after" if cursor else "")
            found = [self._found(layout, as_text(row[0]), *row[1:]) for row in rows]
            last = found[-1].session_id if len(found) == limit else None
            if not (layout.has_parents and layout.ids_are_exact):
                found += self._lone(connection, layout, wanted, last, {session.session_id for session in found})
        return SessionPage(found, "" if last is None else json.dumps(last))

    def _lone(
        self, connection: Connection, layout: Layout, wanted: dict[str, Any], last: str | None, listed: AbstractSet[str]
    ) -> Iterator[FoundSession]:
        """Sessions of one page that have items and no row."""
        bounds = ["session_id > :after"] if wanted["after"] is not None else []
        if last is not None:
            bounds.append("session_id <= :until")
        within = f"WHERE {' AND '.join(bounds)}" if bounds else ""
        rows = self._rows(connection, LONE_ITEMS, {**wanted, "until": last}, beyond=within)
        ids = sorted({as_text(row[0]) for row in rows} - listed)
        for some in batched(ids, ASKED_AT_ONCE):
            for n, place, number in self._rows_about(connection, NEWEST, some):
                yield self._found(layout, some[n], None, place, number)

    def _found(
        self, layout: Layout, session_id: str, created: str | None, updated: str | None, number: int | None
    ) -> FoundSession:
        return FoundSession(
            session_id,
            created_at=self._instant(created, layout),
            last_activity_at=self._instant(updated, layout),
            # Without the id what was written within the same second would not be noticed.
            mark=f"{updated}/{number}"[:64],
        )

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        previews: dict[str, SessionPreview] = {}
        ids = list(dict.fromkeys(session_ids))
        if not ids:
            return previews
        with self.database.reading() as connection:
            for some in batched(ids, ASKED_AT_ONCE):
                heads: dict[int, list[str]] = {}
                for wanted, _, _, head in sorted(
                    self._rows_about(connection, PREVIEW_HEADS, some), key=lambda row: row[:3]
                ):
                    heads.setdefault(wanted, []).append(as_text(head))
                for wanted, is_there, count in self._rows_about(connection, PREVIEW_COUNT, some):
                    known = int(count) if is_there or count else None
                    previews[some[wanted]] = preview_from(heads.get(wanted, []), known)
        return previews

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        with self.database.reading() as connection:
            before = self._side(connection, session_id, "DESC", pivot, earlier) if earlier or pivot else []
            after = self._side(connection, session_id, "ASC", pivot, later) if later or pivot else []
        shown = [*reversed(before[:earlier]), *after[:later]]
        return ItemPage(shown, has_earlier=len(before) > earlier, has_later=len(after) > later)

    def _side(
        self, connection: Connection, session_id: str, direction: str, pivot: Position | None, wanted: int
    ) -> list[StoredItem]:
        """Reads one more item than wanted, to find out whether there are more."""
        parameters: dict[str, Any] = {"session_id": session_id, "limit": wanted + 1, **ENDS}
        condition = ""
        if pivot:
            condition = LATER if direction == "ASC" else EARLIER
            parameters["instant"], parameters["number"] = pivot.key
        query = WINDOW.replace("{condition}", condition)
        layout = self.database.layout(connection)
        return [self._stored(layout, *row) for row in self._rows(connection, query, parameters, direction=direction)]

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def position_from(self, session_id: str, instant: datetime) -> Position:
        with self.database.reading() as connection:
            layout = self.database.layout(connection)
        with suppress(OverflowError):  # on the first and the last day that Python can represent
            instant = instant.astimezone(self._zone(layout))
        # Below all ids: whatever was written at this very instant comes after it.
        return Position((instant.replace(tzinfo=None).isoformat(" "), -(2**63)))

    def item(self, session_id: str, item_id: str) -> StoredItem:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}
        with self.database.reading() as connection:
            rows = self._rows(connection, ITEM, wanted)
            layout = self.database.layout(connection)
        if not rows:
            raise UnknownItem(item_id)
        return self._stored(layout, *rows[0])

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        with self.database.reading() as connection:
            return int(self._rows(connection, COUNT, {"session_id": session_id, "cap": cap + 1})[0][0])

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        wanted = {"session_id": session_id}

        def delete(connection: Connection) -> Deleted:
            layout = self.database.layout(connection)
            self._rows(connection, LOCK_SESSION, wanted)
            # MySQL cannot limit a subquery, nor the others a DELETE.
            ids = [row[0] for row in self._rows(connection, NEWEST_IDS, {**wanted, "limit": at_most})]
            delete = text(self._compose(DELETE_MESSAGES)).bindparams(bindparam("ids", expanding=True))
            count = sum(
                connection.execute(delete, {**wanted, "ids": some}).rowcount for some in batched(ids, IDS_AT_ONCE)
            )
            left = int(self._rows(connection, COUNT, {**wanted, "cap": COUNT_CAP + 1})[0][0])
            if not left:
                self.database.dialect.delete_branches(connection, session_id)
                self._delete_row(connection, layout, wanted)
            return Deleted(count, left)

        with erasing(self.store, session_id):
            return self.database.change(delete)

    def _delete_row(self, connection: Connection, layout: Layout, wanted: Mapping[str, Any]) -> None:
        """Deletes the row of a session without items, or leaves it to another session that shares it."""
        others = [] if layout.ids_are_exact else self._rows(connection, OTHERS_ON_ROW, wanted)
        if others:
            for statement in RENAME_SESSION:
                self._change(connection, statement, {**wanted, "other": others[0][0]})
        else:
            self._change(connection, DELETE_SESSION, wanted)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        wanted = {"session_id": session_id, "id": whole_number(item_id)}

        def replace(connection: Connection) -> None:
            self._rows(connection, LOCK_SESSION, wanted)
            self._expect(connection, wanted, expected)
            self._change(connection, REPLACE_ITEM, {**wanted, "text": text})

        self.database.change(replace)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        def delete(connection: Connection) -> int:
            count = 0
            self._rows(connection, LOCK_SESSION, {"session_id": session_id})
            for stored in items:
                wanted = {"session_id": session_id, "id": whole_number(stored.id)}
                with suppress(UnknownItem):
                    self._expect(connection, wanted, stored.raw)
                    count += self._change(connection, DELETE_ITEM, wanted)
            return count

        return self.database.change(delete)

    def _expect(self, connection: Connection, wanted: Mapping[str, Any], expected: str) -> None:
        """Raises UnknownItem and ItemChanged."""
        rows = self._rows(connection, LOCK_ITEM, wanted)
        if not rows:
            raise UnknownItem(str(wanted["id"]))
        if as_text(rows[0][0]) != expected:
            raise ItemChanged(str(wanted["id"]))

    # --- how it is asked ----------------------------------------------------------------------------------------------

    def _rows(
        self, connection: Connection, query: str, wanted: Mapping[str, Any] | None = None, **parts: object
    ) -> list[Any]:
        return list(connection.execute(text(self._compose(query, **parts)), wanted or {}))

    def _rows_about(self, connection: Connection, query: str, session_ids: Sequence[str]) -> list[Any]:
        """Rows of one query for each session, which is identified by its index in the list."""
        arm = self._compose(query).replace(":session_id", ":session_$n")
        each = [arm.replace("$n", str(n)) for n in range(len(session_ids))]
        composed = " UNION ALL ".join(each)
        wanted = {f"session_{n}": session_id for n, session_id in enumerate(session_ids)}
        limits = {"cap": COUNT_CAP + 1, "items": PREVIEW_ITEMS, "head": PREVIEW_HEAD_CHARACTERS}
        return list(connection.execute(text(composed), {**wanted, **limits})) if each else []

    def _change(self, connection: Connection, statement: str, wanted: Mapping[str, Any]) -> int:
        return connection.execute(text(self._compose(statement)), wanted).rowcount

    def _compose(self, query: str, **parts: object) -> str:
        dialect = self.database.dialect
        words = {
            "sessions": self.database.dialect.quoted(self.store.sessions_table),
            "messages": self.database.dialect.quoted(self.store.messages_table),
            "created_place": dialect.place.format(column="created_at"),
            "updated_place": dialect.place.format(column="updated_at"),
            **{name: getattr(dialect, name) for name in WORDS},
        }
        return query.format(**words, **parts)

    def _stored(
        self, layout: Layout, number: int, place: str, byte_count: int, raw: object, raw_tail: object
    ) -> StoredItem:
        written_at = self._instant(place, layout)
        return StoredItem(
            id=str(number),
            position=Position((place, number)),
            raw=as_text(raw),
            byte_count=byte_count,
            written_at=written_at,
            raw_tail=as_text(raw_tail),
            has_unreadable_time=written_at is None,
        )

    def _instant(self, place: str | None, layout: Layout) -> datetime | None:
        return times.of_text(place, self._zone(layout))

    def _zone(self, layout: Layout) -> zoneinfo.ZoneInfo:
        return zoneinfo.ZoneInfo("UTC" if layout.times_are_utc else self.store.writer_timezone)


WORDS = ("raw", "octets", "tail", "instant", "lock", "exact_id", "of_session")
ENDS = {"whole": WHOLE_ITEM_BYTES, "head": ITEM_HEAD_BYTES, "tail": ITEM_TAIL_BYTES}


KIND = StoreKind(
    "remote_sql",
    "SQLAlchemy tables elsewhere",
    "server",
    open=RemoteSqlBackend,
    form=RemoteSqlForm,
    has_tables=True,
    has_zone=True,
    layouts=layouts.PLAIN_LAYOUTS,
)
