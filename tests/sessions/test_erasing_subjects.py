"""An erased subject stays erased: nothing comes to it, nothing leaves it, and a new start is a new subject."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.retention.holds.services import NothingToHold
from memadmin.retention.models import LegalHold
from sessions_app.models import (
    ErasedKey,
    SessionRecord,
    Subject,
    SubjectAlias,
    SubjectKind,
    SubjectSource,
)
from sessions_app.registry import ERASED
from sessions_app.services import patterns, sessions, subjects
from sessions_app.services.discovery import discover, discover_sessions
from sessions_app.services.erasing_subjects import (
    NotErased,
    fence_subject,
    forget_keys,
    forget_sessions,
    reopen_key,
)
from sessions_app.services.subjects import SubjectWasErased
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import second_connection, user
from tests.builders import make_session, make_store, make_subject
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.people import person
from tests.retention.builders import make_hold
from tests.stores.sqlite_files import SqliteAgent

USER = SubjectKind.USER

pytestmark = pytest.mark.django_db


@pytest.fixture
def support(db: None) -> User:
    return person("support")


@pytest.fixture
def ada(db: None) -> Subject:
    """Fenced, with her id and a session that is not erased yet."""
    subject = make_subject("ada")
    make_session("a", subject=subject)
    fence_subject(subject)
    return subject


def register(session_id: str, key: str = "") -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_register_session('main', %s, 'user', %s)", [session_id, key])


def sqlstate_of(refused: pytest.ExceptionInfo[DatabaseError]) -> str:
    return str(getattr(refused.value.__cause__, "sqlstate", ""))


def test_the_whole_merged_group_is_fenced(support: User) -> None:
    one, other, third, stranger = make_subject(), make_subject(), make_subject(), make_subject()
    subjects.merge_subjects(one, other, by=support)
    subjects.merge_subjects(other, third, by=support)
    one.refresh_from_db()
    for _ in range(2):
        fence_subject(one)
        assert set(Subject.objects.exclude(erased_at=None)) == {one, other, third}
    stranger.refresh_from_db()
    assert stranger.erased_at is None
    with pytest.raises(SubjectWasErased), transaction.atomic():
        subjects.undo_merge(one, by=support)


def test_agents_register_nothing_for_it(ada: Subject) -> None:
    for session_id, key in (("b", "ada"), ("a", "ada")):
        with pytest.raises(DatabaseError, match="was erased") as refused:
            register(session_id, key)
        assert sqlstate_of(refused) == ERASED
    assert not SessionRecord.objects.filter(session_id="b").exists()
    register("b", "eve")


WAYS: dict[str, Callable[[Subject, User], Any]] = {
    "attach": lambda ada, by: sessions.attach_sessions([make_session()], ada, by=by),
    "attach away": lambda ada, by: sessions.attach_sessions([the_session()], make_subject(), by=by),
    "detach": lambda ada, by: sessions.detach_sessions([the_session()], by=by),
    "add an id": lambda ada, by: subjects.add_alias(ada, kind=USER, key="L-1", by=by),
    "remove an id": lambda ada, by: subjects.remove_alias(extra_alias(ada), by=by),
    "merge into": lambda ada, by: subjects.merge_subjects(make_subject(), ada, by=by),
    "merge from": lambda ada, by: subjects.merge_subjects(ada, make_subject(), by=by),
    "by key": lambda ada, by: subjects.subject_for_key(USER, "ada"),
}


def the_session() -> SessionRecord:
    return SessionRecord.objects.get(session_id="a")


def extra_alias(subject: Subject) -> SubjectAlias:
    """As if it had been there before the fence."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        alias = SubjectAlias.objects.create(subject=subject, kind=USER, key="L-2")
        cursor.execute("SET session_replication_role = DEFAULT")
    return alias


@pytest.mark.parametrize("way", WAYS)
def test_nothing_comes_to_it_and_nothing_leaves_it(way: str, ada: Subject, support: User) -> None:
    with pytest.raises(SubjectWasErased, match="The data of this subject was erased") as refused, transaction.atomic():
        WAYS[way](ada, support)
    assert "ada" not in str(refused.value)
    ada.refresh_from_db()
    assert ada.merged_into is None
    assert the_session().subject == ada


def test_the_page_says_so(client: Client, ada: Subject, support: User) -> None:
    client.force_login(support)
    for address, given in (
        (f"/subjects/{ada.pk}/aliases/", {"kind": "user", "key": "L-1"}),
        ("/sessions/attach/", {"session": [str(make_session().pk)], "kind": "user", "key": "ada"}),
    ):
        answer = client.post(address, given)
        assert answer.status_code == 409, address
        assert "The data of this subject was erased" in answer.content.decode()


def test_a_pattern_leaves_its_sessions_without_a_subject(ada: Subject, support: User) -> None:
    store = make_store()
    patterns.add_pattern(store, name="one", text="c_{subject}:{ticket}", subject_kind=USER, by=support)
    make_session("c_ada:7"), make_session("c_eve:8")
    assert patterns.apply_patterns(store) == 1
    refused = SessionRecord.objects.get(session_id="c_ada:7")
    assert (refused.subject, refused.ticket) == (None, "7")
    forget_keys(ada)
    make_session("c_ada:9")
    assert patterns.apply_patterns(store) == 0
    assert SubjectAlias.objects.get().key == "eve"


def test_a_hold_stops_an_erasure_and_is_too_late_after_it(ada: Subject, support: User) -> None:
    assert make_hold(ada, by=support).subject == ada
    forget_keys(ada)
    with pytest.raises(NothingToHold, match="nothing is left to hold"):
        make_hold(ada, by=support)
    assert LegalHold.objects.count() == 1


@pytest.mark.parametrize("change", ["SET erased_at = NULL", "SET erased_at = now()"])
def test_the_mark_stays(change: str, ada: Subject) -> None:
    with pytest.raises(DatabaseError, match="stays as it is"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE sessions_app_subject {change}")
    with pytest.raises(DatabaseError, match="stays as it is"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM sessions_app_subject WHERE erased_at IS NOT NULL")


def test_its_ids_are_removed_last_and_not_without_a_digest(ada: Subject) -> None:
    with pytest.raises(DatabaseError, match="its IDs are removed last"), transaction.atomic():
        SubjectAlias.objects.all().delete()
    assert forget_keys(ada) == 1
    assert not SubjectAlias.objects.exists()
    with pytest.raises(ValueError, match="fenced"):
        forget_keys(make_subject())


# --- the subject of a session -----------------------------------------------------------------------------------------


def test_what_an_agent_registered_first_stays() -> None:
    """Else a reused session id would take a session out of an erasure."""
    make_store()
    register("a", "ada")
    with pytest.raises(DatabaseError, match="registered for another subject") as refused:
        register("a", "eve")
    assert sqlstate_of(refused) == "P0E06"
    register("a")
    register("a", "ada")
    assert the_session().subject == subjects.known_subject("user", "ada")


def test_another_id_of_the_same_person_is_no_other_subject(support: User) -> None:
    make_store()
    register("a", "ada")
    register("b", "L-1")
    ada, other = subjects.known_subject("user", "ada"), subjects.known_subject("user", "L-1")
    subjects.merge_subjects(other, ada, by=support)
    register("a", "L-1")
    register("b", "ada")
    assert the_session().subject == ada


@pytest.mark.parametrize("source", ["", SubjectSource.PATTERN, SubjectSource.IMPORT])
def test_an_agent_knows_better_than_a_pattern(source: str) -> None:
    make_session("a", subject=make_subject("ada"), subject_source=source)
    register("a", "eve")
    assert the_session().subject == subjects.known_subject("user", "eve")
    assert the_session().subject_source == SubjectSource.CLIENT


# --- tombstones in stores without a fence -----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
class TestDiscovery:
    @pytest.fixture
    def agent(self, tmp_path: Path) -> SqliteAgent:
        """Its session was erased and forgotten while it was running, and it wrote once more."""
        agent = SqliteAgent(tmp_path)
        agent.add("gone", user("one"))
        discover(agent.store)
        subject = make_subject("ada")
        SessionRecord.objects.filter(session_id="gone").update(subject=subject)
        with transaction.atomic():
            fence_subject(subject)
        SqliteBackend(agent.store).erase_session("gone")
        assert forget_sessions(subject, at_most=10) == 1
        agent.add("gone", user("two"))
        return agent

    def test_what_returned_is_found_by_its_digest_and_erased_again(self, agent: SqliteAgent) -> None:
        discover_sessions()
        assert agent.read("gone") == []
        assert not SessionRecord.objects.filter(session_id="gone").exists()
        event = AuditEvent.objects.get(type="session.erased_again")
        assert event.object_ref == SessionRecord.objects.get(is_forgotten=True).pk

    def test_without_the_digest_it_would_be_a_new_session(
        self, agent: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Even then the registry refuses it."""
        monkeypatch.setattr(type(SessionRecord.objects.all()), "forgotten", lambda self, store, ids: set())
        with pytest.raises(DatabaseError, match="This session was erased"):
            discover(agent.store)


# --- a new start ------------------------------------------------------------------------------------------------------


def test_a_person_who_comes_back_gets_a_new_epoch(ada: Subject, support: User) -> None:
    with pytest.raises(NotErased):
        reopen_key(USER, "ada", by=support)
    SessionRecord.objects.update(erased_at=now())
    forget_sessions(ada, at_most=10)
    forget_keys(ada)
    with pytest.raises(SubjectWasErased):
        subjects.subject_for_key(USER, "ada")
    back = reopen_key(USER, "ada", by=support)
    assert back != ada
    assert (back.epoch, back.label) == (1, "ada")
    assert AuditEvent.objects.get(type="subject.reopened").object_ref == back.pk
    register("new", "ada")
    assert SessionRecord.objects.get(session_id="new").subject_epoch == 1
    with pytest.raises(DatabaseError, match="This session was erased"):
        register("a", "ada")
    with pytest.raises(NotErased):
        reopen_key(USER, "ada", by=support)
    # Again, and once more.
    fence_subject(back)
    forget_keys(back)
    assert ErasedKey.objects.get().epoch == 1
    assert reopen_key(USER, "ada", by=support).epoch == 2


def test_the_command_names_who_allows_it(ada: Subject, support: User, capsys: pytest.CaptureFixture[str]) -> None:
    forget_keys(ada)
    for given, said in (
        ({}, "--by"),
        ({"by": "nobody"}, "no active user"),
        ({"by": support.username}, "no role that allows this"),
    ):
        with pytest.raises(CommandError, match=said):
            call_command("reopen_subject", "ada", **given)
    officer = person("compliance")
    with pytest.raises(CommandError, match="No data was erased under this ID"):
        call_command("reopen_subject", "eve", by=officer.username)
    call_command("reopen_subject", "ada", by=officer.username)
    assert "epoch 1" in capsys.readouterr().out
    assert subjects.known_subject("user", "ada").epoch == 1


# --- at the same moment -----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
class TestMeanwhile:
    INSERTS = (
        "INSERT INTO memories_app_memory (subject_id, kind, statement) VALUES ('{0}', 'fact', 'Drinks tea.')",
        "INSERT INTO memories_app_signal (subject_id, kind, text) VALUES ('{0}', 'correction', 'Drinks tea.')",
        "INSERT INTO memories_app_recall (subject_id) VALUES ('{0}')",
        "UPDATE sessions_app_sessionrecord SET subject_id = '{0}' WHERE session_id = 'free'",
    )

    @pytest.mark.parametrize("number", range(len(INSERTS)))
    def test_what_is_under_way_is_waited_for(self, level: str, number: int) -> None:
        subject = make_subject("ada")
        make_session("free")
        with second_connection() as writer, somebody_else() as start:
            writer.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            writer.execute(self.INSERTS[number].format(subject.pk))
            fencing = start(lambda: fenced(subject))
            wait_until_blocked(fencing, by=writer)
            writer.commit()
            fencing.result()

    @pytest.mark.parametrize("number", range(len(INSERTS)))
    def test_what_comes_later_is_refused(self, level: str, number: int) -> None:
        subject = make_subject("ada")
        make_session("free")
        with somebody_else() as start:
            with transaction.atomic():
                fence_subject(subject)
                writing = start(lambda: written(level, self.INSERTS[number].format(subject.pk)))
                wait_until_blocked(writing)
            assert writing.result() == (ERASED if level == "READ COMMITTED" else "40001")


def fenced(subject: Subject) -> None:
    with transaction.atomic():
        fence_subject(subject)


def written(level: str, statement: str) -> str:
    """SQLSTATE of the refusal; empty without one."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            cursor.execute("SELECT 1")
            cursor.execute(statement)
    except DatabaseError as problem:
        return str(getattr(problem.__cause__, "sqlstate", "?"))
    return ""


@pytest.mark.django_db(transaction=True)
def test_broken_variant_without_the_lock_something_is_stored_after_the_fence() -> None:
    subject = make_subject("ada")
    make_session("free")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef('memadmin_refuse_erased(uuid[])'::regprocedure)")
        definition = cursor.fetchone()[0]
        cursor.execute(definition.replace("PERFORM FROM sessions_app_subject", "-- "))
    try:
        with second_connection() as writer:
            writer.execute("UPDATE sessions_app_sessionrecord SET subject_id = %s", [subject.pk])
            fenced(subject)
            writer.commit()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(definition)
    assert SessionRecord.objects.get().subject == subject
