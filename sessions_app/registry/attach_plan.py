"""The steps of `attach_store`, made from what is missing; the same list is printed or run.

Agents go on writing meanwhile. A trigger needs a lock that waits for the writes under way and holds up later ones, so
each such step gives up after LOCK_TIMEOUT and is tried again; it is shorter than PostgreSQL's deadlock_timeout, so no
agent's write is ever the one to be cancelled. An autovacuum would not give way in that time either, so the step first
keeps upkeep off the table, which no agent waits for. Any step may be the last one before a crash: the next run goes on
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from sessions_app.models import SessionStore
from sessions_app.registry.duplicate_locations import obstacles_in_place
from sessions_app.registry.fence import Trigger, dollar_quoted, notes_for, triggers_for
from sessions_app.registry.installed_triggers import (
    InstalledTrigger,
    faults_of,
    has_own_index,
    installed_triggers,
    own_index_name,
    unregistered_sessions,
)
from sessions_app.registry.preflight import leaks, missing_index, missing_rights, other_stores_on, unusable
from sessions_app.registry.stores import has_fence
from sessions_app.registry.tables import StoreTables, Table, find_tables, read_tables
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreProblem
from sessions_app.stores.sqlalchemy.postgres import in_plain_words

LOCK_TIMEOUT = "500ms"
UPKEEP_TIMEOUT = "10s"
"""An autovacuum is cancelled by a waiter after deadlock_timeout, one second by default."""
BACKFILL_ROWS = 2_000
"""Sessions registered in one transaction; some 20 ms."""


class AttachRefused(Exception):
    """An obstacle to attaching a store, which was left as it is; the message names it."""


@dataclass(frozen=True, slots=True)
class AttachStep:
    """Statements with one purpose: one transaction, or (if PostgreSQL only runs them outside of one) each by itself."""

    purpose: str
    statements: tuple[sql.Composable, ...]
    in_transaction: bool = True

    def as_script(self) -> str:
        """The step as text, for people and for psql."""
        lines = [f"{statement.as_string(None)};" for statement in self.statements]
        if self.in_transaction:
            lines = ["BEGIN;", *lines, "COMMIT;"]
        return "\n".join([f"-- {self.purpose}", *lines])


def plan_attachment(store: SessionStore) -> list[AttachStep]:
    """Missing steps in order; empty when nothing is missing. Raises AttachRefused."""
    if not has_fence(store):
        refuse_unusable(store)
        if store.attached_at:
            return []
        refuse_place_of_another(store)
        return [_note(store, sql.SQL("now()"), "Record that the store is attached")]
    tables = read_tables(store)
    with in_plain_words(store):
        _refuse(unusable(tables))
        rights = missing_rights(tables, to_attach=True)
        obstacles = (leaks(tables), rights, missing_index(tables), other_stores_on(tables, store))
        _refuse(problem for problems in obstacles for problem in problems)
        refuse_place_of_another(store)
        steps = [*_fence_steps(store, tables), *_index_steps(store, tables)]
        if store.attached_at is None or unregistered_sessions(store, tables, cap=0):
            steps.append(_backfill(store, tables))
        if store.attached_at is None:
            steps.append(_note(store, sql.SQL("now()"), "Record that the store is attached"))
    return steps


def refuse_unusable(store: SessionStore) -> None:
    """Raises AttachRefused for a store without a fence that has not what its kind needs, and StoreUnavailable."""
    _refuse(problem for problem in backend_for(store).health().problems if problem.is_fatal)


def refuse_place_of_another(store: SessionStore) -> None:
    """Raises AttachRefused if a store that is about to be attached is in the place of another."""
    if store.attached_at is None:
        _refuse(obstacles_in_place(store))


def plan_declaration(store: SessionStore) -> AttachStep:
    """The row of a store as a statement, for a script that is run by hand; we save it ourselves."""
    fields = [field for field in SessionStore._meta.concrete_fields if field.name not in ("attached_at", "created_at")]
    declared = ("kind", "options", "sessions_table", "messages_table", "writer_timezone", "fence_mode", "agent_roles")
    insert = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}").format(
        sql.Identifier(SessionStore._meta.db_table),
        sql.SQL(", ").join(sql.Identifier(field.attname) for field in fields),
        sql.SQL(", ").join(sql.Literal(_value(store, field.attname)) for field in fields),
        sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in declared),
    )
    return AttachStep("Record the tables of the store", (insert,))


def _value(store: SessionStore, name: str) -> Any:
    value = getattr(store, name)
    return Jsonb(value) if isinstance(value, dict) else value


def plan_removal(store: SessionStore) -> list[AttachStep]:
    """Installed objects of ours, in the order of their removal. The agents' tables may be gone already."""
    with in_plain_words(store):
        steps = [_drop_function(installed) for installed in installed_triggers(store).values()]
        (messages,) = find_tables(store.messages_table)
        if messages and has_own_index(store, messages):
            steps.append(_drop_index(store, messages))
    if store.attached_at is not None:
        steps.append(_note(store, sql.SQL("NULL"), "Record that the store is not attached"))
    return steps


def _refuse(obstacles: Iterable[StoreProblem]) -> None:
    sentences = [problem.sentence for problem in obstacles]
    if sentences:
        raise AttachRefused(" ".join(sentences))


def _fence_steps(store: SessionStore, tables: StoreTables) -> Iterator[AttachStep]:
    installed = installed_triggers(store)
    fence, notes = triggers_for(store, tables), list(notes_for(store, tables))
    for trigger in fence:
        yield from _put_there(trigger.purpose, trigger.table, [trigger], installed)
    for table in (tables.messages, tables.sessions):
        of_table = [trigger for trigger in notes if trigger.table == table]
        yield from _put_there(f"Record writes to {table} by roles other than the agents'", table, of_table, installed)
    wanted = {trigger.name for trigger in (*fence, *notes)}
    for name, unwanted in installed.items():
        if name not in wanted:
            yield _drop_function(unwanted)


def _put_there(
    purpose: str, table: Table, triggers: Iterable[Trigger], installed: Mapping[str, InstalledTrigger]
) -> Iterator[AttachStep]:
    """A step with the missing triggers of a table, unless all exist. The table is locked last, and once."""
    functions: list[sql.Composable] = []
    places: list[sql.Composable] = []
    for trigger in triggers:
        faults = faults_of(trigger, installed.get(trigger.name))
        if faults.function:
            functions += [trigger.create_function(), trigger.close_function()]
        if faults.trigger:
            places += [trigger.create_trigger()]
    if places:
        places = [*_limits(table.identifier), *places]
    if functions or places:
        yield AttachStep(purpose, (*functions, *places))


def _index_steps(store: SessionStore, tables: StoreTables) -> Iterator[AttachStep]:
    """The SDK makes this index itself; tables made by hand may lack it."""
    if any(index.is_valid for index in tables.time_indexes):
        return
    if has_own_index(store, tables.messages):
        yield _drop_index(store, tables.messages)
    create = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} (session_id, created_at)")
    yield AttachStep(
        "Index the items by session and time",
        (create.format(sql.Identifier(own_index_name(store)), tables.messages.identifier),),
        in_transaction=False,
    )


def _backfill(store: SessionStore, tables: StoreTables) -> AttachStep:
    """One statement that commits after each batch, and starts again when it is run again.

    Registered sessions that were written to while nothing followed them (after a removal) are brought up to
    date, and forgotten ones are left out: they would be refused. Each batch begins with the last id of the one before,
    so an empty session id needs no case of its own.
    """
    began, written = (
        sql.SQL("") if tables.sessions.columns[column].has_zone else sql.SQL(" AT TIME ZONE {}")
        for column in ("created_at", "updated_at")
    )
    body = sql.SQL("""
DECLARE
  next_id text := '';
  seen bigint;
BEGIN
  LOOP
    PERFORM set_config('lock_timeout', {lock_timeout}, true);
    WITH batch AS (
      SELECT session_id, created_at{began} AS began_at, updated_at{written} AS written_at
      FROM {sessions} WHERE session_id >= next_id ORDER BY session_id LIMIT {rows}
    ), registered AS (
      INSERT INTO {records} AS r (store_id, session_id, registered_at, last_activity_at)
      SELECT {store_id}, session_id, least(began_at, now()), coalesce(written_at, now()) FROM batch
      WHERE NOT {is_forgotten}({store_id}, session_id)
      ON CONFLICT (store_id, session_id) DO UPDATE
      SET last_activity_at = EXCLUDED.last_activity_at, activity_count = r.activity_count + 1
      WHERE r.last_activity_at < EXCLUDED.last_activity_at
    )
    SELECT max(session_id), count(*) INTO next_id, seen FROM batch;
    COMMIT;
    EXIT WHEN seen < {rows};
  END LOOP;
END
""").format(
        lock_timeout=sql.Literal(LOCK_TIMEOUT),
        began=began.format(sql.Literal(store.writer_timezone)),
        written=written.format(sql.Literal(store.writer_timezone)),
        sessions=tables.sessions.identifier,
        records=tables.records,
        is_forgotten=sql.Identifier(tables.our_schema, "memadmin_is_forgotten"),
        store_id=sql.Literal(store.pk),
        rows=sql.Literal(BACKFILL_ROWS),
    )
    statement = sql.SQL("DO {}").format(dollar_quoted(body.as_string(None)))
    return AttachStep("Register the existing sessions", (statement,), in_transaction=False)


def _limits(table: sql.Composable | None) -> list[sql.Composable]:
    """Statements before a change of a table's triggers: how long it waits for upkeep, and how long for agents."""
    agents = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT))
    return [*(_keep_upkeep_off(table) if table else ()), agents]


def _keep_upkeep_off(table: sql.Composable) -> list[sql.Composable]:
    """Until the transaction ends. The lock stops VACUUM, ANALYZE and new indexes, but no reads or writes."""
    return [
        sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(UPKEEP_TIMEOUT)),
        sql.SQL("LOCK TABLE {} IN SHARE UPDATE EXCLUSIVE MODE").format(table),
    ]


def _drop_function(installed: InstalledTrigger) -> AttachStep:
    """The trigger goes with its function: dropping a trigger by itself takes the owner of the table."""
    name = installed.function.as_string(None)
    limits = _limits(sql.Identifier(*installed.lockable) if installed.lockable else None)
    drop = sql.SQL("DROP FUNCTION {}() CASCADE").format(installed.function)
    return AttachStep(f"Remove {name}, and the trigger that calls it", (*limits, drop))


def _drop_index(store: SessionStore, messages: Table) -> AttachStep:
    drop = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}")
    index = sql.Identifier(messages.schema, own_index_name(store))
    return AttachStep("Remove our index of the items", (drop.format(index),), in_transaction=False)


def _note(store: SessionStore, attached_at: sql.SQL, purpose: str) -> AttachStep:
    update = sql.SQL("UPDATE {} SET attached_at = {} WHERE id = {}")
    table = sql.Identifier(SessionStore._meta.db_table)
    return AttachStep(purpose, (update.format(table, attached_at, sql.Literal(store.pk)),))
