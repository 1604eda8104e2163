"""Changes of many stored items in place, in the agents' lock order: for redaction, key rotation and purges.

Any kind of store is rewritten through its `Backend`, item by item. The main store has a faster way: a chunk at a time,
with one statement and one event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from time import monotonic, sleep
from typing import Any, Protocol

from django.db import OperationalError, connection, transaction
from psycopg import sql
from psycopg.errors import DeadlockDetected, LockNotAvailable, SerializationFailure

from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import Backend, Capability, ItemChanged, UnknownItem
from sessions_app.stores.kinds import backend_for
from sessions_app.stores.sqlalchemy.backend import ERASE_PAUSE, ERASE_TURN, SQLAlchemyBackend, instant_in, stored_item
from sessions_app.stores.sqlalchemy.postgres import INSTANT, fetch, in_plain_words, with_parameters

PATIENCE = timedelta(seconds=5)
"""Time to wait for another holder of a session, in turns of ERASE_TURN: this process has to give way."""

SESSIONS_A_PAGE = 500

ITEMS_A_CHUNK = 100
"""Number of items changed at once. An agent of the session waits for so long."""


class CannotRewrite(Exception):
    """Only agents can change items in this kind of store, or it cannot list its sessions."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Decision about items that were read."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """The new stored text, by the id of the item."""
    gone: AbstractSet[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.texts or self.gone)


class Rewriter(Protocol):
    """All methods raise StoreUnavailable."""

    def session_count(self) -> int | None:
        """Approximate number; None if unknown."""

    def session_page(self, cursor: str) -> tuple[list[str], str]:
        """Sessions with an item, in the store's order, and the cursor behind them; empty at the end.

        An empty cursor begins. A session that begins meanwhile may be included.
        """

    def change_items(
        self,
        session_id: str,
        after: Position | None,
        *,
        decide: Callable[[Sequence[StoredItem]], Changes],
        before_writing: Callable[[Changes], None],
        limit: int = ITEMS_A_CHUNK,
    ) -> Position | None:
        """Passes the next whole turns beyond a position to `decide` and writes the changes. Returns the position to
        continue from, or None.

        One transaction, which locks the session and includes `before_writing`. If another process holds the session,
        both are called again. Raises SessionBusy after PATIENCE, with nothing changed.
        """


def rewriter_for(store: SessionStore, *needed: Capability) -> Rewriter:
    """Rewriter for changes that need these capabilities. Raises CannotRewrite if the store lacks one of them."""
    backend = backend_for(store)
    if isinstance(backend, SQLAlchemyBackend):
        return SqlRewriter(store)
    for capability in needed:
        if capability not in backend.capabilities:
            raise CannotRewrite(f"{store} does not support this change. {capability.lack}")
    return BackendRewriter(store, backend)


class BackendRewriter:
    """Item by item: an item that has changed since it was read is left for the next time."""

    def __init__(self, store: SessionStore, backend: Backend) -> None:
        self.store, self.backend = store, backend

    def session_count(self) -> int | None:
        return self.backend.health().sessions

    def session_page(self, cursor: str) -> tuple[list[str], str]:
        """The same; if the store cannot list its sessions, the registered ones that are not known to be gone."""
        if Capability.ENUMERATE in self.backend.capabilities:
            page = self.backend.enumerate_sessions(cursor, limit=SESSIONS_A_PAGE)
            return [found.session_id for found in page.sessions], page.next_cursor
        there = SessionRecord.objects.on_record().filter(store=self.store, missing_since=None, session_id__gt=cursor)
        found = list(there.order_by("session_id").values_list("session_id", flat=True)[:SESSIONS_A_PAGE])
        return found, found[-1] if found else ""

    def change_items(
        self,
        session_id: str,
        after: Position | None,
        *,
        decide: Callable[[Sequence[StoredItem]], Changes],
        before_writing: Callable[[Changes], None],
        limit: int = ITEMS_A_CHUNK,
    ) -> Position | None:
        items, has_more = self._whole_turns(session_id, after, limit)
        changes = decide(items)
        if changes:
            with transaction.atomic():
                before_writing(changes)
                for item in items:
                    if item.id in changes.texts:
                        with suppress(ItemChanged, UnknownItem):
                            self.backend.replace_item(session_id, item.id, changes.texts[item.id], expected=item.raw)
                if gone := [item for item in items if item.id in changes.gone]:
                    with suppress(ItemChanged):
                        self.backend.delete_items(session_id, gone)
        return items[-1].position if has_more else None

    def _whole_turns(self, session_id: str, after: Position | None, limit: int) -> tuple[list[StoredItem], bool]:
        if Capability.ITEM_IDS not in self.backend.capabilities:
            # Where one goes, those behind it move up: no place stays what it was.
            return list(self.backend.every_item(session_id)), False
        while True:
            page = (
                self.backend.page_after(session_id, after, limit)
                if after
                else self.backend.first_page(session_id, limit)
            )
            items = [self._whole(session_id, item) for item in page.items]
            if not page.has_later:
                return items, False
            last = items[-1]
            whole = items if last.written_at is None else [item for item in items if item.written_at != last.written_at]
            if whole:
                return whole, True
            limit *= 2

    def _whole(self, session_id: str, item: StoredItem) -> StoredItem:
        return item if item.is_whole else self.backend.item(session_id, item.id)


# Along the index of the messages, so that a session without a row of its own is found, too.
SESSION_IDS = sql.SQL("""
WITH RECURSIVE walk AS (
    (SELECT session_id FROM {messages} WHERE session_id > %(after)s ORDER BY session_id LIMIT 1)
    UNION ALL
    SELECT (SELECT m.session_id FROM {messages} AS m WHERE m.session_id > walk.session_id ORDER BY m.session_id LIMIT 1)
    FROM walk WHERE walk.session_id IS NOT NULL
)
SELECT session_id FROM walk WHERE session_id IS NOT NULL LIMIT 500
""")
SESSION_COUNT = sql.SQL("SELECT count(*) FROM {sessions}")
COLUMN_TYPE = """
SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'message_data'
"""
LOCK_SESSION = sql.SQL("SELECT FROM {sessions} WHERE session_id = %(session_id)s FOR UPDATE")
LOCK_ITEMS = sql.SQL("""
SELECT id, {instant}, octet_length(message_data::text), message_data::text, '', {written_at}
FROM {messages}
WHERE session_id = %(session_id)s {beyond}
ORDER BY created_at, id
LIMIT %(limit)s
FOR UPDATE
""")
BEYOND = sql.SQL("AND (created_at, id) > (%(instant)s, %(number)s)")
UPDATE_ITEMS = sql.SQL("""
UPDATE {messages} AS stored SET message_data = changed.raw::{type}
FROM unnest(%(ids)s::bigint[], %(texts)s::text[]) AS changed(id, raw)
WHERE stored.session_id = %(session_id)s AND stored.id = changed.id
""")
DELETE_ITEMS = sql.SQL("DELETE FROM {messages} WHERE session_id = %(session_id)s AND id = ANY(%(ids)s::bigint[])")


class SqlRewriter:
    """Rewriter of the tables in Django's own database."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def session_count(self) -> int:
        with in_plain_words(self.store):
            return int(fetch(self._compose(SESSION_COUNT))[0][0])

    def session_page(self, cursor: str) -> tuple[list[str], str]:
        with in_plain_words(self.store):
            found = [str(row[0]) for row in fetch(self._compose(SESSION_IDS), {"after": cursor})]
        return found, found[-1] if found else ""

    def change_items(
        self,
        session_id: str,
        after: Position | None,
        *,
        decide: Callable[[Sequence[StoredItem]], Changes],
        before_writing: Callable[[Changes], None],
        limit: int = ITEMS_A_CHUNK,
    ) -> Position | None:
        give_up_at = monotonic() + PATIENCE.total_seconds()
        with in_plain_words(self.store):
            while True:
                try:
                    with transaction.atomic():
                        return self._change_now(session_id, after, decide, before_writing, limit)
                except OperationalError as problem:
                    gave_way = isinstance(problem.__cause__, LockNotAvailable | DeadlockDetected | SerializationFailure)
                    if not gave_way or monotonic() > give_up_at:
                        raise
                sleep(ERASE_PAUSE.total_seconds())

    def _change_now(
        self,
        session_id: str,
        after: Position | None,
        decide: Callable[[Sequence[StoredItem]], Changes],
        before_writing: Callable[[Changes], None],
        limit: int,
    ) -> Position | None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [ERASE_TURN])
            self._lock_session(cursor, session_id)
            items, has_more = self._whole_turns(cursor, session_id, after, limit)
            changes = decide(items)
            if changes:
                before_writing(changes)
                if changes.texts:
                    ids = [int(item_id) for item_id in changes.texts]
                    texts = list(changes.texts.values())
                    cursor.execute(self._update_items, {"session_id": session_id, "ids": ids, "texts": texts})
                if changes.gone:
                    ids = [int(item_id) for item_id in changes.gone]
                    cursor.execute(self._compose(DELETE_ITEMS), {"session_id": session_id, "ids": ids})
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
        return items[-1].position if has_more else None

    def _lock_session(self, cursor: Any, session_id: str) -> None:
        """Locks the session first, as each transaction of the SDK does."""
        cursor.execute(self._compose(LOCK_SESSION), {"session_id": session_id})

    def _whole_turns(
        self, cursor: Any, session_id: str, after: Position | None, limit: int
    ) -> tuple[list[StoredItem], bool]:
        """The next items, up to the end of a turn; more than `limit` where one turn has more."""
        while True:
            instant, number = after.key if after else (None, None)
            cursor.execute(
                self._compose(LOCK_ITEMS, beyond=BEYOND if after else sql.SQL("")),
                {
                    "session_id": session_id,
                    "instant": instant,
                    "number": number,
                    "limit": limit + 1,
                    "zone": self.store.writer_timezone,
                },
            )
            items = [stored_item(*row) for row in cursor.fetchall()]
            if len(items) <= limit:
                return items, False
            whole = [item for item in items if item.position.key[0] != items[-1].position.key[0]]
            if whole:
                return whole, True
            limit *= 2

    @cached_property
    def _update_items(self) -> sql.Composed:
        table = sql.SQL(".").join(sql.Identifier(part) for part in self.store.messages_table.split("."))
        ((column_type,),) = fetch(COLUMN_TYPE, [table.as_string(None)])
        return self._compose(UPDATE_ITEMS, type=sql.SQL(column_type))

    def _compose(self, query: sql.SQL, **parts: sql.Composable) -> sql.Composed:
        return query.format(
            sessions=with_parameters(self.store.sessions_table),
            messages=with_parameters(self.store.messages_table),
            instant=INSTANT,
            written_at=instant_in("created_at"),
            **parts,
        )
