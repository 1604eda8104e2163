"""The full-text index of a store, which its owner may choose to have: built beside running agents, repaired, dropped.

It is on the agents' own table, so it takes disk there and a share of each of their writes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from django.db import connection
from django.template.defaultfilters import filesizeformat
from psycopg import sql

from sessions_app.models import SessionStore
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.postgres import fetch, in_plain_words, table_identifier

STATISTICS_TARGET = 500
"""The planner keeps ten times as many words with their frequency: how a search tells a rare word from a common one."""

PENDING_LIST_KB = 2_048
"""How much of what agents wrote waits unsorted. Whoever's INSERT fills it sorts it into the index: 0.1 s, once in some
400 items. At PostgreSQL's own 4 MB it is nearly twice that; at 512 KB all writes together cost a third more."""

STATE = """
SELECT n.nspname, c.relname, i.indisvalid AND i.indisready, pg_relation_size(c.oid), p.pid IS NOT NULL,
       100 * p.blocks_done / nullif(p.blocks_total, 0)
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_stat_progress_create_index AS p ON p.index_relid = i.indexrelid AND p.datid = (
    SELECT oid FROM pg_database WHERE datname = current_database())
WHERE i.indrelid = to_regclass(%s) AND i.indpred IS NULL
  AND pg_get_expr(i.indexprs, i.indrelid) LIKE '%%memadmin_item_words(%%'
ORDER BY 3 DESC, 5 DESC
LIMIT 1
"""

TABLE = "SELECT pg_has_role(relowner, 'USAGE'), relkind = 'p' FROM pg_class WHERE oid = to_regclass(%s)"

CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON {messages} USING gin (memadmin_item_words(message_data::text))"
    " WITH (gin_pending_list_limit = {pending})"
)
KEEP_STATISTICS = sql.SQL("ALTER INDEX {index} ALTER COLUMN 1 SET STATISTICS {target}")
ANALYZE = sql.SQL("ANALYZE {messages}")
DROP = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {index}")


class IndexState(StrEnum):
    ABSENT = "absent"
    BUILDING = "building"
    INVALID = "invalid"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class SearchIndex:
    state: IndexState
    schema: str = ""
    name: str = ""
    size_bytes: int = 0
    percent_built: int | None = None
    """Of the table, while building; None where the server does not tell."""

    @property
    def is_ready(self) -> bool:
        return self.state == IndexState.READY

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    @property
    def sentence(self) -> str:
        size = filesizeformat(self.size_bytes).replace("\xa0", " ")
        match self.state:
            case IndexState.ABSENT:
                return "No search index; a search reads sessions from the newest on."
            case IndexState.BUILDING:
                progress = "" if self.percent_built is None else f", {self.percent_built} % of the table read"
                return f"The search index is being built{progress}."
            case IndexState.INVALID:
                return f"Half a search index of {size}, which helps nobody; `search_index --create` builds it again."
        return f"Search index ready, {size}."


class IndexNotPossible(Exception):
    """The index stays as it is; the message is a sentence for an operator."""


def search_index_state(store: SessionStore) -> SearchIndex:
    """Raises StoreUnavailable when the store's table is not there. Two queries on the catalog."""
    with in_plain_words(store):
        table = table_identifier(store.messages_table).as_string(None)
        if fetch("SELECT to_regclass(%s)", [table]) == [(None,)]:
            raise StoreUnavailable(f"The table {store.messages_table} is not in this database.")
        rows = fetch(STATE, [table])
    if not rows:
        return SearchIndex(IndexState.ABSENT)
    schema, name, is_valid, size_bytes, is_building, percent = rows[0]
    state = IndexState.READY if is_valid else IndexState.BUILDING if is_building else IndexState.INVALID
    return SearchIndex(state, schema, name, size_bytes, percent)


def create_search_index(store: SessionStore) -> float:
    """Builds the index while agents go on writing, and returns the seconds it took.

    A half-built one, left by a build that was interrupted, is dropped and built again; with one that is ready only the
    planner's statistics are renewed. Must not run in a transaction. Raises StoreUnavailable and IndexNotPossible.
    """
    index = search_index_state(store)
    if index.state == IndexState.BUILDING:
        raise IndexNotPossible(f"The search index of {store} is being built at this moment.")
    messages = table_identifier(store.messages_table)
    [(is_owned, is_partitioned)] = fetch(TABLE, [messages.as_string(None)])
    if not is_owned:
        raise IndexNotPossible(f"Only the owner of the table {store.messages_table} can have an index built on it.")
    if is_partitioned:
        raise IndexNotPossible(
            f"The table {store.messages_table} is partitioned, and PostgreSQL builds no index on all partitions beside"
            " running agents. Searches read its sessions from the newest on."
        )
    started = time.monotonic()
    if index.state == IndexState.INVALID:
        _run(store, DROP.format(index=index.identifier))
    if index.state != IndexState.READY:
        name = sql.Identifier(f"{store.messages_table.split('.')[-1][:48]}_item_words")
        _run(store, CREATE.format(name=name, messages=messages, pending=sql.Literal(PENDING_LIST_KB)))
        index = search_index_state(store)
        _run(store, KEEP_STATISTICS.format(index=index.identifier, target=sql.Literal(STATISTICS_TARGET)))
    # Without it the planner takes every word to be as frequent as any other.
    _run(store, ANALYZE.format(messages=messages))
    return time.monotonic() - started


def drop_search_index(store: SessionStore) -> bool:
    """Whether there was one to drop. Must not run in a transaction. Raises StoreUnavailable and IndexNotPossible."""
    index = search_index_state(store)
    if index.state == IndexState.BUILDING:
        raise IndexNotPossible(f"The search index of {store} is being built at this moment; stop that first.")
    if index.state == IndexState.ABSENT:
        return False
    _run(store, DROP.format(index=index.identifier))
    return True


def _run(store: SessionStore, statement: sql.Composed) -> None:
    """Without a time limit: building waits for every transaction that was open before it, but no agent waits for it."""
    with in_plain_words(store), connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        try:
            cursor.execute(statement)
        finally:
            cursor.execute("RESET statement_timeout; RESET lock_timeout")
