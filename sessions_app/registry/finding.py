"""Tables in this database that look like the SDK's and that nobody connected."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from sessions_app.registry.declaring import MAIN_STORE, known_stores
from sessions_app.registry.discovering import has_fence
from sessions_app.registry.tables import find_table
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlalchemy.postgres import fetch

# By their columns, and by the foreign key that the SDK makes; hand-made tables without one are not guessed at.
PAIRS = """
SELECT sessions.oid, messages.oid, format('%s.%s', in_schema.nspname, sessions.relname),
       format('%s.%s', of_messages.nspname, messages.relname)
FROM pg_constraint AS key
JOIN pg_class AS messages ON messages.oid = key.conrelid AND messages.relkind IN ('r', 'p')
JOIN pg_class AS sessions ON sessions.oid = key.confrelid AND sessions.relkind IN ('r', 'p')
JOIN pg_namespace AS in_schema ON in_schema.oid = sessions.relnamespace
JOIN pg_namespace AS of_messages ON of_messages.oid = messages.relnamespace
WHERE key.contype = 'f' AND NOT messages.relispartition
  AND (SELECT count(*) FROM pg_attribute WHERE attrelid = messages.oid AND NOT attisdropped
       AND attname IN ('id', 'session_id', 'message_data', 'created_at')) = 4
  AND (SELECT count(*) FROM pg_attribute WHERE attrelid = sessions.oid AND NOT attisdropped
       AND attname IN ('session_id', 'created_at', 'updated_at')) = 3
ORDER BY 3, 4
"""


@dataclass(frozen=True, slots=True)
class FoundTables:
    """Both with their schema."""

    sessions: str
    messages: str
    is_main: bool

    @property
    def command(self) -> str:
        """What connects them."""
        if self.is_main:
            return f"attach_store {MAIN_STORE}"
        tables = f"--sessions-table {shlex.quote(self.sessions)} --messages-table {shlex.quote(self.messages)}"
        return f"attach_store NAME {tables}"


def unconnected_tables() -> list[FoundTables]:
    """A query to the catalog, and two for each store in this database; nothing while it is away."""
    try:
        stores = [store for store in known_stores() if has_fence(store)]
        pairs = {store.name: (find_table(store.sessions_table), find_table(store.messages_table)) for store in stores}
        oids = {name: tuple(table.oid if table else None for table in pair) for name, pair in pairs.items()}
        connected = {oids[store.name] for store in stores if store.pk}
        return [
            FoundTables(sessions, messages, is_main=pair == oids.get(MAIN_STORE))
            for *pair_of_oids, sessions, messages in fetch(PAIRS)
            # What has a dot in its own name cannot be named on the command line.
            if (pair := tuple(pair_of_oids)) not in connected and sessions.count(".") == messages.count(".") == 1
        ]
    except StoreUnavailable:
        return []
