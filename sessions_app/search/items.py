"""Which items of a store say what was searched for. All SQL of the search in message text is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from sessions_app.items import Position
from sessions_app.models import SessionStore
from sessions_app.search.snippets import READ_CHARACTERS, Snippet, is_shown, snippet
from sessions_app.search.wording import Wording
from sessions_app.stores.postgres import fetch, in_plain_words, table_identifier
from sessions_app.stores.sqlalchemy import PLACE

# The regular expressions cost a twentieth of the words, and PostgreSQL tries what is cheap first.
SAYS_SO = sql.SQL("({stored_forms}) AND {words} @@ {query}")
STORED_FORM = sql.SQL("left(message_data::text, %(read)s) ~* {pattern}")
WORDS = sql.SQL("memadmin_item_words(message_data::text)")
QUERY = sql.SQL("websearch_to_tsquery('simple', %(wording)s)")
# An index that is asked for words in order, or without another, has every item with these words read again. Asked for
# the words alone it has not; the rest is then left to the cheap expressions. IS TRUE keeps it away from the index.
INDEX_SAYS_SO = sql.SQL("{words} @@ websearch_to_tsquery('simple', %(words_alone)s)")
SAYS_SO_TOO = sql.SQL("{in_index} AND ({says_so}) IS TRUE")

# Per session: the first item that says so, or else the last one of a full slice; nothing when the session ended.
LOOK = sql.SQL("""
SELECT wanted.session_id, picked.id, picked.place, picked.is_hit, picked.number,
       CASE WHEN picked.id IS NULL THEN (
           SELECT count(*) FROM {messages}
           WHERE session_id = wanted.session_id AND (created_at, id) {beyond} (wanted.instant, wanted.item_id)
       ) END
FROM unnest(%(session_ids)s::text[], %(instants)s::timestamp[], %(item_ids)s::bigint[])
     AS wanted(session_id, instant, item_id)
LEFT JOIN LATERAL (
    SELECT id, {place} AS place, is_hit, number
    FROM (
        -- Judged once per item, and none after the first that says so: saying the order again spares a sort.
        SELECT id, created_at, number, {says_so} AS is_hit
        FROM (
            SELECT id, created_at, message_data,
                   row_number() OVER (ORDER BY created_at {direction}, id {direction}) AS number
            FROM {messages}
            WHERE session_id = wanted.session_id AND (created_at, id) {beyond} (wanted.instant, wanted.item_id)
            ORDER BY created_at {direction}, id {direction}
            LIMIT %(limit)s
        ) AS slice
        ORDER BY created_at {direction}, id {direction}
        OFFSET 0
    ) AS judged
    WHERE is_hit OR number = %(limit)s
    ORDER BY created_at {direction}, id {direction}
    LIMIT 1
) AS picked ON true
""")

SESSIONS_THAT_SAY_SO = sql.SQL("SELECT session_id, max(id) FROM {messages} WHERE {index_says_so} GROUP BY session_id")
# Apart from the LIMIT, for which the planner would rather read the session and the words of each item.
ITEMS_THAT_SAY_SO = sql.SQL("""
WITH named AS MATERIALIZED (
    SELECT id, created_at FROM {messages} WHERE {index_says_so} AND session_id = %(session_id)s
)
SELECT id, {place} FROM named
WHERE (created_at, id) {beyond} (%(instant)s, %(item_id)s)
ORDER BY created_at {direction}, id {direction}
LIMIT 1
""")
NEXT_PLACE = sql.SQL("""
SELECT id, {place} FROM {messages}
WHERE session_id = %(session_id)s AND (created_at, id) {beyond} (%(instant)s, %(item_id)s)
ORDER BY created_at {direction}, id {direction}
LIMIT 1
""")
SET_LIMIT = sql.SQL("SET LOCAL statement_timeout = {}")
ESTIMATE = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {messages} WHERE {in_index}")
# A table that was just made has not been counted.
ITEM_COUNT = sql.SQL("SELECT greatest(reltuples, 1000) FROM pg_class WHERE oid = to_regclass(%(table)s)")
BEGINNINGS = sql.SQL("SELECT id, left(message_data::text, %(read)s) FROM {messages} WHERE id = ANY(%(item_ids)s)")

NEWEST_FIRST, OLDEST_FIRST = "DESC", "ASC"
ENDS = {NEWEST_FIRST: Position(("infinity", 2**63 - 1)), OLDEST_FIRST: Position(("-infinity", -(2**63)))}


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a slice of a session showed: an item that says so, or where to look on, or neither at its end."""

    hit: Position | None
    looked_to: Position | None
    item_count: int


def look(
    store: SessionStore,
    wording: Wording,
    starts: Mapping[str, Position | None],
    *,
    limit: int,
    order: str,
    seconds: float,
) -> dict[str, Look]:
    """Reads up to `limit` items of each session, beyond where it starts, and stops at the first that says so.

    One query. Its cost is that of the items it reads, index or not. Raises StoreTooSlow, and StoreUnavailable.
    """
    places = [start or ENDS[order] for start in starts.values()]
    with cancelled_after(store, seconds):
        rows = _ask(
            store,
            LOOK,
            wording,
            order=order,
            session_ids=list(starts),
            instants=[place.key[0] for place in places],
            item_ids=[place.key[1] for place in places],
            limit=limit,
        )
    looks = {}
    for session_id, item_id, instant, is_hit, number, rest in rows:
        place = None if item_id is None else Position((instant, item_id))
        looks[session_id] = Look(place if is_hit else None, None if is_hit else place, number or rest or 0)
    return looks


def next_place(store: SessionStore, session_id: str, start: Position | None, *, order: str) -> Position | None:
    """Where the item stands that follows in the order, whatever it says. Raises StoreUnavailable."""
    instant, item_id = (start or ENDS[order]).key
    composed = NEXT_PLACE.format(messages=_messages(store), place=PLACE, **_towards(order))
    with in_plain_words(store):
        rows = fetch(composed, {"session_id": session_id, "instant": instant, "item_id": item_id})
    return Position((rows[0][1], rows[0][0])) if rows else None


def sessions_that_say_so(store: SessionStore, wording: Wording, *, seconds: float) -> dict[str, int]:
    """Session ids with the newest item that says so. For rare words and with an index.

    Raises StoreTooSlow, and StoreUnavailable.
    """
    with cancelled_after(store, seconds):
        return dict(_ask(store, SESSIONS_THAT_SAY_SO, wording))


def next_item_that_says_so(
    store: SessionStore, wording: Wording, session_id: str, start: Position | None, *, order: str, seconds: float
) -> Position | None:
    """For rare words and with an index. Raises StoreTooSlow, and StoreUnavailable."""
    instant, item_id = (start or ENDS[order]).key
    with cancelled_after(store, seconds):
        rows = _ask(
            store, ITEMS_THAT_SAY_SO, wording, order=order, session_id=session_id, instant=instant, item_id=item_id
        )
    return Position((rows[0][1], rows[0][0])) if rows else None


@contextmanager
def cancelled_after(store: SessionStore, seconds: float) -> Iterator[None]:
    """A transaction, or part of one, in which a statement that takes longer ends as StoreTooSlow."""
    assert seconds > 0, "PostgreSQL takes no time for all the time"
    with in_plain_words(store), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(SET_LIMIT.format(sql.Literal(f"{seconds * 1000:.0f}ms")))
        yield
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")


def estimate(store: SessionStore, wording: Wording) -> tuple[int, int]:
    """How many items an index would name, of how many, as the planner sees it; only an index brings it the statistics.

    Two queries that read no items. Raises StoreUnavailable.
    """
    [(plans,)] = _ask(store, ESTIMATE, wording)
    [(item_count,)] = _ask(store, ITEM_COUNT, wording, table=table_identifier(store.messages_table).as_string(None))
    return int(plans[0]["Plan"]["Plan Rows"]), int(item_count)


def snippets(store: SessionStore, wording: Wording, item_ids: Sequence[int]) -> dict[int, Snippet]:
    """One query. Raises StoreUnavailable."""
    pattern = wording.visible_pattern()
    rows = _ask(store, BEGINNINGS, wording, item_ids=list(item_ids))
    return {item_id: snippet(raw, pattern) for item_id, raw in rows}


def shown(store: SessionStore, wording: Wording, item_ids: Sequence[int]) -> set[int]:
    """Those of the items that say so to a person who reads them masked. One query. Raises StoreUnavailable."""
    rows = _ask(store, BEGINNINGS, wording, item_ids=list(item_ids))
    return {item_id for item_id, raw in rows if is_shown(raw, wording)}


def _ask(
    store: SessionStore, query: sql.SQL, wording: Wording, *, order: str = NEWEST_FIRST, **parameters: Any
) -> list[tuple[Any, ...]]:
    alternatives = []
    for group in wording.stored_patterns():
        forms = []
        for pattern in group:
            name = f"pattern_{len(parameters)}"
            parameters[name] = pattern
            forms.append(STORED_FORM.format(pattern=sql.Placeholder(name)))
        alternatives.append(sql.SQL(" AND ").join(forms))
    says_so = SAYS_SO.format(stored_forms=sql.SQL(" OR ").join(alternatives), words=WORDS, query=QUERY)
    in_index = INDEX_SAYS_SO.format(words=WORDS)
    composed = query.format(
        messages=_messages(store),
        place=PLACE,
        says_so=says_so,
        in_index=in_index,
        index_says_so=in_index if wording.is_words_alone else SAYS_SO_TOO.format(in_index=in_index, says_so=says_so),
        **_towards(order),
    )
    texts = {"wording": str(wording), "words_alone": wording.words_alone, "read": READ_CHARACTERS}
    with in_plain_words(store):
        return fetch(composed, {**texts, **parameters})


def _messages(store: SessionStore) -> sql.Identifier:
    return table_identifier(store.messages_table.replace("%", "%%"))


def _towards(order: str) -> dict[str, sql.SQL]:
    if order == NEWEST_FIRST:
        return {"direction": sql.SQL("DESC"), "beyond": sql.SQL("<")}
    return {"direction": sql.SQL("ASC"), "beyond": sql.SQL(">")}
