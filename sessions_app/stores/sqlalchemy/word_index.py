"""Full-text index on the SDK's table of items in PostgreSQL: build without blocking agents, repair, and queries.

It is on the agents' own table, so it takes disk there and a share of each of their writes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection
from psycopg import sql

from sessions_app.items import Position
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.stores.search_protocol import Frequency, Hit, IndexNotPossible, IndexState, SearchIndex, SearchOrder
from sessions_app.stores.sqlalchemy.postgres import fetch, in_plain_words, table_identifier
from sessions_app.stores.sqlalchemy.search import ENDS, ask, no_table, table_name

if TYPE_CHECKING:
    from sessions_app.search_syntax import ParsedSearch

STATISTICS_TARGET = 500
"""Statistics target: the planner keeps ten times as many words with their frequency, to distinguish rare words."""

PENDING_LIST_KB = 2_048
"""Size of the unsorted list of new items. The INSERT that fills it sorts it into the index: 0.1 s, once in some 400
items. At PostgreSQL's own 4 MB it is nearly twice that; at 512 KB all writes together cost a third more."""

STATE = """
SELECT messages.oid IS NOT NULL, relkind <> 'p', greatest(reltuples, 0), index.*
FROM (SELECT to_regclass(%s)) AS messages(oid)
LEFT JOIN pg_class AS of_items ON of_items.oid = messages.oid
LEFT JOIN LATERAL (
    SELECT n.nspname, c.relname, i.indisvalid AND i.indisready, pg_relation_size(c.oid), p.pid IS NOT NULL,
           100 * p.blocks_done / nullif(p.blocks_total, 0)
    FROM pg_index AS i
    JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_stat_progress_create_index AS p ON p.index_relid = i.indexrelid AND p.datid = (
        SELECT oid FROM pg_database WHERE datname = current_database())
    WHERE i.indrelid = messages.oid AND i.indpred IS NULL
      AND pg_get_expr(i.indexprs, i.indrelid) LIKE '%%memadmin_item_words(%%'
    ORDER BY 3 DESC, 5 DESC
    LIMIT 1
) AS index ON true
"""

TABLE = "SELECT pg_has_role(relowner, 'USAGE'), relkind = 'p' FROM pg_class WHERE oid = to_regclass(%s)"

CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON {messages} USING gin (memadmin_item_words(message_data::text))"
    " WITH (gin_pending_list_limit = {pending})"
)
KEEP_STATISTICS = sql.SQL("ALTER INDEX {index} ALTER COLUMN 1 SET STATISTICS {target}")
ANALYZE = sql.SQL("ANALYZE {messages}")
DROP = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {index}")

# Both are in brackets: a statement that begins with WITH may write, and the log would ask first who does.

# Sessions are gone through from the newest on, for as long as looking up each that the index names would take: of some
# thousand names the newest fill a page soon. Where they do not, each is looked up. IS TRUE makes it a look into the
# names for each session; joined, all names would be looked up first.
NEWEST_THAT_SAY_SO = sql.SQL("""
(WITH named AS MATERIALIZED (
    SELECT session_id, id AS item_id FROM {messages} WHERE {index_matches}
), walked AS MATERIALIZED (
    SELECT id, session_id
    FROM (
        SELECT * FROM ({wanted}) AS wanted ORDER BY last_activity_at DESC, id DESC
        LIMIT (SELECT %(steps)s * count(*) FROM named)
    ) AS newest
    WHERE (session_id IN (SELECT session_id FROM named)) IS TRUE
    ORDER BY last_activity_at DESC, id DESC
    LIMIT %(limit)s
), page AS (
    SELECT id, session_id FROM walked WHERE (SELECT count(*) FROM walked) = %(limit)s
    UNION ALL
    (
        SELECT id, session_id FROM ({wanted}) AS wanted
        WHERE (SELECT count(*) FROM walked) < %(limit)s AND session_id IN (SELECT session_id FROM named)
        ORDER BY last_activity_at DESC, id DESC
        LIMIT %(limit)s
    )
), said AS (
    SELECT page.id, max(item_id)::text AS item_id FROM page JOIN named USING (session_id) GROUP BY page.id
)
SELECT said.item_id, {columns}
FROM said JOIN sessions_app_sessionrecord AS record USING (id)
ORDER BY record.last_activity_at DESC, record.id DESC)
""")
STEPS = 5
"""Number of sessions that are passed in the time of looking one up."""
FIELDS = [field.attname for field in SessionRecord._meta.concrete_fields]
COLUMNS = sql.SQL(", ").join(sql.Identifier("record", name) for name in FIELDS)

# Apart from the LIMIT, for which the planner would rather read the session and the words of each item.
ITEMS_THAT_SAY_SO = sql.SQL("""
(WITH named AS MATERIALIZED (
    SELECT id, created_at FROM {messages} WHERE {index_matches} AND session_id = %(session_id)s
)
SELECT id, {instant} FROM named
WHERE (created_at, id) {beyond} (%(start_instant)s, %(start_id)s)
ORDER BY created_at {direction}, id {direction}
LIMIT 1)
""")
ESTIMATE = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {messages} WHERE {in_index}")
# A table that was just made has not been counted.
ITEM_COUNT = sql.SQL("""
SELECT greatest(reltuples, 1000), EXISTS (
    SELECT FROM pg_index AS i
    WHERE i.indrelid = pg_class.oid AND i.indisvalid AND i.indisready AND i.indpred IS NULL
      AND pg_get_expr(i.indexprs, i.indrelid) LIKE '%%memadmin_item_words(%%'
)
FROM pg_class WHERE oid = to_regclass(%(table)s)
""")


class SqlWordIndex:
    """Implements `WordIndex`."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def state(self) -> SearchIndex:
        """One query on the catalog."""
        with in_plain_words(self.store):
            [(has_table, is_possible, count, *found)] = fetch(STATE, [table_name(self.store)])
        if not has_table:
            raise no_table(self.store)
        schema, name, is_valid, size_bytes, is_building, percent = found
        if name is None:
            return SearchIndex(IndexState.ABSENT, is_possible=is_possible, item_count=int(count))
        state = IndexState.READY if is_valid else IndexState.BUILDING if is_building else IndexState.INVALID
        return SearchIndex(state, schema, name, size_bytes, percent, is_possible, int(count))

    def create(self) -> float:
        """Must not run in a transaction."""
        index = self.state()
        if index.state == IndexState.BUILDING:
            raise IndexNotPossible(f"The search index of {self.store} is being built at this moment.")
        table = self.store.messages_table
        messages = table_identifier(table)
        [(is_owned, is_partitioned)] = fetch(TABLE, [table_name(self.store)])
        if not is_owned:
            raise IndexNotPossible(f"Only the owner of the table {table} can build an index on it.")
        if is_partitioned:
            raise IndexNotPossible(
                f"The table {table} is partitioned, and PostgreSQL cannot build an index on all partitions while"
                " agents run. Searches read its sessions from the newest on."
            )
        started = time.monotonic()
        if index.state == IndexState.INVALID:
            self._run(DROP.format(index=identifier(index)))
        if index.state != IndexState.READY:
            name = sql.Identifier(f"{table.split('.')[-1][:48]}_item_words")
            self._run(CREATE.format(name=name, messages=messages, pending=sql.Literal(PENDING_LIST_KB)))
            target = sql.Literal(STATISTICS_TARGET)
            self._run(KEEP_STATISTICS.format(index=identifier(self.state()), target=target))
        # Without it the planner assumes the same frequency for all words.
        self._run(ANALYZE.format(messages=messages))
        return time.monotonic() - started

    def drop(self) -> bool:
        """Must not run in a transaction."""
        index = self.state()
        if index.state == IndexState.BUILDING:
            raise IndexNotPossible(f"The search index of {self.store} is being built at this moment; stop that first.")
        if index.state == IndexState.ABSENT:
            return False
        self._run(DROP.format(index=identifier(index)))
        return True

    def frequency(self, parsed: ParsedSearch, *, seconds: float) -> Frequency | None:
        """Frequency from the planner's statistics, which only an index provides. One round trip."""
        counted, [(plans,)] = ask(
            self.store, ITEM_COUNT, ESTIMATE, parsed=parsed, seconds=seconds, table=table_name(self.store)
        )
        [(item_count, is_ready)] = counted
        return Frequency(int(plans[0]["Plan"]["Plan Rows"]), of=int(item_count)) if is_ready else None

    def newest_matches(
        self, parsed: ParsedSearch, sessions: SessionRecordQuerySet, *, limit: int, seconds: float
    ) -> list[tuple[SessionRecord, str]]:
        """One query, in time to the sessions that the index names, however many there are beside them."""
        try:
            wanted, parameters = written_down(sessions.filter(store=self.store))
        except EmptyResultSet:
            return []
        [rows] = ask(
            self.store,
            NEWEST_THAT_SAY_SO,
            parsed=parsed,
            seconds=seconds,
            wanted=wanted,
            columns=COLUMNS,
            steps=STEPS,
            limit=limit,
            **parameters,
        )
        return [(SessionRecord.from_db(DEFAULT_DB_ALIAS, FIELDS, row), item_id) for item_id, *row in rows]

    def next_match(
        self, parsed: ParsedSearch, session_id: str, start: Position | None, *, order: SearchOrder, seconds: float
    ) -> Hit | None:
        instant, number = (start or ENDS[order]).key
        [rows] = ask(
            self.store,
            ITEMS_THAT_SAY_SO,
            parsed=parsed,
            seconds=seconds,
            order=order,
            session_id=session_id,
            start_instant=instant,
            start_id=number,
        )
        return Hit(str(rows[0][0]), Position((rows[0][1], rows[0][0]))) if rows else None

    def _run(self, statement: sql.Composed) -> None:
        """Runs a statement without a time limit: building an index waits for every older transaction, and blocks no
        agent."""
        with in_plain_words(self.store), connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            try:
                cursor.execute(statement)
            finally:
                cursor.execute("RESET statement_timeout; RESET lock_timeout")


def identifier(index: SearchIndex) -> sql.Identifier:
    return sql.Identifier(index.schema, index.name)


def written_down(sessions: SessionRecordQuerySet) -> tuple[sql.Composable, dict[str, Any]]:
    """Query for these sessions, unordered, as part of another statement with named parameters.

    Raises EmptyResultSet where nothing needs to be asked.
    """
    query, values = sessions.order_by().values("id", "session_id", "last_activity_at").query.sql_with_params()
    names = [f"sessions_{number}" for number in range(len(values))]
    text = query.replace("%%", "%%%%") % tuple(f"%({name})s" for name in names)
    # SQL generated by Django: all user input is among the parameters.
    return sql.SQL(text), dict(zip(names, values, strict=True))
