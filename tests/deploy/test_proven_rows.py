"""Rows of our tables are changed by an actor whom the application has proved; the role's password is not enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils.timezone import now

from memadmin.accounts.grants import services as grants
from memadmin.accounts.models import ContentGrant
from memadmin.audit.models import AuditActor, AuditDetail, AuditEvent
from memadmin.deploy.roles import APPLICATION, Roles, columns_of, our_tables, rights_of
from memadmin.erasure.models import SubjectRequest
from sessions_app.models import Redaction, SessionStore, Subject, SubjectAlias
from tests.agents import run_sql, second_connection
from tests.approvals import approve_grant
from tests.builders import make_session, make_subject
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.deploy.test_approvals_by_sql import asked_grant
from tests.erasure.batches import approved_batch, csv_of, uploaded, work_off_batch
from tests.erasure.builders import approved, work_off
from tests.people import person, proven
from tests.runs.working import work_off as work_off_runs
from tests.sessions.redacting.test_redaction_approval import LIMIT, ask, left_in, session_with

NOBODY = "the actor is not proven"

TRUSTING = """
CREATE OR REPLACE FUNCTION memadmin_require_actor_of_rows() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'
"""
"""The broken variant."""

WITHOUT: Mapping[str, str] = {
    **dict.fromkeys(("account_emailconfirmation", "socialaccount_socialtoken"), "always empty; it can only be deleted"),
    **dict.fromkeys(("audit_event", "audit_detail"), "an event without a proof is one of its role"),
    **dict.fromkeys(
        ("audit_anchor", "audit_checkpoint", "audit_leaf", "audit_node", "audit_pending", "audit_verdict"),
        "the verifier finds what is wrong in the index of the log",
    ),
    "django_admin_log": "nothing depends on it: the audit log has every change",
    "django_session": "data is signed for its row; without its row nobody is signed in",
    **dict.fromkeys(("home_countedday", "home_daycount"), "numbers of charts"),
    **dict.fromkeys(("home_readnotification", "home_savedview"), "how one person looks at lists; opens no row"),
    "memadmin_cache": "limits of attempts, and used codes; it opens nothing by itself",
    **dict.fromkeys(
        ("procrastinate_events", "procrastinate_jobs", "procrastinate_periodic_defers", "procrastinate_workers"),
        "a job only wakes up a service, which finds what is to be done in other tables",
    ),
    "usersessions_usersession": "what the page of open sessions shows; it opens none",
}
"""Tables that may be changed without a proof, and why."""


def columns(table: str) -> list[str]:
    with connection.cursor() as cursor:
        return [column.name for column in connection.introspection.get_table_description(cursor, table)]


def writes(kind: str, table: str) -> Iterator[str]:
    """A statement for each way in which a role may write a table."""
    by_column = columns_of(kind, table, columns(table))
    may = {*rights_of(kind, table), *(right for right, names in by_column.items() if names)}
    if "INSERT" in may:
        yield f"INSERT INTO {table} DEFAULT VALUES"
    if "UPDATE" in may:
        column = by_column.get("UPDATE", columns(table))[0]
        yield f"UPDATE {table} SET {column} = {column}"
    if "DELETE" in may:
        yield f"DELETE FROM {table}"


def written(kind: str) -> Iterator[str]:
    """Each write of this role to a table that wants a proof."""
    for table in our_tables():
        if table not in WITHOUT:
            yield from writes(kind, table)


def proof_is_wanted(statement: str) -> bool:
    return NOBODY in refusal(statement)


@pytest.mark.django_db
def test_tables_without_the_rule_are_named_with_a_reason(ours: Roles) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgfoid = 'memadmin_require_actor_of_rows'::regproc"
            " AND tgenabled = 'O'"
        )
        with_rule = {table for (table,) in cursor.fetchall()}
    may_write = {table for table in our_tables() if any(any(writes(kind, table)) for kind in APPLICATION)}
    assert may_write - with_rule == set(WITHOUT)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", APPLICATION)
def test_every_table_is_changed_by_a_proven_actor_alone(ours: Roles, kind: str) -> None:
    statements = list(written(kind))
    assert len(statements) > 60
    with connected_as(ours[kind]):
        assert [statement for statement in statements if not proof_is_wanted(statement)] == []
        with in_a_command():
            assert [statement for statement in statements if proof_is_wanted(statement)] == []
    with connected_as(ours["migrator"]):
        assert [statement for statement in statements if proof_is_wanted(statement)] == []


@pytest.mark.django_db
@pytest.mark.parametrize("kind", APPLICATION)
def test_broken_variant_without_the_trigger_asks_for_no_proof(ours: Roles, kind: str) -> None:
    statements = list(written(kind))
    run_sql(TRUSTING)
    with connected_as(ours[kind]):
        assert [statement for statement in statements if proof_is_wanted(statement)] == []


@pytest.mark.django_db
@pytest.mark.parametrize("kind", APPLICATION)
def test_log_erases_nothing_for_an_event_of_a_role(ours: Roles, kind: str) -> None:
    """With rights of its owner, so no trigger asks."""
    clerk = person("support")
    named = AuditActor.objects.get(user_id=clerk.pk)
    detailed = AuditDetail.objects.earliest("pk").pk

    def erase() -> None:
        for event_type, about, function in (
            ("details.erased", f"shown => '{{{detailed}}}'", "memadmin_erase_details"),
            ("name.erased", f"object_kind => 'audit.auditactor', object_ref => '{named.ref}'", "memadmin_erase_name"),
        ):
            given = dict(each.split(" => ") for each in about.split(", "))
            with connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO audit_event (type, actor_kind, actor_ref, {', '.join(given)})"
                    f" VALUES ('{event_type}', 'person', '{named.ref}', {', '.join(given.values())}) RETURNING id"
                )
                cursor.execute(f"SELECT {function}(%s)", cursor.fetchone())

    def is_left() -> tuple[bool, bool]:
        return AuditDetail.objects.filter(pk=detailed).exists(), AuditActor.objects.filter(ref=named.ref).exists()

    with connected_as(ours[kind]):
        erase()
        assert is_left() == (True, True)
        with proven(clerk):
            erase()
        assert is_left() == (False, False)


# --- what else they would do: each was a way to change what another person decided ------------------------------------


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    return person("compliance", "reviewer")


def as_web(names: Roles, statement: str) -> str:
    """Why it is refused to the web server's role, in a connection in which nobody has acted; else it takes effect."""
    with transaction.atomic(), connected_as(names["web"]):
        reason = refusal(statement)
        if not reason:
            run_sql(statement)
    return reason


def test_line_that_nobody_approved_does_not_move_into_an_approved_batch(
    ours: Roles, officer: User, second: User
) -> None:
    make_subject("ada-1")
    bob = make_subject("bob-1")
    mine, theirs = uploaded(csv_of("bob-1"), by=officer), approved_batch(csv_of("ada-1"), by=officer, second=second)
    move = f"UPDATE erasure_batchline SET batch_id = {theirs.pk}, number = 999 WHERE batch_id = {mine.pk}"
    assert NOBODY in as_web(ours, move)
    work_off_batch(theirs)
    assert not SubjectRequest.objects.filter(subject=bob).exists()


def test_batch_keeps_the_name_of_its_uploader(ours: Roles, officer: User, second: User) -> None:
    """The worker has the key, and proves whoever is named there."""
    victim = person("support")
    make_subject("ada-1")
    batch = approved_batch(csv_of("ada-1"), by=officer, second=second)
    assert NOBODY in as_web(ours, f"UPDATE erasure_requestbatch SET uploaded_by_id = {victim.pk}")
    work_off_batch(batch)
    assert not AuditEvent.objects.filter(actor_ref=AuditActor.objects.get(user_id=victim.pk).ref).exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions_app_subjectalias SET key = 'carol-1' WHERE subject_id = '{ada}'",
        "UPDATE sessions_app_sessionrecord SET subject_id = '{ada}', subject_source = 'client',"
        " registered_at = now() + interval '1 second'",
    ],
)
def test_approved_erasure_gets_no_other_id_and_no_other_session(
    ours: Roles, officer: User, second: User, change: str
) -> None:
    ada: Subject = make_subject("ada-1")
    record = make_session("of bob", subject=make_subject("bob-1"))
    request = approved(ada, by=officer, second=second)
    assert NOBODY in as_web(ours, change.format(ada=ada.pk))
    assert not SubjectAlias.objects.filter(key="carol-1").exists()
    work_off(request)
    record.refresh_from_db()
    assert record.erased_at is None


@pytest.mark.parametrize(
    "change", ["ended_at = NULL", "expires_at = now() + interval '60 min', ended_at = NULL", "reviewed_at = now()"]
)
def test_grant_that_has_ended_stays_so(ours: Roles, officer: User, change: str) -> None:
    reader = person("support")
    grant = asked_grant(reader)
    approve_grant(grant, by=officer)
    grant.refresh_from_db()
    grants.end_grant(grant, by=officer)
    assert NOBODY in as_web(ours, f"UPDATE accounts_contentgrant SET {change}")
    grant.refresh_from_db()
    assert grants.open_grants(reader) == []
    assert grants.awaits_review(grant)


@pytest.mark.django_db(transaction=True)
def test_transaction_older_than_an_approval_does_not_use_it_again(kept_in_force: Roles) -> None:
    reader, officer = person("support"), person("compliance")
    grant = asked_grant(reader)
    with second_connection() as other:
        other.execute(f'SET SESSION AUTHORIZATION "{kept_in_force["web"]}"')
        other.commit()
        other.execute("SELECT 1")
        approve_grant(grant, by=officer)
        grants.end_grant(ContentGrant.objects.get(pk=grant.pk), by=officer)
        with pytest.raises(psycopg.Error, match=NOBODY):
            other.execute(
                "UPDATE accounts_contentgrant SET opened_at = clock_timestamp() + interval '3 hours', ended_at = NULL,"
                " expires_at = clock_timestamp() + interval '4 hours'"
            )
    assert grants.open_grants(reader, now() + timedelta(hours=3, minutes=30)) == []


REPLACED = (
    "WITH gone AS (DELETE FROM sessions_app_redaction RETURNING {columns})"
    " SELECT set_config('x.row', row_to_json(gone)::text, true) FROM gone;"
    " INSERT INTO sessions_app_redaction ({columns}) SELECT gen_random_uuid(), {others}"
    " FROM json_populate_record(NULL::sessions_app_redaction, current_setting('x.row')::json)"
)


@pytest.mark.parametrize("change", ["another", "without approval", "everywhere", "in another name"])
def test_redaction_stays_as_it_was_asked_for(
    kept_in_force: Roles, kept_main_store: SessionStore, settings: Any, change: str
) -> None:
    settings.REDACT_ALONE_PLACES = LIMIT
    record, small = session_with(LIMIT + 1), session_with(1, "few")
    by, victim = person("compliance"), person("support")
    others = (
        "record_id, session_id, item_id, item_mark, subject_id, is_limited, shown, shown_places, text, takes_all,"
        " takes_compactions, reason, requested_by_id, expires_at, run_id"
    )
    statements: dict[str, tuple[Callable[[], object], str]] = {
        "another": (
            lambda: ask(small, by, typed=""),
            f"UPDATE sessions_app_redaction SET record_id = '{record.pk}', session_id = 's', is_limited = false",
        ),
        "without approval": (lambda: ask(record, by), REPLACED.format(columns=f"id, {others}", others=others)),
        "everywhere": (lambda: ask(record, by), "UPDATE sessions_app_redaction SET is_limited = false"),
        "in another name": (
            lambda: ask(small, by, typed=""),
            f"UPDATE sessions_app_redaction SET requested_by_id = {victim.pk}",
        ),
    }
    request, statement = statements[change]
    request()
    assert NOBODY in as_web(kept_in_force, statement)
    work_off_runs()
    assert left_in("s") == LIMIT + 1
    assert Redaction.objects.get().requested_by == by
