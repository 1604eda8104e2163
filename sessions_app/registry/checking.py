"""Problems of a store, as sentences."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from django.template.defaultfilters import pluralize
from psycopg import sql

from memadmin.times import ZONES_SPAN
from sessions_app.items import LONGEST_ID_BYTES
from sessions_app.models import SessionStore
from sessions_app.registry.duplicate_locations import Places, problems_of_place
from sessions_app.registry.fence import notes_for, triggers_for
from sessions_app.registry.installed_triggers import (
    faults_of,
    has_registry_key,
    installed_triggers,
    unregistered_sessions,
)
from sessions_app.registry.keys import key_hints, key_problems
from sessions_app.registry.preflight import leaks, missing_rights, unusable
from sessions_app.registry.stores import MAIN_STORE, has_fence
from sessions_app.registry.tables import StoreTables, Table, read_tables
from sessions_app.registry.unreadable import unreadable_hints
from sessions_app.stores import backend_for
from sessions_app.stores.base import COUNTED_EXACTLY, Capability, StoreHealth, StoreProblem, StoreUnavailable
from sessions_app.stores.circuit_breaker import ask_all, asking
from sessions_app.stores.kinds import kind_of
from sessions_app.stores.sqlalchemy.postgres import fetch, in_plain_words

LARGEST = {"int2": 2**15 - 1, "int4": 2**31 - 1, "int8": 2**63 - 1}
IDS_USED_UP_AT = 0.8

HOLDS_ALL_THE_SAME = {"mode-differs", "unfinished", "unrecorded", "row-policies"}
"""Problems of a fence that keeps late writes out nevertheless."""

LAST_ID = """
SELECT pg_sequence_last_value(seqrelid), seqmax FROM pg_sequence
WHERE seqrelid = pg_get_serial_sequence(%s, 'id')::regclass AND has_sequence_privilege(seqrelid, 'SELECT')
"""

# For sessions registered by the triggers the registry has the true instant: they run in the writer's own connection.
WRITTEN_LATELY = sql.SQL("""
SELECT count(*), count(*) FILTER (WHERE is_off), mode() WITHIN GROUP (ORDER BY off) FILTER (WHERE is_off)
FROM (
    SELECT s.updated_at AT TIME ZONE {zone} - r.last_activity_at AS off,
           s.updated_at AT TIME ZONE {zone} NOT BETWEEN r.last_activity_at - interval '1 minute'
                                                    AND r.last_activity_at + interval '1 minute' AS is_off
    FROM (SELECT * FROM {records} ORDER BY last_activity_at DESC, id DESC LIMIT 200) AS r
    JOIN {sessions} AS s ON s.session_id = r.session_id
    WHERE r.store_id = {store_id} AND (r.activity_count > 0 OR r.registered_at > {attached_at})
        -- Times that agents can write and nobody can read: no zone has them.
        AND s.updated_at BETWEEN '0002-01-01' AND '9998-12-31'
) AS compared
""")

CONFIGURED_ZONES = """
WITH configured AS (
    SELECT coalesce('role ' || r.rolname, 'database ' || d.datname, 'all roles') AS place,
           split_part(setting, '=', 2) AS zone
    FROM pg_db_role_setting AS s
    CROSS JOIN unnest(s.setconfig) AS setting
    LEFT JOIN pg_roles AS r ON r.oid = s.setrole
    LEFT JOIN pg_database AS d ON d.oid = s.setdatabase
    WHERE lower(split_part(setting, '=', 1)) = 'timezone'
      AND (s.setdatabase = 0 OR d.datname = current_database())
      AND (s.setrole = 0 OR has_table_privilege(s.setrole, %(messages)s::oid, 'INSERT'))
    UNION
    SELECT 'server', reset_val FROM pg_settings WHERE name = 'TimeZone'
)
SELECT place, zone FROM configured
WHERE EXISTS (
    SELECT FROM (VALUES (timestamptz '2026-01-15 00:00Z'), ('2026-07-15 00:00Z')) AS season(instant)
    WHERE instant AT TIME ZONE zone <> instant AT TIME ZONE %(zone)s
)
ORDER BY place
"""

# Counted if that is quick, else estimated from statistics.
ROWS = sql.SQL("""
SELECT {number} AS number, (SELECT count(*) FROM (SELECT FROM {table} LIMIT {cap}) AS few),
       (SELECT coalesce(sum(reltuples) FILTER (WHERE reltuples > 0), 0)::bigint FROM pg_class
        WHERE oid = {oid} OR oid IN (SELECT relid FROM pg_partition_tree({oid}::oid::regclass) WHERE isleaf))
""")


def health(store: SessionStore, *, anyway: bool = True) -> StoreHealth:
    """Health of a store, from the catalog and statistics: the cost does not depend on the number of rows. Never raises.

    Without `anyway` a store that hung a moment ago is not asked; its last result counts (`stores.circuit_breaker`).
    """
    return next(health_of_all([store], anyway=anyway))


def own_health(store: SessionStore, *, anyway: bool = True) -> StoreHealth:
    """Like `health`, without asking the other stores whether one is in the same location. Never raises."""
    return _health_of_fenced(store) if has_fence(store) else _health_of_discovered(store, anyway=anyway)


def _layout_of_kind(store: SessionStore) -> str:
    """Sentence about the layouts that the kind declares; empty if it declares none."""
    layouts = kind_of(store).layouts
    return f"Read as written by {', '.join(layouts)}." if layouts else ""


def health_of_all(
    stores: Iterable[SessionStore], *, anyway: bool = True, places: Places | None = None
) -> Iterator[StoreHealth]:
    """Health of several stores, in their order; all are checked for a response at the same time first.

    `places` are those asked before, for a caller with several batches.
    """
    stores, places = list(stores), places or Places()
    answers: Mapping[SessionStore, StoreUnavailable | None] = {}
    if len(stores) > 1:
        discovered = [store for store in stores if not has_fence(store)]
        answers = ask_all({store: partial(_raise_if_away, store) for store in discovered}, anyway=anyway)
    for store in stores:
        if has_fence(store):
            found = _health_of_fenced(store)
        else:
            found = _health_of_discovered(store, anyway=anyway, away=answers.get(store))
        yield _with_place(found, store, places)


def _raise_if_away(store: SessionStore) -> None:
    backend_for(store).search.raise_if_away()


def _with_place(found: StoreHealth, store: SessionStore, places: Places | None) -> StoreHealth:
    if found.state == "down" or store.pk is None:
        return found
    return replace(found, problems=(*found.problems, *problems_of_place(store, places or Places())))


def _health_of_fenced(store: SessionStore) -> StoreHealth:
    began = time.perf_counter()
    try:
        tables = read_tables(store)
        answered_in_ms = (time.perf_counter() - began) * 1000
        with in_plain_words(store):
            problems = list(unusable(tables))
            if problems:
                return StoreHealth(problems=tuple(problems), fence="off", answered_in_ms=answered_in_ms)
            sessions, items = _about(tables.sessions, tables.messages)
            faults = [*leaks(tables), *_faults_of_fence(store, tables)]
            return StoreHealth(
                problems=(*faults, *missing_rights(tables), *_slow_or_wrong(store, tables), *key_problems(store)),
                sessions=sessions,
                items=items,
                fence="off" if any(problem.code not in HOLDS_ALL_THE_SAME for problem in faults) else "on",
                answered_in_ms=answered_in_ms,
                hints=(*_unsaid(store), *key_hints(store), *unreadable_hints(store)),
                layout=_layout_of_kind(store),
            )
    except StoreUnavailable as away:
        return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),), fence="off")


def check(store: SessionStore, *, places: Places | None = None) -> StoreHealth:
    """Like `health`, and compares the registry with all sessions of the store. Never raises."""
    if not has_fence(store):
        return _with_place(_health_of_discovered(store, thorough=True), store, places)
    found = _with_place(_health_of_fenced(store), store, places)
    if found.state == "down" or store.attached_at is None:
        return found
    try:
        with in_plain_words(store):
            missing = unregistered_sessions(store, read_tables(store), cap=COUNTED_EXACTLY)
    except StoreUnavailable as away:
        return replace(found, problems=(*found.problems, StoreProblem("unavailable", str(away), is_fatal=True)))
    if not missing:
        return found
    count = f"More than {COUNTED_EXACTLY:,}" if missing > COUNTED_EXACTLY else f"{missing:,}"
    sentence = f"{count} of its sessions are not registered, and so not listed. {_attach(store)}"
    return replace(found, problems=(*found.problems, StoreProblem("unregistered", sentence)))


def _health_of_discovered(
    store: SessionStore, *, thorough: bool = False, anyway: bool = True, away: StoreUnavailable | None = None
) -> StoreHealth:
    """Problems that the store reports or discovery found; `away` is the earlier error of asking it."""
    found = StoreHealth()
    try:
        if away:
            raise away
        with asking(store, anyway=anyway):
            found = backend_for(store).health(thorough=thorough)
            problems = [*found.problems, *(key_problems(store) if found.state != "down" else ())]
            for problem in found.problems:
                if problem.is_fatal:
                    raise StoreUnavailable(problem.sentence)
    except StoreUnavailable as silent:
        problems = list(found.problems)
        if found.state != "down":
            problems.append(StoreProblem("unavailable", str(silent), is_fatal=True))
    if store.attached_at is None:
        problems.append(
            StoreProblem("not-attached", f"It is not attached: its sessions are not listed. {_attach(store)}")
        )
    hints = [*found.hints, *key_hints(store), *unreadable_hints(store)]
    if returned := store.discovery.get("returned", 0):
        problems.append(StoreProblem("returned", _sentence_on_returned(store, returned)))
    if odd := store.discovery.get("odd_ids", 0):
        sentence = (
            f"{odd:,} of its sessions {pluralize(odd, 'has an id that is,have ids that are')} no text, or longer than"
            f" {LONGEST_ID_BYTES:,} bytes: they are not listed, and not erased with a subject."
        )
        problems.append(StoreProblem("odd-ids", sentence))
    if swept := store.discovery.get("swept", 0):
        hints.append(
            f"{swept:,} time{pluralize(swept)} an agent wrote to an erased session, which was erased again. The agent"
            " still has the conversation in memory: stop the agent."
        )
    layout = "" if found.state == "down" else found.layout or _layout_of_kind(store)
    return replace(found, problems=tuple(problems), hints=tuple(hints), layout=layout)


def _sentence_on_returned(store: SessionStore, returned: int) -> str:
    what = f"{returned:,} erased session{pluralize(returned, ' has,s have')} returned: an agent that was still running"
    if Capability.ERASE_SESSIONS in backend_for(store).capabilities:
        return f"{what} wrote to it again. Each discovery erases such sessions again, until the agent stops."
    return (
        f"{what} wrote to it again, and this store cannot erase. Stop the agent, and delete the session in the store."
    )


def _faults_of_fence(store: SessionStore, tables: StoreTables) -> Iterator[StoreProblem]:
    installed = installed_triggers(store)
    if not installed:
        sentence = "It is not attached: its sessions are not listed, and erased sessions can return."
        yield StoreProblem("not-attached", f"{sentence} {_attach(store)}")
        return
    if store.attached_at is None:
        yield StoreProblem("unfinished", f"The last attach_store for this store did not finish. {_attach(store)}")
    faults = [faults_of(trigger, installed.get(trigger.name)) for trigger in triggers_for(store, tables)]
    other_mode = next(mode for mode in SessionStore.FenceMode if mode != store.fence_mode)
    in_other_mode = [
        faults_of(trigger, installed.get(trigger.name)) for trigger in triggers_for(store, tables, other_mode)
    ]
    if any(fault.function for fault in faults) and not any(fault.function for fault in in_other_mode):
        sentence = f"Its fence is in {other_mode.value} mode and should be in {store.fence_mode} mode."
        yield StoreProblem("mode-differs", f"{sentence} {_attach(store)}")
        faults = in_other_mode
    for problem in (problem for fault in faults for problem in (fault.function, fault.trigger) if problem):
        yield StoreProblem(problem.code, f"{problem.sentence} {_attach(store)}")
    notes = [(trigger, faults_of(trigger, installed.get(trigger.name))) for trigger in notes_for(store, tables)]
    if unsound := [trigger for trigger, fault in notes if fault.function or fault.trigger]:
        tables_of = " and ".join(sorted({str(trigger.table) for trigger in unsound}))
        sentence = (
            f"Not all writes to {tables_of} by roles other than the agents' are recorded: triggers are missing or"
            " changed."
        )
        yield StoreProblem("unrecorded", f"{sentence} {_attach(store)}")
    if not has_registry_key():
        yield StoreProblem(
            "registry-key-missing",
            "The registry has lost its unique key session_record_fence: a write in progress can get past an erasure."
            " Its migration, sessions_app 0002, has the definition.",
        )


def _unsaid(store: SessionStore) -> Iterator[str]:
    if store.attached_at and not store.agent_roles:
        yield (
            "The agents' database roles are not set, so SQL writes to their tables by others are not recorded. Run"
            f" attach_store {store} --agent-role with each of them."
        )


def _slow_or_wrong(store: SessionStore, tables: StoreTables) -> Iterator[StoreProblem]:
    if not any(index.is_valid for index in tables.time_indexes):
        if tables.time_indexes:
            sentence = (
                f"The index {tables.time_indexes[0].name} of {tables.messages} is invalid: its build was interrupted."
            )
            yield StoreProblem("index-invalid", f"{sentence} {_attach(store)}")
        else:
            sentence = f"{tables.messages} has no index on (session_id, created_at): long sessions open slowly."
            yield StoreProblem("index-missing", f"{sentence} {_attach(store)}")
    if tables.messages.columns["created_at"].may_be_empty:
        sentence = f"created_at of {tables.messages} may be empty; items without a time are not shown."
        yield StoreProblem("times-may-be-empty", sentence)
    yield from _ids_running_out(tables)
    if not tables.sessions.columns["updated_at"].has_zone:
        yield from _wrong_zone(store, tables)


def _ids_running_out(tables: StoreTables) -> Iterator[StoreProblem]:
    for last, sequence_limit in fetch(LAST_ID, [tables.messages.identifier.as_string(None)]):
        limit = min(sequence_limit, LARGEST[tables.messages.columns["id"].type])
        if last is not None and last > IDS_USED_UP_AT * limit:
            yield StoreProblem(
                "ids-running-out",
                f"{tables.messages} has used {last:,} of {limit:,} ids; after the last one no agent can write. Change"
                " the column id, and its sequence, to bigint.",
            )


def _wrong_zone(store: SessionStore, tables: StoreTables) -> Iterator[StoreProblem]:
    """Times in another zone than the store's: detected in the rows or, without evidence there, in the configuration."""
    remedy = (
        f"Set AGENT_TIMEZONE to the agents' zone and run attach_store {store}."
        if store.name == MAIN_STORE
        else f"Run attach_store {store} --timezone with the agents' zone."
    )
    query = WRITTEN_LATELY.format(
        zone=sql.Literal(store.writer_timezone),
        records=tables.records,
        sessions=tables.sessions.identifier,
        store_id=sql.Literal(store.pk),
        attached_at=sql.Literal(store.attached_at),
    )
    ((compared, differing, off),) = fetch(query)
    if differing:
        # One agent can write any time for its own sessions, which tells nothing about those of the others.
        is_zone = 2 * differing >= compared and abs(off) <= ZONES_SPAN
        yield StoreProblem(
            "wrong-zone" if is_zone else "other-times",
            f"{differing} of the {compared} sessions written last have times that are not in {store.writer_timezone}:"
            f" they are off by {off.total_seconds() / 3600:+.4g} hours."
            f" {remedy if is_zone else 'An agent writes them in another zone, or writes times of its own.'}",
        )
    if compared:
        return
    for place, zone in fetch(CONFIGURED_ZONES, {"messages": tables.messages.oid, "zone": store.writer_timezone}):
        yield StoreProblem(
            "zone-differs",
            f"Agents write in the zone {zone} (setting of the {place}) unless they choose another, but the store is"
            f" read as {store.writer_timezone}. {remedy}",
        )


def _about(*tables: Table) -> list[int]:
    """Number of rows of each table: exact if they are few, else estimated. One query."""
    cap = sql.Literal(COUNTED_EXACTLY)
    asked = [
        ROWS.format(number=sql.Literal(number), table=table.identifier, cap=cap, oid=sql.Literal(table.oid))
        for number, table in enumerate(tables)
    ]
    rows = fetch(sql.SQL("{} ORDER BY number").format(sql.SQL(" UNION ALL ").join(asked)))
    return [counted if counted < COUNTED_EXACTLY else max(counted, estimated) for _, counted, estimated in rows]


def _attach(store: SessionStore) -> str:
    return f"Run attach_store {store}."
