"""Who is recorded as acting, on every path that leads to the database."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from psycopg import sql

from memadmin import audit
from memadmin.audit.log import actors, ids, types
from memadmin.audit.models import AuditActor, AuditDetail, AuditEvent
from sessions_app.management.commands.worker import act_as_job
from tests.agents import run_sql, second_connection, value_of
from tests.builders import make_session
from tests.forks import said_by
from tests.people import person

pytestmark = pytest.mark.django_db

ACTOR = "SELECT current_setting('memadmin.actor', true)"
SOMEBODY = audit.Actor("job", "inspect")


def test_a_statement_that_may_change_a_watched_row_tells_the_database_who_acts() -> None:
    with audit.acting(SOMEBODY):
        run_sql("DO $$ BEGIN END $$")
    kind, ref, _, _ = str(value_of(ACTOR)).split(":")
    assert (kind, AuditActor.objects.get(ref=ref).label) == ("job", "inspect")


@pytest.mark.parametrize(
    ("statement", "is_watched"),
    [
        ("SELECT 1", False),
        ('INSERT INTO "django_session" (x) VALUES (1)', False),
        ('UPDATE "audit_actor" SET label = 1', False),
        ('  update ONLY "agent_messages" SET x = 1', True),
        ("DELETE FROM agent_messages", True),
        ('DELETE FROM "Agents"."django_session"', True),
        ("WITH gone AS (DELETE FROM x RETURNING 1) SELECT 1", True),
        ("/* a comment */ DO $$ BEGIN END $$", True),
        ("TRUNCATE x", True),
        ("MERGE INTO x USING y ON true", True),
        ("CREATE INDEX CONCURRENTLY x ON y (z)", False),
        ("-- a comment\nDELETE FROM agent_messages", True),
        ("SELECT 1; UPDATE agent_messages SET x = 1", True),
        ("SELECT ';' FROM agent_messages", False),
        (b"UPDATE agent_messages SET x = 1", True),
        (sql.SQL("UPDATE {} SET x = 1").format(sql.Identifier("agent_messages")), True),
        (sql.SQL("UPDATE {} SET x = 1").format(sql.Identifier("django_session")), False),
    ],
    ids=str,
)
def test_no_round_trip_is_spent_on_statements_that_watch_nothing(statement: Any, is_watched: bool) -> None:
    assert actors.may_be_governed(statement) is is_watched


def test_nobody_is_named_while_the_migrations_have_not_made_all_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """`migrate` notes each migration as it goes: the one with the function before the one with the table."""
    monkeypatch.setattr(actors, "_with_log", set())
    run_sql("ALTER TABLE audit_actor RENAME TO audit_actor_of_later")
    with audit.acting(SOMEBODY):
        run_sql("DO $$ BEGIN END $$")
    assert not value_of(ACTOR)


@pytest.mark.django_db(transaction=True)
def test_the_name_ends_with_its_transaction() -> None:
    with audit.acting(SOMEBODY):
        run_sql("DO $$ BEGIN END $$")
    assert not value_of(ACTOR)


def test_nobody_is_named_when_nobody_acts() -> None:
    with CaptureQueriesContext(connection) as queries:
        make_session()
    assert not any("set_config" in query["sql"] for query in queries)


def test_a_job_acts_under_its_name() -> None:
    class Job:
        id = 7
        task_name = "sessions_app.jobs.find_subjects"

    class Context:
        job = Job()

    async def work() -> audit.Actor | None:
        return await asyncio.to_thread(audit.current_actor)

    assert asyncio.run(act_as_job(work, Context(), None)) == audit.Actor("job", "find_subjects")  # type: ignore[arg-type]


def test_the_command_line_acts_as_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from memadmin import __main__

    seen: list[audit.Actor | None] = []
    monkeypatch.setattr(
        "django.core.management.execute_from_command_line", lambda argv: seen.append(audit.current_actor())
    )
    for name in ("attach_store", "shell", "migrate"):
        monkeypatch.setattr("sys.argv", ["manage.py", name])
        __main__.main()
    assert [actor and (actor.kind, actor.label) for actor in seen] == [
        ("command", "attach_store"),
        ("command", "shell"),
        None,
    ]


def test_whoever_asks_for_what_is_not_theirs_is_recorded(outsider: Client, operator: Client) -> None:
    record = make_session()
    assert outsider.get(record.get_absolute_url()).status_code == 403
    unknown = uuid.uuid4()
    assert operator.get(reverse("sessions:timeline", args=[unknown])).status_code == 404
    assert operator.get("/no/such/page/").status_code == 404
    assert Client().get(record.get_absolute_url()).status_code == 302
    events = list(AuditEvent.objects.filter(type="access.denied").order_by("number"))
    assert [(event.outcome, event.reason_code, event.shown) for event in events] == [
        ("denied", "forbidden", [record.pk]),
        ("denied", "not_found", [unknown]),
    ]
    labels = [AuditActor.objects.get(ref=event.actor_ref).label for event in events]
    assert labels == ["outsider", "support"]


def test_the_page_of_event_types_is_up_to_date() -> None:
    # In a process of its own: the tests declare types, too.
    told = said_by("audit_events")
    written = (settings.CHECKOUT_DIR / "docs" / "audit-events.md").read_text()
    assert told == written, "run manage.py audit_events --write"


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_the_first_act_of_somebody_else() -> None:
    """The first event of an actor may be in a transaction that lasts; the broken variant waits for a unique key."""
    somebody = person("support")
    acts = "SELECT memadmin_actor('job', 'brand new'), memadmin_actor('person', 'support', %s)"
    with second_connection() as first, second_connection() as second:
        second.execute("SET lock_timeout = '2s'")
        one = first.execute(acts, [somebody.pk]).fetchone()
        assert one
        assert second.execute(acts, [somebody.pk]).fetchone() == one
        first.rollback()
        second.commit()
        assert second.execute(acts, [somebody.pk]).fetchone() == one
        second.commit()
    assert AuditActor.objects.get(label="brand new").ref == one[0]


@pytest.mark.django_db(transaction=True)
def test_broken_variant_a_random_id_for_everybody_makes_them_wait() -> None:
    insert = "INSERT INTO audit_actor (kind, label) VALUES ('job', 'brand new') ON CONFLICT DO NOTHING"
    with second_connection() as first, second_connection() as second:
        second.execute("SET lock_timeout = '200ms'")
        first.execute(insert)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute(insert)
        second.rollback()


def test_an_account_that_goes_takes_along_who_it_was() -> None:
    somebody = person("support")
    somebody.email = "someone@example.org"
    somebody.save()
    event = AuditEvent.objects.get(id=record_tried(somebody))
    assert AuditActor.objects.get(ref=event.actor_ref).label == "support"
    gone = ids.ref("auth.user", somebody.pk)
    somebody.delete()
    assert not AuditActor.objects.filter(ref=event.actor_ref).exists()
    assert AuditEvent.objects.filter(type="user.row_deleted", object_ref=gone).exists()
    kept = " ".join(AuditDetail.objects.values_list("details", flat=True))
    assert "someone@example.org" not in kept
    assert '"username": "support"' not in kept


def test_an_account_that_is_switched_off_keeps_its_name_in_the_log() -> None:
    somebody = person("support")
    event = AuditEvent.objects.get(id=record_tried(somebody))
    User.objects.update(is_active=False)
    assert AuditActor.objects.get(ref=event.actor_ref).label == "support"


def record_tried(by: User) -> uuid.UUID:
    return audit.record(types.declare("test_acting.tried", "Only tests try this."), by=by)
