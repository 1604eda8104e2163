"""The two tables of the SDK's SQLAlchemySession, in the database that Django is connected to.

Items are read in the order in which the agent reads them, `(created_at, id)`, along the SDK's own index on
`(session_id, created_at)`: a page costs the same at the start, in the middle and at the end of any session.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from time import monotonic, sleep
from typing import Any, LiteralString

from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from psycopg import sql
from psycopg.errors import LockNotAvailable

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import ITEM_HEAD_BYTES, ITEM_TAIL_BYTES, WHOLE_ITEM_BYTES, Preview, UnknownItem
from sessions_app.stores.postgres import INSTANT, fetch, in_plain_words, with_parameters
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from
from sessions_app.stores.search_by_sql import SearchBySql
from sessions_app.stores.sql_word_index import SqlWordIndex

BATCH_ITEMS = 100
"""How many items `every_item` reads at once; with WHOLE_ITEM_BYTES it bounds the memory of a download."""

ERASE_TURN = "300ms"
"""How long an erasure stands in line for one lock, before it lets go of all it has and begins again.

Well below PostgreSQL's deadlock_timeout, 1 s unless somebody changed it: where an agent and we wait for each other, it
must be us who gives way, before PostgreSQL finds out and ends the write of either.
"""

ERASE_PAUSE = timedelta(milliseconds=20)

ERASE_PATIENCE = timedelta(seconds=5)
"""How long an erasure tries. Longer than any ordinary write takes."""

EMPTY = sql.SQL("")

# One expression for columns with and without a time zone. An instant that Python cannot hold is left out.
WRITTEN_AT = sql.SQL("""
    CASE WHEN NOT created_at BETWEEN '0002-01-01' AND '9998-12-31' THEN NULL
         WHEN pg_typeof(created_at) = 'timestamptz'::regtype THEN created_at::timestamptz
         ELSE created_at::timestamp AT TIME ZONE %(zone)s END
""")

SIDE = sql.SQL("""
(SELECT id, created_at, message_data::text AS raw, {is_later} AS is_later
 FROM {messages}
 WHERE session_id = %(session_id)s {condition}
 ORDER BY created_at {direction}, id {direction}
 LIMIT {limit})
""")

# The rows are picked before their text is looked at; of a long item only both ends leave the database.
WINDOW = sql.SQL("""
SELECT id, {instant}, octet_length(raw),
       CASE WHEN octet_length(raw) <= %(whole)s THEN raw ELSE left(raw, %(head)s) END,
       CASE WHEN octet_length(raw) <= %(whole)s THEN '' ELSE right(raw, %(tail)s) END,
       {written_at}, is_later
FROM ({sides}) AS picked
ORDER BY created_at, id
""")

ITEM = sql.SQL("""
SELECT id, {instant}, octet_length(raw), raw, '', {written_at}
FROM (
    SELECT id, created_at, message_data::text AS raw FROM {messages}
    WHERE session_id = %(session_id)s AND id = %(id)s
    OFFSET 0
) AS picked
""")

# Both subqueries stop at their limit, so a session of a million items costs what one of a thousand does.
PREVIEWS = sql.SQL("""
SELECT wanted.session_id,
       EXISTS (SELECT FROM {sessions} AS s WHERE s.session_id = wanted.session_id),
       (SELECT count(*) FROM (
           SELECT FROM {messages} AS m WHERE m.session_id = wanted.session_id LIMIT %(cap)s
       ) AS few),
       ARRAY(
           SELECT CASE WHEN pg_typeof(m.message_data) = 'jsonb'::regtype AND pg_column_size(m.message_data) > %(whole)s
                       THEN '' ELSE left(m.message_data::text, %(head)s) END
           FROM {messages} AS m
           WHERE m.session_id = wanted.session_id
           ORDER BY m.created_at, m.id
           LIMIT %(items)s
       )
FROM unnest(%(session_ids)s::text[]) AS wanted(session_id)
""")

COUNT = sql.SQL("SELECT count(*) FROM (SELECT FROM {messages} WHERE session_id = %(session_id)s LIMIT %(cap)s) AS few")
POSITION_OF_ITEM = sql.SQL("SELECT {instant}, id FROM {messages} WHERE session_id = %(session_id)s AND id = %(id)s")
HAS_ZONE = sql.SQL("SELECT pg_typeof(created_at) = 'timestamptz'::regtype FROM {messages} LIMIT 1")

LOCK_SESSION = sql.SQL("SELECT FROM {sessions} WHERE session_id = %(session_id)s FOR UPDATE")
DELETE_MESSAGES = sql.SQL("DELETE FROM {messages} WHERE session_id = %(session_id)s")
DELETE_SESSION = sql.SQL("DELETE FROM {sessions} WHERE session_id = %(session_id)s")


class SQLAlchemyBackend:
    """Implements `Backend`. Times without a zone are taken to be in the store's `writer_timezone`."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, Preview]:
        rows = self._ask(
            PREVIEWS,
            session_ids=list(session_ids),
            cap=COUNT_CAP + 1,
            items=PREVIEW_ITEMS,
            head=PREVIEW_HEAD_CHARACTERS,
            whole=WHOLE_ITEM_BYTES,
        )
        return {
            session_id: preview_from(heads, item_count if is_there or item_count else None)
            for session_id, is_there, item_count, heads in rows
        }

    def first_page(self, session_id: str, limit: int) -> ItemPage:
        return self._window(session_id, None, earlier=0, later=limit)

    def last_page(self, session_id: str, limit: int) -> ItemPage:
        return self._window(session_id, None, earlier=limit, later=0)

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage:
        instant, number = position.key
        return self.page_at(session_id, Position((instant, number + 1)), limit)

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._window(session_id, position, earlier=limit, later=0)

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._window(session_id, position, earlier=0, later=limit)

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        rows = self._ask(POSITION_OF_ITEM, session_id=session_id, id=row_id(item_id))
        if not rows:
            raise UnknownItem(item_id)
        place, number = rows[0]
        return self._window(session_id, Position((place, number)), earlier=limit // 2, later=limit - limit // 2)

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        zone = UTC if self._times_have_a_zone else zoneinfo.ZoneInfo(self.store.writer_timezone)
        with suppress(OverflowError):  # on the first and the last day that Python knows
            instant = instant.astimezone(zone)
        # Below all ids: whatever was written at this very instant comes after it.
        place = Position((instant.replace(tzinfo=None).isoformat(" "), -(2**63)))
        page = self.page_at(session_id, place, limit)
        return page if page.items else self.last_page(session_id, limit)

    def item(self, session_id: str, item_id: str) -> StoredItem:
        rows = self._ask(ITEM, session_id=session_id, id=row_id(item_id))
        if not rows:
            raise UnknownItem(item_id)
        return stored_item(*rows[0])

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        page = self.first_page(session_id, BATCH_ITEMS)
        while page.items:
            for stored in page.items:
                try:
                    yield stored if stored.is_whole else self.item(session_id, stored.id)
                except UnknownItem:
                    continue  # The agent took it back between the two queries.
            if not page.has_later:
                return
            page = self.page_after(session_id, page.items[-1].position, BATCH_ITEMS)

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        return int(self._ask(COUNT, session_id=session_id, cap=cap + 1)[0][0])

    def erase_session(self, session_id: str) -> int:
        """Raises SessionBusy when agents hold the session for longer than ERASE_PATIENCE."""
        give_up_at = monotonic() + ERASE_PATIENCE.total_seconds()
        with in_plain_words(self.store):
            while True:
                try:
                    with transaction.atomic():
                        return self._erase_now(session_id)
                except OperationalError as problem:
                    if not isinstance(problem.__cause__, LockNotAvailable) or monotonic() > give_up_at:
                        raise
                # Who waited for us has to be quicker than our next try.
                sleep(ERASE_PAUSE.total_seconds())

    def _erase_now(self, session_id: str) -> int:
        wanted = {"session_id": session_id}
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [ERASE_TURN])
            # A writer holds the session row, then the registry row; so do we. Where the session is born meanwhile, or
            # somebody stands between us in line, we still come to wait for each other: then ERASE_TURN ends it.
            cursor.execute(self._compose(LOCK_SESSION), wanted)
            record = SessionRecord(store=self.store, session_id=session_id)
            SessionRecord.objects.bulk_create([record], ignore_conflicts=True)
            SessionRecord.objects.filter(store=self.store, session_id=session_id, erased_at=None).update(
                erased_at=Now()
            )
            # From here on no writer passes the fence. One that had passed it has committed, perhaps a new session row.
            cursor.execute(self._compose(LOCK_SESSION), wanted)
            cursor.execute(self._compose(DELETE_MESSAGES), wanted)
            item_count = int(cursor.rowcount)
            cursor.execute(self._compose(DELETE_SESSION), wanted)
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
        return item_count

    @property
    def search(self) -> SearchBySql:
        return SearchBySql(self.store)

    @property
    def word_index(self) -> SqlWordIndex:
        return SqlWordIndex(self.store)

    def _window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        """Up to `earlier` items before the pivot and `later` items from it on, and whether there are more.

        Without a pivot the earlier side counts from the end, the later side from the start.
        """
        instant, number = pivot.key if pivot else (None, None)
        sides = []
        if later or pivot:
            sides.append(self._side("ASC", "AND (created_at, id) >= (%(instant)s, %(number)s)" if pivot else "", later))
        if earlier or pivot:
            sides.append(
                self._side("DESC", "AND (created_at, id) < (%(instant)s, %(number)s)" if pivot else "", earlier)
            )
        rows = self._ask(
            WINDOW,
            sides=sql.SQL("UNION ALL").join(sides),
            session_id=session_id,
            instant=instant,
            number=number,
            whole=WHOLE_ITEM_BYTES,
            head=ITEM_HEAD_BYTES,
            tail=ITEM_TAIL_BYTES,
        )
        before = [row for row in rows if not row[-1]]
        after = [row for row in rows if row[-1]]
        shown = before[max(len(before) - earlier, 0) :] + after[:later]
        return ItemPage(
            items=[stored_item(*row[:-1]) for row in shown],
            has_earlier=len(before) > earlier,
            has_later=len(after) > later,
        )

    def _side(self, direction: LiteralString, condition: LiteralString, wanted: int) -> sql.Composed:
        """One more row than wanted is read: it tells that there are more."""
        return self._compose(
            SIDE,
            is_later=sql.Literal(direction == "ASC"),
            condition=sql.SQL(condition),
            direction=sql.SQL(direction),
            limit=sql.Literal(wanted + 1),
        )

    @cached_property
    def _times_have_a_zone(self) -> bool:
        rows = self._ask(HAS_ZONE)
        return bool(rows and rows[0][0])

    def _ask(self, query: sql.SQL, *, sides: sql.Composable = EMPTY, **parameters: Any) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises StoreUnavailable."""
        with in_plain_words(self.store):
            return fetch(self._compose(query, sides=sides), {"zone": self.store.writer_timezone, **parameters})

    def _compose(self, query: sql.SQL, **parts: sql.Composable) -> sql.Composed:
        return query.format(
            sessions=with_parameters(self.store.sessions_table),
            messages=with_parameters(self.store.messages_table),
            instant=INSTANT,
            written_at=WRITTEN_AT,
            **parts,
        )


def row_id(item_id: str) -> int:
    """Raises UnknownItem for what cannot be the id of a row."""
    try:
        number = int(item_id)
    except ValueError:
        raise UnknownItem(item_id) from None
    if str(number) != item_id or not -(2**63) <= number < 2**63:
        raise UnknownItem(item_id)
    return number


def stored_item(
    number: int, place: str, byte_count: int, raw: str, raw_tail: str, written_at: datetime | None
) -> StoredItem:
    return StoredItem(
        id=str(number),
        position=Position((place, number)),
        raw=raw,
        byte_count=byte_count,
        written_at=written_at,
        raw_tail=raw_tail,
    )
