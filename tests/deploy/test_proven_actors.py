"""Only the application itself names who acts: with its role alone, nobody becomes a person in the log."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.log import proofs
from memadmin.audit.log.actors import set_session_actor
from memadmin.audit.log.recording import record_each
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.deploy.roles import Roles
from memories_app.models import Memory, MemoryVersion
from tests.agents import run_sql, second_connection, value_of
from tests.audit.events import TRIED
from tests.builders import make_subject
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.people import person

pytestmark = pytest.mark.django_db

ADD_SUBJECT = "INSERT INTO sessions_app_subject (id) VALUES (gen_random_uuid())"
ADD_EVENT = "INSERT INTO audit_event (type, actor_kind, actor_ref) VALUES ('test.tried', 'person', '{}')"
SET = "SELECT set_config('memadmin.{}', '{}', true)"

BELIEVING = """
CREATE OR REPLACE FUNCTION memadmin_proven_actor(setting text) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT substring(current_setting(setting, true) FROM '^[a-z]+:[0-9a-f-]{36}') $$
"""
"""The broken variant: believes whoever sets the setting."""


@pytest.fixture
def clerk(db: None) -> User:
    return person("support")


@pytest.fixture
def ref(clerk: User) -> uuid.UUID:
    """The clerk as the log knows them; every role of the application may read it."""
    return AuditActor.objects.get(user_id=clerk.pk).ref


def who(event: AuditEvent) -> tuple[str, str]:
    return event.actor_kind, AuditActor.objects.get(ref=event.actor_ref).label


def latest() -> AuditEvent:
    return AuditEvent.objects.latest("number")


def forged(ref: uuid.UUID) -> list[str]:
    """Values of the settings that somebody with psql may try."""
    until = int(time.time()) + 3600
    return [f"person:{ref}", f"person:{ref}:{until}:{'0' * 64}", f"person:{ref}:{until}:", f"person:{ref}:x:y", ":::"]


@pytest.mark.parametrize("kind", ["web", "worker"])
def test_setting_made_by_hand_names_nobody(ours: Roles, ref: uuid.UUID, kind: str) -> None:
    with connected_as(ours[kind]):
        for value in forged(ref):
            run_sql(SET.format("actor", value))
            run_sql(SET.format("recorder", value))
            assert "the actor is not proven" in refusal(ADD_SUBJECT), value
            run_sql(ADD_EVENT.format(ref))
            assert who(latest()) == ("database", ours[kind]), value
            assert latest() in AuditEvent.objects.outside()


def test_broken_variant_without_the_check_believes_it(ours: Roles, ref: uuid.UUID) -> None:
    run_sql(BELIEVING)
    with connected_as(ours["web"]):
        run_sql(SET.format("actor", f"person:{ref}"))
        run_sql(ADD_SUBJECT)
        assert who(latest()) == ("person", "support")
        run_sql(SET.format("recorder", f"person:{ref}"))
        run_sql(ADD_EVENT.format(ref))
        assert who(latest()) == ("person", "support")


def test_cause_of_the_application_is_kept_whoever_acts(ours: Roles) -> None:
    with connected_as(ours["web"]), in_a_command(), audit.recording(TRIED) as cause:
        run_sql(ADD_SUBJECT)
        assert latest().cause == cause.id


def test_cause_made_by_hand_does_not_hide_a_change(ours: Roles) -> None:
    """By the owner of the tables, who changes them without an actor."""
    with connected_as(ours["migrator"]):
        run_sql(SET.format("cause", uuid.uuid4()))
        run_sql(ADD_SUBJECT)
        assert latest().cause is None
        assert latest() in AuditEvent.objects.outside()


@pytest.mark.parametrize("kind", ["web", "worker"])
def test_application_names_people_under_its_roles(ours: Roles, clerk: User, kind: str) -> None:
    with connected_as(ours[kind]), audit.acting(audit.person(clerk)):
        audit.record(TRIED)
        assert who(latest()) == ("person", "support")
        make_subject()
        assert {who(event) for event in AuditEvent.objects.filter(type__startswith="alias.")} == {("person", "support")}
        memory = Memory.objects.create(kind="fact", statement="Drinks tea.")
    assert MemoryVersion.objects.get(memory=memory).author_kind == "person"


def test_version_of_a_memory_has_no_author_by_hand(ours: Roles, ref: uuid.UUID) -> None:
    with connected_as(ours["migrator"]):
        run_sql(SET.format("actor", f"person:{ref}"))
        memory = Memory.objects.create(kind="fact", statement="Drinks tea.")
    assert MemoryVersion.objects.get(memory=memory).author_kind == "database"


def name_actor(*arguments: str | int | None) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_name_actor(%s, %s, %s, %s)", arguments)
        return str(cursor.fetchone()[0])


def acting(*arguments: str | int | None) -> object:
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_acting(%s, %s, %s, %s)", arguments)
        return cursor.fetchone()[0]


def test_proof_is_for_one_actor_and_five_minutes(ours: Roles, clerk: User, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = audit.person(clerk).columns
    proof, other = proofs.proof_of(*columns), person("reviewer")
    with connected_as(ours["web"]):
        assert name_actor(*columns, proof).startswith("person:")
        for wrong in (
            (*audit.person(other).columns, proof),
            ("job", *columns[1:], proof),
            (*columns[:2], None, proof),
            (*columns, proof[:-1] + ("0" if proof[-1] != "0" else "1")),
            (*columns, "tokens" + proof[proof.index(".") :]),
            (*columns, ""),
            (*columns, None),
            # Of an unknown key there is no hash.
            (*columns, f"x.{int(time.time())}."),
            (*columns, f"x.{int(time.time())}.0"),
        ):
            assert name_actor(*wrong) == "unproven", wrong
            assert acting(*wrong) is None, wrong
        began = time.time()
        for seconds, is_late in ((-200, False), (-400, True), (400, True)):
            monkeypatch.setattr(time, "time", lambda at=began + seconds: at)
            named = name_actor(*columns, proofs.proof_of(*columns))
            assert (named == "unproven") is is_late, seconds


@pytest.mark.django_db(transaction=True)
def test_no_proof_is_seen_in_the_activity_of_a_connection() -> None:
    """Others of the same role read there the text of its latest statement."""
    clerk = audit.person(person("support"))
    key = proofs.proof_of(*clerk.columns).partition(".")[0]
    ways: list[Callable[[], object]] = [
        lambda: audit.record(TRIED),
        lambda: audit.record(TRIED, details={"reason": "it"}),
        lambda: record_each(TRIED, [{}, {}]),
        lambda: audit.recording(TRIED).__enter__(),
        lambda: audit.prove(),
        lambda: set_session_actor(connection, clerk, local=True),
        lambda: audit.settings_for_triggers(),
    ]
    with second_connection(autocommit=True) as other, transaction.atomic(), audit.acting(clerk):
        here = value_of("SELECT pg_backend_pid()")
        for prove in ways:
            with CaptureQueriesContext(connection) as queries:
                prove()
            seen = other.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [here]).fetchone()
            assert seen
            assert re.search("memadmin_(acting|name_cause|name_actor)", seen[0])
            assert key not in seen[0]
            assert len(queries) > 0, "queries are counted all the same"


def test_keys_are_the_owners_alone(ours: Roles) -> None:
    for kind in ("web", "worker", "auditor", "agents"):
        with connected_as(ours[kind]):
            for statement in (
                "SELECT * FROM memadmin_secret",
                "DELETE FROM memadmin_secret",
                "SELECT memadmin_mac('tokens', 'x')",
                "SELECT memadmin_token('person', gen_random_uuid())",
                "SELECT memadmin_actor('person', 'x', 1)",
                "SELECT memadmin_name_person(1, 'x')",
                "SELECT memadmin_note_name('actor.forgotten', gen_random_uuid(), '', NULL)",
            ):
                assert "permission denied" in refusal(statement), (kind, statement)


def test_clocks_that_differ_are_told(ours: Roles, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time() + 400
    monkeypatch.setattr(time, "time", lambda: later)
    with connected_as(ours["web"]):
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "The clocks of this machine and of the database differ" in answer.json()["problems"][0]


def test_key_that_the_database_does_not_know_is_told(
    ours: Roles, clerk: User, client: Client, settings: Settings
) -> None:
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "another-" + "k" * 50
    with connected_as(ours["web"]):
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "does not know this MEMADMIN_SECRET_KEY" in answer.json()["problems"][0]
        audit.record(TRIED, by=clerk)
        assert who(latest()) == ("database", ours["web"])
        proofs.share_keys()
        assert client.get("/readyz").status_code == 503, "only the owner may"
    settings.SECRET_KEY_FALLBACKS = [old]
    with connected_as(ours["migrator"]):
        proofs.share_keys()
    for key in (settings.SECRET_KEY, old):
        settings.SECRET_KEY = key
        with connected_as(ours["web"]):
            assert client.get("/readyz").status_code == 200
            audit.record(TRIED, by=clerk)
            assert who(latest()) == ("person", "support")
    settings.SECRET_KEY_FALLBACKS = []
    settings.SECRET_KEY = "another-" + "k" * 50
    proofs.share_keys()
    settings.SECRET_KEY = old
    assert client.get("/readyz").status_code == 503, "it was removed"
