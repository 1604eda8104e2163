"""Tables in this database that look like those of the SDK, agno or phidata, and belong to no store."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from urllib.parse import urlencode

from django.utils.text import slugify

from sessions_app.models import SessionStore
from sessions_app.registry.stores import MAIN_KIND, MAIN_STORE, has_fence, known_stores
from sessions_app.registry.tables import find_tables
from sessions_app.stores.agno.backend import AgnoBackend
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.documents.database import DocumentDatabase
from sessions_app.stores.phidata.backend import PhidataBackend
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

# Schemas that any role may have made; a name with a dot cannot be given on the command line.
TABLES = """
SELECT place.nspname, found.relname, array_agg(columns.attname)
FROM pg_class AS found
JOIN pg_namespace AS place ON place.oid = found.relnamespace
JOIN pg_attribute AS columns ON columns.attrelid = found.oid AND columns.attnum > 0 AND NOT columns.attisdropped
WHERE found.relkind IN ('r', 'p') AND NOT found.relispartition AND place.nspname !~ '^pg_|^information_schema$'
  AND strpos(place.nspname || found.relname, '.') = 0
GROUP BY 1, 2
HAVING array_agg(columns.attname) @> ARRAY['user_id', 'created_at', 'updated_at']::name[]
ORDER BY 1, 2
"""

BY_COLUMNS = (AgnoBackend, PhidataBackend)
"""Kinds whose tables are recognised by their columns alone."""


@dataclass(frozen=True, slots=True)
class FoundTables:
    """Both with their schema."""

    sessions: str
    messages: str
    """Empty for a kind with a single table, or one that finds the others by it."""
    is_main: bool
    kind: str = MAIN_KIND
    name: str = MAIN_STORE
    """Proposed name for the store; it is unused."""

    @property
    def form_query(self) -> str:
        """Initial values of the kind's form; empty if only a command can connect the tables."""
        return urlencode({"name": self.name, "table": self.sessions}) if self.kind != MAIN_KIND else ""

    @property
    def command(self) -> str:
        """The command that connects them."""
        if self.kind != MAIN_KIND:
            return f"attach_store {self.name} --kind {self.kind} --table {shlex.quote(self.sessions)}"
        if self.is_main:
            return f"attach_store {MAIN_STORE}"
        tables = f"--sessions-table {shlex.quote(self.sessions)} --messages-table {shlex.quote(self.messages)}"
        return f"attach_store {self.name} {tables}"


def unconnected_tables() -> list[FoundTables]:
    """Five queries, however many stores there are; empty while the database is not responding."""
    try:
        stores = [store for store in known_stores(kind=MAIN_KIND) if has_fence(store)]
        found = [
            table.oid if table else None
            for table in find_tables(
                *(each for store in stores for each in (store.sessions_table, store.messages_table))
            )
        ]
        oids = dict(zip([store.name for store in stores], zip(found[::2], found[1::2], strict=True), strict=True))
        connected = {oids[store.name] for store in stores if store.pk}
        pairs_found = [
            FoundTables(sessions, messages, is_main=pair == oids.get(MAIN_STORE))
            for *pair_of_oids, sessions, messages in fetch(PAIRS)
            # A name with a dot in it cannot be given on the command line.
            if (pair := tuple(pair_of_oids)) not in connected and sessions.count(".") == messages.count(".") == 1
        ]
        return _named([*pairs_found, *_recognised_by_columns()])
    except StoreUnavailable:
        return []


def _named(found: list[FoundTables]) -> list[FoundTables]:
    """Each with a name of its own, after the table: `Agents.support_sessions` becomes `agents-support`."""
    taken = {MAIN_STORE, *SessionStore.objects.values_list("name", flat=True)}
    named = []
    for tables in found:
        if not tables.is_main:
            own = slugify(re.sub("_?sessions?$", "", tables.sessions).removeprefix("public.").replace(".", "-"))[:58]
            own = own or tables.kind
            name = next(name for name in chain([own], (f"{own}-{number}" for number in count(2))) if name not in taken)
            taken.add(name)
            tables = replace(tables, name=name)
        named.append(tables)
    return named


def _recognised_by_columns() -> Iterator[FoundTables]:
    connected = {
        (store.kind, DocumentDatabase(store).schema_and_table)
        for store in SessionStore.objects.filter(kind__in=[backend.library for backend in BY_COLUMNS])
        if DocumentDatabase(store).is_own
    }
    for schema, table, columns in fetch(TABLES):
        for backend in BY_COLUMNS:
            is_known = (backend.library, (schema, table)) in connected
            if not is_known and any(adapter.is_surely(columns) for adapter in backend.adapters):
                yield FoundTables(f"{schema}.{table}", "", is_main=False, kind=backend.library)
