"""Of an erased session only a digest of its id stays on record, and it keeps the session out all the same.

Under READ COMMITTED a late writer sees the tombstone; under the other levels it may have an older snapshot, and a row
that each new tombstone changes stops it. Both variants without one of the two leak, and are among the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from psycopg import IsolationLevel
from sqlalchemy.exc import DBAPIError

from memadmin.audit.models import AuditDetail, AuditEvent
from sessions_app import registry
from sessions_app.models import ErasedKey, FenceOutbox, SessionRecord, SessionStore, Subject, SubjectAlias, SubjectKind
from sessions_app.services.attaching import attach_store, detach_store
from sessions_app.services.erasing_subjects import fence_subject, forget_keys, forget_sessions
from sessions_app.services.subjects import subject_for_key
from sessions_app.stores import backend_for
from tests.agents import add_items, attach_main_store, in_sdk, run_sql, second_connection, value_of
from tests.meanwhile import comes_to_wait
from tests.waiting import PATIENCE_SECONDS

LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]

PLAIN = "SELECT count(*) FROM sessions_app_sessionrecord WHERE session_id = 'gone'"
STORED = "SELECT count(*) FROM agent_sessions WHERE session_id = 'gone'"
REGISTER = "SELECT memadmin_register_session('main', 'gone')"
REGISTER_KEY = "SELECT memadmin_register_session('main', 'new', 'user', 'ada')"
WRITE = "INSERT INTO agent_sessions (session_id) VALUES ('gone')"

REFUSED = {
    IsolationLevel.READ_COMMITTED: {registry.ERASED},
    IsolationLevel.REPEATABLE_READ: {registry.ERASED, "40001"},
    IsolationLevel.SERIALIZABLE: {registry.ERASED, "40001"},
}


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    return attach_main_store()


def erased(store: SessionStore) -> Subject:
    """A fenced subject with the erased session `gone`, of which the ids are still there."""
    add_items("gone", "hello")
    subject = subject_for_key(SubjectKind.USER, "ada")
    SessionRecord.objects.filter(session_id="gone").update(subject=subject, ticket="4711", agent="Bot", labels=["x"])
    with transaction.atomic():
        fence_subject(subject)
    backend_for(store).erase_session("gone")
    return subject


def forget(subject: Subject) -> None:
    assert forget_sessions(subject, at_most=10) == 1
    assert forget_keys(subject) == 1


def test_the_record_keeps_nothing_that_names_the_person(store: SessionStore) -> None:
    subject = erased(store)
    before = set(AuditDetail.objects.values_list("pk", flat=True))
    forget(subject)
    record = SessionRecord.objects.get(subject=subject)
    assert record.is_forgotten
    assert (record.ticket, record.agent, record.labels) == ("", "", [])
    assert record.session_id.startswith("erased:")
    assert len(record.session_id) == len("erased:") + 64
    assert not SubjectAlias.objects.exists()
    assert ErasedKey.objects.get().subject_id == subject.pk
    assert set(AuditDetail.objects.values_list("pk", flat=True)) <= before, "the log has what was to be forgotten"
    assert AuditEvent.objects.filter(type="session.forgotten", object_ref=subject.pk).count() == 1
    assert forget_sessions(subject, at_most=10) == forget_keys(subject) == 0


def test_sessions_are_forgotten_in_chunks_and_only_erased_ones(store: SessionStore) -> None:
    subject = erased(store)
    rows = [SessionRecord(store=store, session_id=f"s{n}", erased_at=subject.erased_at) for n in range(3)]
    SessionRecord.objects.bulk_create([*rows, SessionRecord(store=store, session_id="still there")])
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE sessions_app_sessionrecord SET subject_id = %s", [subject.pk])
        cursor.execute("SET session_replication_role = DEFAULT")
    assert [forget_sessions(subject, at_most=3) for _ in range(3)] == [3, 1, 0]
    assert SessionRecord.objects.get(is_forgotten=False).session_id == "still there"


def test_a_late_write_is_refused_as_before(store: SessionStore) -> None:
    forget(erased(store))
    for _ in range(2):
        with pytest.raises(DBAPIError, match="This session was erased and can never be written to again") as refusal:
            add_items("gone", "are you there?")
        assert getattr(refusal.value.orig, "sqlstate", None) == registry.ERASED
        in_sdk(lambda tables: tables.session("gone").clear_session())
    assert value_of(PLAIN) == value_of(STORED) == 0
    add_items("other", "hello")


def test_a_late_write_is_dropped_and_noted_without_its_id(agent_tables: None) -> None:
    store = attach_main_store(mode="drop")
    subject = erased(store)
    forget(subject)
    for _ in range(2):
        add_items("gone", "one", "two")
        in_sdk(lambda tables: tables.session("gone").clear_session())
    add_items("here", "hello")
    assert value_of(PLAIN) == value_of(STORED) == value_of("SELECT count(*) - 1 FROM agent_messages") == 0
    record = SessionRecord.objects.get(subject=subject)
    assert (
        list(FenceOutbox.objects.values_list("session_id", "event"))
        == [(record.session_id, registry.WRITE_DROPPED)] * 2
    )


def test_tombstones_are_looked_up_by_their_index_in_a_registry_that_was_empty(store: SessionStore) -> None:
    """A plan of an empty table is kept while a large store is attached; it must fit a full one."""
    insert = "INSERT INTO sessions_app_sessionrecord (store_id, session_id) SELECT %s, 'no ' || generate_series(1, 300)"
    scans = "SELECT pg_stat_get_xact_numscans('record_forgotten'::regclass)"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE sessions_app_sessionrecord CASCADE")
        # Also those of earlier transactions that are not reported yet.
        before = cursor.execute(scans).fetchone()[0]
        cursor.execute(insert, [store.pk])
        assert cursor.execute(scans).fetchone()[0] - before == 300


def test_a_store_that_is_attached_again_leaves_it_out(store: SessionStore) -> None:
    forget(erased(store))
    detach_store(store)
    add_items("gone", "nobody kept me out")
    attach_store(store)
    assert value_of(PLAIN) == 0
    assert not registry.check(store).problems


def test_a_trigger_of_an_older_version_is_reported_and_replaced(store: SessionStore) -> None:
    name = f"memadmin_register_{store.pk}"
    run_sql(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
        " SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NEW; END'"
    )
    assert "function-changed" in {problem.code for problem in registry.check(store).problems}
    attach_store(store)
    assert not registry.check(store).problems


# --- interleavings ----------------------------------------------------------------------------------------------------


def ending_of(writer: psycopg.Connection, statement: str) -> str:
    """SQLSTATE of a refused transaction; empty for one that was committed."""
    try:
        writer.execute(statement)
        writer.commit()
    except psycopg.Error as problem:
        writer.rollback()
        return problem.sqlstate or "?"
    return ""


def with_an_older_snapshot(
    level: IsolationLevel, before: Callable[[], Any], act: Callable[[], Any], statement: str
) -> str:
    """How a transaction ends that began before all this."""
    with second_connection() as writer:
        writer.isolation_level = level
        writer.execute("SELECT count(*) FROM sessions_app_sessionrecord")
        before()
        act()
        return ending_of(writer, statement)


def with_a_lock_held(level: IsolationLevel, act: Callable[[], Any], statement: str) -> str:
    """How a transaction ends that comes while another forgets, and waits for it."""
    with second_connection() as writer, ThreadPoolExecutor(1) as threads:
        writer.isolation_level = level
        with transaction.atomic():
            act()
            writing = threads.submit(ending_of, writer, statement)
            assert comes_to_wait(writing, on=writer)
        return writing.result(PATIENCE_SECONDS)


@pytest.mark.parametrize("statement", [WRITE, REGISTER, REGISTER_KEY], ids=["write", "register", "register a key"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_snapshot_from_before_does_not_pass(store: SessionStore, level: IsolationLevel, statement: str) -> None:
    """Not even one from before the session and the key were there at all."""
    subjects: list[Subject] = []
    ending = with_an_older_snapshot(
        level, lambda: subjects.append(erased(store)), lambda: forget(subjects[0]), statement
    )
    assert ending in REFUSED[level]
    assert value_of(PLAIN) == value_of(STORED) == SubjectAlias.objects.count() == 0


@pytest.mark.parametrize("statement", [WRITE, REGISTER], ids=["write", "register"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_one_that_comes_meanwhile_does_not_pass(store: SessionStore, level: IsolationLevel, statement: str) -> None:
    subject = erased(store)
    ending = with_a_lock_held(level, lambda: forget_sessions(subject, at_most=10), statement)
    assert ending in REFUSED[level]
    assert value_of(PLAIN) == value_of(STORED) == 0


@contextmanager
def replaced(function: str, old: str, new: str) -> Iterator[None]:
    """A broken variant of one of our functions."""
    definition = value_of(f"SELECT pg_get_functiondef('{function}'::regprocedure)")
    assert old in definition
    run_sql(definition.replace(old, new))
    try:
        yield
    finally:
        run_sql(definition)


def test_broken_variant_without_the_lock_an_older_snapshot_passes(store: SessionStore) -> None:
    subjects: list[Subject] = []
    with replaced("memadmin_wait_for_tombstones()", "PERFORM FROM sessions_app_tombstonelock FOR SHARE", "NULL"):
        ending = with_an_older_snapshot(
            IsolationLevel.REPEATABLE_READ, lambda: subjects.append(erased(store)), lambda: forget(subjects[0]), WRITE
        )
    assert ending == ""
    assert value_of(PLAIN) == value_of(STORED) == 1


@pytest.mark.parametrize("statement", [WRITE, REGISTER], ids=["write", "register"])
def test_broken_variant_without_the_digest_a_late_write_passes(store: SessionStore, statement: str) -> None:
    subject = erased(store)
    with replaced("memadmin_refuse_forgotten()", "IF memadmin_is_forgotten(NEW.store_id, NEW.session_id)", "IF false"):
        ending = with_a_lock_held(
            IsolationLevel.READ_COMMITTED, lambda: forget_sessions(subject, at_most=10), statement
        )
    assert ending == ""
    assert value_of(PLAIN) == 1
