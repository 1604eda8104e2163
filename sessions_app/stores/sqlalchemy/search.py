"""Search inside PostgreSQL, in the SDK's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from psycopg import sql

from sessions_app.items import Position
from sessions_app.models import SessionStore
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.search_protocol import READ_CHARACTERS, Hit, SearchOrder, SliceResult
from sessions_app.stores.sqlalchemy.postgres import (
    INSTANT,
    fetch,
    fetch_within,
    in_plain_words,
    table_identifier,
    with_parameters,
)

if TYPE_CHECKING:
    from sessions_app.search_syntax import ParsedSearch

# The regular expressions cost a twentieth of the words, which are looked at where neither of them knows.
TEXT_MATCHES = sql.SQL("({stored_forms}) AND ({plain_forms} OR {words} @@ {query})")
# Of a long item only the beginning is looked through, which its words know to end.
PLAIN_FORMS = sql.SQL(
    "(({spoken}) AND octet_length(message_data::text) <= %(read)s"
    " AND strpos(left(message_data::text, 100), '\"__enc__\"') = 0)"
)
# left() counts characters, which costs more than looking through them; the size is known at once.
STORED_FORM = sql.SQL(
    "CASE WHEN pg_column_size(message_data) > %(read)s THEN left(message_data::text, %(read)s)"
    " ELSE message_data::text END ~* {pattern}"
)
IS_CUT = sql.SQL(
    "CASE WHEN octet_length(message_data::text) > %(read)s THEN length(message_data::text) > %(read)s ELSE false END"
)
WORDS = sql.SQL("memadmin_item_words(message_data::text)")
QUERY = sql.SQL("websearch_to_tsquery('simple', %(search)s)")
# An index that is asked for words in order, or without another, has every item with these words read again. Asked for
# the words alone it has not; the rest is then left to the cheap expressions. IS TRUE keeps it away from the index.
INDEX_MATCHES = sql.SQL("{words} @@ websearch_to_tsquery('simple', %(unordered_words)s)")
INDEX_AND_TEXT_MATCH = sql.SQL("{in_index} AND ({text_matches}) IS TRUE")

# Per session: the first matching item, or else the last one of a full slice; nothing at the end of the session.
LOOK = sql.SQL("""
SELECT wanted.session_id, picked.id, picked.instant, picked.is_hit, picked.number, picked.cut_count,
       CASE WHEN picked.id IS NULL THEN (
           SELECT ARRAY[count(*), count(*) FILTER (WHERE {is_cut})] FROM {messages}
           WHERE session_id = wanted.session_id AND (created_at, id) {beyond} (wanted.instant, wanted.item_id)
       ) END
FROM unnest(%(session_ids)s::text[], %(instants)s::timestamp[], %(item_ids)s::bigint[])
     AS wanted(session_id, instant, item_id)
LEFT JOIN LATERAL (
    SELECT id, {instant} AS instant, is_hit, number, cut_count
    FROM (
        -- Evaluated once per item, and for none after the first match: repeating the order avoids a sort.
        SELECT id, created_at, number, cut_count, {text_matches} AS is_hit
        FROM (
            SELECT id, created_at, message_data, row_number() OVER so_far AS number,
                   count(*) FILTER (WHERE {is_cut}) OVER so_far AS cut_count
            FROM {messages}
            WHERE session_id = wanted.session_id AND (created_at, id) {beyond} (wanted.instant, wanted.item_id)
            WINDOW so_far AS (ORDER BY created_at {direction}, id {direction} ROWS UNBOUNDED PRECEDING)
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

NEXT_POSITION = sql.SQL("""
SELECT id, {instant} FROM {messages}
WHERE session_id = %(session_id)s AND (created_at, id) {beyond} (%(start_instant)s, %(start_id)s)
ORDER BY created_at {direction}, id {direction}
LIMIT 1
""")
BEGINNINGS = sql.SQL(
    "SELECT session_id, id, left(message_data::text, %(read)s) FROM {messages} WHERE id = ANY(%(item_ids)s)"
)

EMPTY = sql.SQL("")

# Position before the first item of a session, in each order.
ENDS = {
    SearchOrder.NEWEST_FIRST: Position(("infinity", 2**63 - 1)),
    SearchOrder.OLDEST_FIRST: Position(("-infinity", -(2**63))),
}


class SearchBySql:
    """Implements `ItemSearch`. PostgreSQL keeps the time: one item may take as long as a thousand others."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def raise_if_away(self) -> None:
        with in_plain_words(self.store):
            if fetch("SELECT to_regclass(%s)", [table_name(self.store)]) == [(None,)]:
                raise no_table(self.store)

    def look(
        self,
        parsed: ParsedSearch,
        starts: Mapping[str, Position | None],
        *,
        limit: int,
        order: SearchOrder,
        seconds: float,
    ) -> dict[str, SliceResult]:
        """One query. Its cost is that of the items it reads, index or not."""
        places = [start or ENDS[order] for start in starts.values()]
        [rows] = ask(
            self.store,
            LOOK,
            parsed=parsed,
            seconds=seconds,
            order=order,
            session_ids=list(starts),
            instants=[place.key[0] for place in places],
            item_ids=[place.key[1] for place in places],
            limit=limit,
        )
        looks = {}
        for session_id, number, instant, is_hit, item_count, cut_count, rest in rows:
            if number is None:
                looks[session_id] = SliceResult(None, None, *rest)
                continue
            here = Position((instant, number))
            hit = Hit(str(number), here) if is_hit else None
            looks[session_id] = SliceResult(hit, None if hit else here, item_count, cut_count)
        return looks

    def next_position(self, session_id: str, start: Position | None, *, order: SearchOrder) -> Position | None:
        instant, number = (start or ENDS[order]).key
        with in_plain_words(self.store):
            rows = fetch(
                NEXT_POSITION.format(messages=messages_of(self.store), instant=INSTANT, **towards(order)),
                {"session_id": session_id, "start_instant": instant, "start_id": number},
            )
        return Position((rows[0][1], rows[0][0])) if rows else None

    def beginnings(self, items: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """One query."""
        with in_plain_words(self.store):
            rows = fetch(
                BEGINNINGS.format(messages=messages_of(self.store)),
                {"item_ids": [int(item_id) for _, item_id in items], "read": READ_CHARACTERS},
            )
        return {(session_id, str(number)): text for session_id, number, text in rows}


def ask(
    store: SessionStore,
    *queries: sql.SQL,
    parsed: ParsedSearch,
    seconds: float,
    order: SearchOrder = SearchOrder.NEWEST_FIRST,
    wanted: sql.Composable = EMPTY,
    columns: sql.Composable = EMPTY,
    **parameters: Any,
) -> list[list[tuple[Any, ...]]]:
    """All rows of each query, with the search as parameters in the forms that PostgreSQL reads.

    One round trip. Raises StoreTooSlow when a query takes longer than `seconds`.
    """
    alternatives, spoken = [], []
    for group, plain_forms in zip(parsed.stored_patterns(), parsed.plain_patterns(), strict=True):
        alternatives.append(matching(group, "pattern", parameters))
        if plain_forms:
            spoken.append(matching(plain_forms, "spoken", parameters))
    text_matches = TEXT_MATCHES.format(
        stored_forms=sql.SQL(" OR ").join(alternatives),
        plain_forms=PLAIN_FORMS.format(spoken=sql.SQL(" OR ").join(spoken)) if spoken else sql.SQL("false"),
        words=WORDS,
        query=QUERY,
    )
    in_index = INDEX_MATCHES.format(words=WORDS)
    parts = {
        "messages": messages_of(store),
        "instant": INSTANT,
        "text_matches": text_matches,
        "is_cut": IS_CUT,
        "in_index": in_index,
        "index_matches": in_index
        if parsed.has_only_unordered_words
        else INDEX_AND_TEXT_MATCH.format(in_index=in_index, text_matches=text_matches),
        "wanted": wanted,
        "columns": columns,
        **towards(order),
    }
    texts = {"search": str(parsed), "unordered_words": parsed.unordered_words, "read": READ_CHARACTERS}
    with in_plain_words(store):
        return fetch_within(seconds, [query.format(**parts) for query in queries], {**texts, **parameters})


def matching(patterns: Sequence[str], name: str, parameters: dict[str, Any]) -> sql.Composable:
    """Condition that an item matches all of these, as parameters of this name."""
    forms = []
    for pattern in patterns:
        placeholder = f"{name}_{len(parameters)}"
        parameters[placeholder] = pattern
        forms.append(STORED_FORM.format(pattern=sql.Placeholder(placeholder)))
    return sql.SQL(" AND ").join(forms)


def no_table(store: SessionStore) -> StoreUnavailable:
    return StoreUnavailable(f"The table {store.messages_table} is not in this database.")


def messages_of(store: SessionStore) -> sql.Identifier:
    return with_parameters(store.messages_table)


def table_name(store: SessionStore) -> str:
    return table_identifier(store.messages_table).as_string(None)


def towards(order: SearchOrder) -> dict[str, sql.SQL]:
    if order == SearchOrder.NEWEST_FIRST:
        return {"direction": sql.SQL("DESC"), "beyond": sql.SQL("<")}
    return {"direction": sql.SQL("ASC"), "beyond": sql.SQL(">")}
