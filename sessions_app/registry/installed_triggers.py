"""Installed triggers on a store's tables, compared with the expected ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql

from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry.fence import Trigger, all_names
from sessions_app.registry.tables import StoreTables, Table
from sessions_app.stores.base import StoreProblem
from sessions_app.stores.sqlalchemy.postgres import fetch


@dataclass(frozen=True, slots=True)
class InstalledTrigger:
    """An installed function of ours, and the trigger of the same name if it exists."""

    function: sql.Identifier
    oid: int
    body: str
    is_safe: bool
    """True if it runs with our rights and a search_path that no agent can change."""
    table: int | None
    calls: int | None
    enabled: str | None
    definition: str | None
    lockable: list[str] | None
    """Schema and name of the trigger's table, if our role may lock it."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Problems of one trigger: with its function, and with its place on the table."""

    function: StoreProblem | None
    trigger: StoreProblem | None


TRIGGERS = """
SELECT p.proname, p.pronamespace::regnamespace::text, p.oid, p.prosrc,
       p.prosecdef AND p.proconfig = ARRAY['search_path=pg_catalog, pg_temp'],
       t.tgrelid, t.tgfoid, t.tgenabled, pg_get_triggerdef(t.oid),
       (SELECT ARRAY[n.nspname, c.relname] FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = t.tgrelid AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE'))
FROM pg_proc AS p
LEFT JOIN pg_trigger AS t ON t.tgname = p.proname AND t.tgparentid = 0  -- partitions have copies
WHERE p.proname = ANY(%(names)s) AND p.pronargs = 0
  AND p.pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(%(records)s))
ORDER BY array_position(%(names)s, p.proname::text)
"""

INDEX = """
SELECT 1 FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = %s AND c.relname = %s
"""

UNIQUE_KEY_WITH_ERASURE = """
SELECT 1 FROM pg_index AS i
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attname = 'erased_at' AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
"""

UNREGISTERED = sql.SQL("""
SELECT count(*) FROM (
    SELECT FROM {sessions} AS s
    WHERE NOT EXISTS (SELECT FROM {records} AS r WHERE r.store_id = {store_id} AND r.session_id = s.session_id)
      AND NOT {is_forgotten}({store_id}, s.session_id)
    LIMIT {limit}
) AS missing
""")


def installed_triggers(store: SessionStore) -> Mapping[str, InstalledTrigger]:
    """Installed parts of a store's fence, by name, in the order in which they can be removed."""
    rows = fetch(TRIGGERS, {"names": list(all_names(store)), "records": SessionRecord._meta.db_table})
    return {name: InstalledTrigger(sql.Identifier(schema, name), *rest) for name, schema, *rest in rows}


def faults_of(trigger: Trigger, installed: InstalledTrigger | None) -> Faults:
    """Problems of a trigger: its function is compared letter by letter with this version's."""
    if installed is None:
        return Faults(
            StoreProblem("function-missing", f"The function {trigger.name} is missing."),
            StoreProblem("trigger-missing", f"The trigger {trigger.name} on {trigger.table} is missing."),
        )
    function_fault = trigger_fault = None
    if installed.body != trigger.body or not installed.is_safe:
        sentence = f"The function {trigger.name} is not the one of this version: it was changed, or is older."
        function_fault = StoreProblem("function-changed", sentence)
    if installed.table != trigger.table.oid or installed.definition is None:
        sentence = f"The trigger {trigger.name} on {trigger.table} is missing."
        trigger_fault = StoreProblem("trigger-missing", sentence)
    elif installed.enabled in ("D", "R"):
        trigger_fault = StoreProblem("trigger-disabled", f"The trigger {trigger.name} on {trigger.table} is disabled.")
    elif installed.calls != installed.oid or not trigger.is_placed_as(installed.definition):
        sentence = f"The trigger {trigger.name} on {trigger.table} is not the one of this version."
        trigger_fault = StoreProblem("trigger-changed", sentence)
    return Faults(function_fault, trigger_fault)


def own_index_name(store: SessionStore) -> str:
    """Name of the index that we create on messages without the SDK's own."""
    return f"memadmin_items_{store.pk}"


def has_own_index(store: SessionStore, messages: Table) -> bool:
    return bool(fetch(INDEX, [messages.oid, own_index_name(store)]))


def unregistered_sessions(store: SessionStore, tables: StoreTables, *, cap: int) -> int:
    """Number of sessions without a registry row, at most cap + 1. Reads all of them when none is missing."""
    query = UNREGISTERED.format(
        sessions=tables.sessions.identifier,
        records=tables.records,
        is_forgotten=sql.Identifier(tables.our_schema, "memadmin_is_forgotten"),
        store_id=sql.Literal(store.pk),
        limit=sql.Literal(cap + 1),
    )
    return int(fetch(query)[0][0])


def has_registry_key() -> bool:
    """True if erased_at is part of a unique key, which gives an UPDATE of it the lock that writers hold off."""
    return bool(fetch(UNIQUE_KEY_WITH_ERASURE, [SessionRecord._meta.db_table]))
