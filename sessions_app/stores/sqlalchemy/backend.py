"""The two tables of the SDK's SQLAlchemySession, in the database that Django is connected to.

Items are read in the order in which the agent reads them, `(created_at, id)`, along the SDK's own index on
`(session_id, created_at)`: a page costs the same at the start, in the middle and at the end of any session.
"""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import OperationalError, connection, transaction
from django.db.models import Func, IntegerField
from django.db.models.functions import Collate
from psycopg import sql
from psycopg.errors import LockNotAvailable

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import (
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
from sessions_app.stores.kinds import StoreKind
from sessions_app.stores.paged import PagedBackend, mark_erased, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from
from sessions_app.stores.sqlalchemy.postgres import (
    INSTANT,
    LIMIT_WAITING,
    PLACES,
    fetch,
    giving_up_on_locks,
    in_plain_words,
    places_in,
    table_identifier,
    with_parameters,
)
from sessions_app.stores.sqlalchemy.search import SearchBySql
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex

if TYPE_CHECKING:
    from django.db.models import Q, QuerySet

    from sessions_app.models import SessionRecord

T = TypeVar("T")

ERASE_TURN = "300ms"
"""Time that an erasure waits for one lock, before it releases all its locks and begins again.

Well below PostgreSQL's deadlock_timeout, 1 s by default: if an agent and the erasure wait for each other, the erasure
must give way before PostgreSQL detects the deadlock and aborts one of them.
"""

ERASE_PAUSE = timedelta(milliseconds=20)

ERASE_PATIENCE = timedelta(seconds=5)
"""Time that an erasure retries. Longer than any ordinary write takes."""

EMPTY = sql.SQL("")


def instant_in(column: LiteralString) -> sql.SQL:
    """Expression for columns with and without a time zone; NULL for an instant that Python cannot represent."""
    return sql.SQL(
        f"""
    CASE WHEN NOT {column} BETWEEN '0002-01-01' AND '9998-12-31' THEN NULL
         WHEN pg_typeof({column}) = 'timestamptz'::regtype THEN {column}::timestamptz
         ELSE {column}::timestamp AT TIME ZONE %(zone)s END
"""
    )


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

# Both subqueries stop at their limit, so a session of a million items costs what one of a thousand does. Bytes are
# known at once; left() counts characters, and most items are short. Each head is a column: an array of them is written
# with a backslash before each quotation mark, which takes PostgreSQL and its reader longer than all the rest.
#
# Beginning with the table, not with the ids: that is what Citus can do on each server by itself, where both tables are
# distributed by session id. Items without a session are none: their foreign key is a condition of the registry.
PREVIEWS = sql.SQL("""
SELECT s.session_id, counted.items, {heads}
FROM {sessions} AS s
CROSS JOIN LATERAL (
    SELECT count(*) AS items
    FROM (SELECT FROM {messages} AS m WHERE m.session_id = s.session_id LIMIT %(cap)s) AS few
) AS counted
CROSS JOIN LATERAL (
    SELECT ARRAY(
        SELECT CASE WHEN octet_length(raw) <= %(head)s THEN raw ELSE left(raw, %(head)s) END
        FROM (
            SELECT CASE WHEN pg_typeof(m.message_data) = 'jsonb'::regtype
                             AND pg_column_size(m.message_data) > %(whole)s
                        THEN '' ELSE m.message_data::text END AS raw
            FROM {messages} AS m
            WHERE m.session_id = s.session_id
            ORDER BY m.created_at, m.id
            LIMIT %(items)s
        ) AS first_items
    ) AS heads
    OFFSET 0
) AS beginning
WHERE s.session_id = ANY(%(session_ids)s)
""")
HEADS = sql.SQL(", ").join(sql.SQL("heads[{}]").format(place) for place in range(1, PREVIEW_ITEMS + 1))

COUNT = sql.SQL("SELECT count(*) FROM (SELECT FROM {messages} WHERE session_id = %(session_id)s LIMIT %(cap)s) AS few")
COUNT_EACH = sql.SQL(
    "SELECT session_id, count(*) FROM {messages} WHERE session_id = ANY(%(session_ids)s) GROUP BY session_id"
)
POSITION_OF_ITEM = sql.SQL("SELECT {instant}, id FROM {messages} WHERE session_id = %(session_id)s AND id = %(id)s")
HAS_ZONE = sql.SQL("SELECT pg_typeof(created_at) = 'timestamptz'::regtype FROM {messages} LIMIT 1")

ENUMERATE = sql.SQL("""
SELECT session_id, {written_at}, {updated_at}, left(updated_at::text, 64)
FROM {sessions}
WHERE session_id > %(after)s OR %(after)s IS NULL
ORDER BY session_id
LIMIT %(limit)s
""")

# One session after the other is counted, until one more would be too much.
FIRST_SESSIONS = sql.SQL("""
WITH RECURSIVE counted(place, asked, total) AS (
    SELECT 0, NULL::text, 0::bigint
    UNION ALL
    SELECT place + 1, session_ids[place + 1], total + (
        SELECT count(*)
        FROM (SELECT FROM {messages} WHERE session_id = session_ids[place + 1] LIMIT %(at_most)s + 1) AS few
    )
    FROM counted, (SELECT %(session_ids)s::text[] AS session_ids) AS given
    WHERE total <= %(at_most)s AND place < cardinality(session_ids)
)
SELECT asked FROM counted WHERE place > 0 AND total <= %(at_most)s ORDER BY place
""")
# Messages of several statements, for a round trip takes as long as a short one. Each sees what was committed before it.
LOCK_SESSIONS = sql.SQL("""
SELECT set_config('lock_timeout', %(turn)s, true);
SELECT FROM {sessions} WHERE session_id = ANY(%(session_ids)s) ORDER BY session_id FOR UPDATE
""")
DELETE_SESSIONS = sql.SQL("""
SELECT FROM {sessions} WHERE session_id = ANY(%(session_ids)s) ORDER BY session_id FOR UPDATE;
WITH gone AS (DELETE FROM {messages} WHERE session_id = ANY(%(session_ids)s) RETURNING session_id)
SELECT session_id, count(*) FROM gone GROUP BY session_id;
DELETE FROM {sessions} WHERE session_id = ANY(%(session_ids)s);
SET LOCAL lock_timeout TO DEFAULT
""")
LOCK_SESSION = sql.SQL("SELECT FROM {sessions} WHERE session_id = %(session_id)s FOR UPDATE")
# By the primary key: no text is read, and ctid would not be unique in a partitioned table.
DELETE_NEWEST = sql.SQL("""
DELETE FROM {messages} WHERE session_id = %(session_id)s AND id = ANY(ARRAY(
    SELECT id FROM {messages} WHERE session_id = %(session_id)s ORDER BY created_at DESC, id DESC LIMIT %(at_most)s
))
""")
LOCK_ITEM = sql.SQL(
    "SELECT message_data::text FROM {messages} WHERE session_id = %(session_id)s AND id = %(id)s FOR UPDATE"
)
REPLACE_ITEM = sql.SQL(
    "UPDATE {messages} SET message_data = %(text)s WHERE session_id = %(session_id)s AND id = %(id)s"
)
DELETE_ITEM = sql.SQL("DELETE FROM {messages} WHERE session_id = %(session_id)s AND id = %(id)s")
DELETE_SESSION = sql.SQL("DELETE FROM {sessions} WHERE session_id = %(session_id)s")


class ItemsOfSessions(Func):
    """Aggregate of registry rows: number of all items of their sessions.

    Their ids are an array, which PostgreSQL looks up in the order of the index, so it reads each page once. A join
    would hash the id of every item of the table, due or not.
    """

    template = "(SELECT count(*) FROM %(messages)s AS agent_items WHERE agent_items.session_id = ANY(%(expressions)s))"
    output_field = IntegerField()

    def __init__(self, messages: str, condition: Q) -> None:
        # With a collation of its own: the agents' column may have another one than the registry's.
        super().__init__(ArrayAgg(Collate("session_id", "default"), filter=condition), messages=messages)


class SQLAlchemyBackend(PagedBackend):
    """Times without a zone are taken to be in the store's `writer_timezone`."""

    capabilities = frozenset(Capability) - {Capability.SELF_EXPIRY, Capability.BRANCHES, Capability.USAGE}

    # Within one transaction each further step passes over the rows that the steps before it deleted.
    erased_at_once = 100_000

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        rows = self._ask(
            PREVIEWS,
            session_ids=list(session_ids),
            cap=COUNT_CAP + 1,
            items=PREVIEW_ITEMS,
            head=PREVIEW_HEAD_CHARACTERS,
            whole=WHOLE_ITEM_BYTES,
        )
        return {session_id: preview_from([], None) for session_id in session_ids} | {
            session_id: preview_from([head for head in heads if head is not None], item_count)
            for session_id, item_count, *heads in rows
        }

    def position_of(self, session_id: str, item_id: str) -> Position:
        rows = self._ask(POSITION_OF_ITEM, session_id=session_id, id=whole_number(item_id))
        if not rows:
            raise UnknownItem(item_id)
        place, number = rows[0]
        return Position((place, number))

    def position_from(self, session_id: str, instant: datetime) -> Position:
        zone = UTC if self._times_have_a_zone else zoneinfo.ZoneInfo(self.store.writer_timezone)
        with suppress(OverflowError):  # on the first and the last day that Python can represent
            instant = instant.astimezone(zone)
        # Below all ids: whatever was written at this very instant comes after it.
        return Position((instant.replace(tzinfo=None).isoformat(" "), -(2**63)))

    def item(self, session_id: str, item_id: str) -> StoredItem:
        rows = self._ask(ITEM, session_id=session_id, id=whole_number(item_id))
        if not rows:
            raise UnknownItem(item_id)
        return stored_item(*rows[0])

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        return int(self._ask(COUNT, session_id=session_id, cap=cap + 1)[0][0])

    def count_each(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(session_ids, 0) | dict(self._ask(COUNT_EACH, session_ids=list(session_ids)))

    def with_items(self, records: QuerySet[SessionRecord], condition: Q, **aggregates: Any) -> dict[str, Any]:
        """One query, which reads the registry once and of the index of the items the part that is counted."""
        items = ItemsOfSessions(with_parameters(self.store.messages_table).as_string(None), condition)
        with in_plain_words(self.store), giving_up_on_locks(), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(LIMIT_WAITING)
            return records.aggregate(items=items, **aggregates)

    def health(self, *, thorough: bool = False) -> StoreHealth:
        """Health of the connection; `registry.health` adds tables, fence and zone."""
        try:
            self.count("")
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth()

    def system(self) -> str:
        return "postgresql"

    def places(self) -> frozenset[Place]:
        names = [
            table_identifier(name).as_string(None) for name in (self.store.sessions_table, self.store.messages_table)
        ]
        with in_plain_words(self.store):
            return places_in(fetch(PLACES.format(wanted="(%s), (%s)"), names))

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        after = json.loads(cursor) if cursor else None
        rows = self._ask(ENUMERATE, after=after, limit=limit)
        return SessionPage(
            [FoundSession(*row) for row in rows], next_cursor=json.dumps(rows[-1][0]) if len(rows) == limit else ""
        )

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """Raises SessionBusy when agents hold the session for longer than ERASE_PATIENCE."""
        return self._in_turn(lambda: self._delete_now(session_id, at_most))

    def delete_whole(
        self, session_ids: Sequence[str], *, at_most: int, close: Callable[[Sequence[str]], object] | None = None
    ) -> Mapping[str, int]:
        with in_plain_words(self.store):
            try:
                with transaction.atomic():
                    return self._delete_whole_now(session_ids, at_most, close or partial(mark_erased, self.store))
            except OperationalError as problem:
                if not isinstance(problem.__cause__, LockNotAvailable):
                    raise
        return {}

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        number = whole_number(item_id)

        def replace() -> None:
            with connection.cursor() as cursor:
                self._lock_item(cursor, session_id, number, expected)
                cursor.execute(self._compose(REPLACE_ITEM), {"id": number, "session_id": session_id, "text": text})
                cursor.execute("SET LOCAL lock_timeout TO DEFAULT")

        self._in_turn(replace)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        def delete() -> int:
            gone = 0
            with connection.cursor() as cursor:
                for stored in items:
                    with suppress(UnknownItem):
                        self._lock_item(cursor, session_id, whole_number(stored.id), stored.raw)
                        cursor.execute(
                            self._compose(DELETE_ITEM), {"id": whole_number(stored.id), "session_id": session_id}
                        )
                        gone += 1
                cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
            return gone

        return self._in_turn(delete)

    def _lock_item(self, cursor: Any, session_id: str, number: int, expected: str) -> None:
        """Locks the session first, as the SDK does: the other order deadlocks with its pop_item."""
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [ERASE_TURN])
        cursor.execute(self._compose(LOCK_SESSION), {"session_id": session_id})
        cursor.execute(self._compose(LOCK_ITEM), {"id": number, "session_id": session_id})
        row = cursor.fetchone()
        if row is None:
            raise UnknownItem(str(number))
        if row[0] != expected:
            raise ItemChanged(str(number))

    def _in_turn(self, work: Callable[[], T]) -> T:
        """Runs the work in a transaction that gives way to agents and begins again; returns its result.

        Raises SessionBusy when agents hold the session for longer than ERASE_PATIENCE.
        """
        give_up_at = monotonic() + ERASE_PATIENCE.total_seconds()
        with in_plain_words(self.store):
            while True:
                try:
                    with transaction.atomic():
                        return work()
                except OperationalError as problem:
                    if not isinstance(problem.__cause__, LockNotAvailable) or monotonic() > give_up_at:
                        raise
                # A process that waited for this lock has to come before the next attempt.
                sleep(ERASE_PAUSE.total_seconds())

    def _delete_now(self, session_id: str, at_most: int) -> Deleted:
        wanted: dict[str, Any] = {"session_id": session_id, "at_most": at_most, "cap": COUNT_CAP + 1}
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [ERASE_TURN])
            # A writer locks the session row, then the registry row; so does this. If the session is created meanwhile,
            # or a third process waits between, a deadlock is still possible: then ERASE_TURN ends it.
            cursor.execute(self._compose(LOCK_SESSION), wanted)
            mark_erased(self.store, [session_id])
            # From here on no writer passes the fence. An earlier one has committed, perhaps with a new session row.
            cursor.execute(self._compose(LOCK_SESSION), wanted)
            cursor.execute(self._compose(DELETE_NEWEST), wanted)
            count = int(cursor.rowcount)
            cursor.execute(self._compose(COUNT), wanted)
            (left,) = cursor.fetchone()
            if not left:
                cursor.execute(self._compose(DELETE_SESSION), wanted)
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
        return Deleted(count, left)

    def _delete_whole_now(
        self, session_ids: Sequence[str], at_most: int, close: Callable[[Sequence[str]], object]
    ) -> dict[str, int]:
        """In the order of `_delete_now`."""
        with connection.cursor() as cursor:
            cursor.execute(self._compose(FIRST_SESSIONS), {"session_ids": list(session_ids), "at_most": at_most})
            few = [session_id for (session_id,) in cursor.fetchall()]
            if not few:
                return {}
            wanted: dict[str, Any] = {"session_ids": few, "turn": ERASE_TURN}
            cursor.execute(self._compose(LOCK_SESSIONS), wanted)
            close(few)
            cursor.execute(self._compose(DELETE_SESSIONS), wanted)
            cursor.nextset()
            gone = dict(cursor.fetchall())
        return {session_id: int(gone.get(session_id, 0)) for session_id in few}

    @property
    def search(self) -> SearchBySql:
        return SearchBySql(self.store)

    @property
    def word_index(self) -> SqlWordIndex:
        return SqlWordIndex(self.store)

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
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
        """Reads one more row than wanted, to find out whether there are more."""
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
            heads=HEADS,
            written_at=instant_in("created_at"),
            updated_at=instant_in("updated_at"),
            **parts,
        )


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
        has_unreadable_time=written_at is None,
    )


KIND = StoreKind(
    "sqlalchemy",
    "SQLAlchemy tables",
    "database",
    open=SQLAlchemyBackend,
    has_tables=True,
    has_zone=True,
    layouts=("openai-agents 0.2 and later",),
)
