"""Events are written with the change they tell of, and nothing undeclared gets in."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import pytest
from django.db import Error, IntegrityError, connection, transaction

from memadmin import audit
from memadmin.audit.log import ids, types
from memadmin.audit.models import AuditActor, AuditDetail, AuditEvent, AuditPending
from sessions_app.models import SessionRecord
from tests.agents import run_sql, value_of
from tests.builders import make_session, make_subject
from tests.people import person

pytestmark = pytest.mark.django_db

TRIED = types.declare(
    "test.recorded",
    "Only tests try this.",
    object="sessions_app.sessionrecord",
    counters=("items",),
    reasons=("why_not",),
)


def test_an_event_says_who_did_what_to_what_and_when() -> None:
    by, session, subject = person("support"), make_session(), make_subject()
    event_id = audit.record(TRIED, by=by, target=session, subject=subject, counters={"items": 3}, reason_code="why_not")
    event = AuditEvent.objects.get(id=event_id)
    assert (event.type, event.object_kind, event.object_ref) == (
        "test.recorded",
        "sessions_app.sessionrecord",
        session.pk,
    )
    assert (event.subject_ref, event.counters, event.reason_code) == (subject.pk, {"items": 3}, "why_not")
    assert event.outcome == "succeeded"
    actor = AuditActor.objects.get(ref=event.actor_ref)
    assert (event.actor_kind, actor.kind, actor.label, actor.user_id) == ("person", "person", "support", by.pk)
    role = AuditActor.objects.get(ref=event.role_ref)
    assert (role.kind, role.label) == ("database", value_of("SELECT session_user"))
    assert abs(value_of("SELECT extract(epoch FROM clock_timestamp() - max(at)) FROM audit_event")) < 60
    assert AuditPending.objects.filter(number=event.number).exists()


def test_details_are_bound_by_a_salted_hash_and_can_be_erased() -> None:
    event_id = audit.record(TRIED, details={"reason": "Größe", "a": None})
    event = AuditEvent.objects.get(id=event_id)
    detail = event.detail
    assert detail.details == '{"a":null,"reason":"Größe"}'
    assert bytes(event.commitment or b"") == hashlib.sha256(bytes(detail.salt) + detail.details.encode()).digest()
    AuditDetail.objects.all().delete()
    assert AuditEvent.objects.filter(id=event_id).exists()


def test_where_nobody_is_known_the_database_role_acts() -> None:
    event = AuditEvent.objects.get(id=audit.record(TRIED))
    assert (event.actor_kind, event.actor_ref) == ("database", event.role_ref)


def test_whoever_acts_is_recorded_and_a_verb_may_say_better() -> None:
    with audit.acting(audit.Actor("command", "attach_store")):
        first = AuditEvent.objects.get(id=audit.record(TRIED))
        second = AuditEvent.objects.get(id=audit.record(TRIED, by=audit.Actor("job", "inspect")))
    assert [first.actor_kind, second.actor_kind] == ["command", "job"]
    assert AuditActor.objects.get(ref=first.actor_ref).label == "attach_store"


def test_a_renamed_person_keeps_one_ref() -> None:
    by = person("support")
    first = AuditEvent.objects.get(id=audit.record(TRIED, by=by))
    by.first_name, by.last_name = "Somebody", "Else"
    second = AuditEvent.objects.get(id=audit.record(TRIED, by=by))
    assert first.actor_ref == second.actor_ref
    assert AuditActor.objects.get(ref=first.actor_ref).label == "Somebody Else"


@pytest.mark.parametrize(
    "columns", [{"counters": {"unknown": 1}}, {"reason_code": "unknown"}, {"target": "subject"}], ids=str
)
def test_what_its_type_has_not_declared_is_refused(columns: dict[str, Any]) -> None:
    if "target" in columns:
        columns = {"target": make_subject()}
    with pytest.raises(audit.Undeclared):
        audit.record(TRIED, **columns)
    with pytest.raises(audit.Undeclared):
        audit.record(types.EventType("test.unknown", "Not declared."))


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_nothing_is_recorded() -> None:
    with pytest.raises(audit.NotInTransaction):
        audit.record(TRIED)
    assert audit.record_alone(TRIED) == AuditEvent.objects.get(type=TRIED.name).id


@pytest.mark.django_db(transaction=True)
def test_rolled_back_leaves_neither_change_nor_event() -> None:
    session = make_session()

    @transaction.atomic
    def change_and_fail() -> None:
        audit.record(TRIED, target=session, details={"reason": "it"})
        session.delete()
        raise ZeroDivisionError

    before = [model.objects.count() for model in (AuditEvent, AuditDetail, AuditPending)]
    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert SessionRecord.objects.count() == 1
    assert [model.objects.count() for model in (AuditEvent, AuditDetail, AuditPending)] == before


FREE_TEXT = {
    "type": "'Somebody read it'",
    "object_kind": "'Some person, some address'",
    "reason_code": "'because she asked'",
    "outcome": "'nearly'",
    "counters": """'{"name": "Ann"}'""",
    "counters ": """'{"Ann": 1}'""",
    "counters  ": """'["Ann"]'""",
    "counters   ": """'{"half": 0.5}'""",
    "counters    ": """'{"card": 4242424242424242}'""",
    "counters     ": """'{"inner": {"items": 1}}'""",
    "counters      ": "'3'",
    "counters       ": "(SELECT jsonb_object_agg('n' || n, n) FROM generate_series(1, 21) AS n)",
    "counters        ": "jsonb_build_object(repeat('n', 41), 1)",
    "counters         ": "'{\"\": 1}'",
    "counters          ": "'{\"card\": -4242424242424242}'",
    "counters           ": "'{\"half\": 1e-3}'",
    "shown": "array_fill(gen_random_uuid(), ARRAY[1001])",
    "object_ref": "NULL",
    "id": "gen_random_uuid()",
    "commitment": "'Ann'",
}


@pytest.mark.parametrize("column", FREE_TEXT)
def test_the_database_itself_refuses_free_text(column: str) -> None:
    values = {
        "type": "'test.recorded'",
        "actor_kind": "'person'",
        "actor_ref": "gen_random_uuid()",
        "object_kind": "'sessions_app.subject'",
        "object_ref": "gen_random_uuid()",
    }
    insert = "INSERT INTO audit_event ({}) VALUES ({})"
    run_sql(insert.format(", ".join(values), ", ".join(values.values())))
    values[column.strip()] = FREE_TEXT[column]
    with pytest.raises(IntegrityError), transaction.atomic():
        run_sql(insert.format(", ".join(values), ", ".join(values.values())))


@pytest.mark.parametrize("column", FREE_TEXT)
def test_without_the_check_the_database_would_take_it(column: str) -> None:
    """The broken variant, within a transaction that is undone: nothing but the check refuses these."""
    run_sql("ALTER TABLE audit_event DROP CONSTRAINT audit_event_is_plain")
    values = {"type": "'test.recorded'", "object_kind": "'sessions_app.subject'", "object_ref": "gen_random_uuid()"}
    values |= {"actor_kind": "'person'", "actor_ref": "gen_random_uuid()", column.strip(): FREE_TEXT[column]}
    run_sql(f"INSERT INTO audit_event ({', '.join(values)}) VALUES ({', '.join(values.values())})")


def test_counters_are_up_to_twenty_whole_numbers() -> None:
    most = {f"a_{number}": 10**15 - number for number in range(1, 19)} | {"below": -(10**15) + 1, "n1" * 20: 1}
    for counters in ({}, {"items": 0}, most):
        run_sql(f"INSERT INTO audit_event (type, counters) VALUES ('test.recorded', '{json.dumps(counters)}')")
        assert AuditEvent.objects.order_by("-number")[0].counters == counters


def test_time_and_role_are_not_the_clients_word() -> None:
    forged = uuid.uuid4()
    run_sql(
        "INSERT INTO audit_event (type, actor_kind, actor_ref, at, role_ref)"
        f" VALUES ('test.recorded', 'person', gen_random_uuid(), '2001-01-01', '{forged}')"
    )
    event = AuditEvent.objects.get(type="test.recorded")
    assert event.at.year > 2001
    assert AuditActor.objects.get(ref=event.role_ref).label == value_of("SELECT session_user")
    assert (event.actor_kind, event.actor_ref) == ("database", event.role_ref)


@pytest.mark.parametrize("table", ["event", "leaf", "node", "checkpoint", "anchor"])
@pytest.mark.parametrize("change", ["UPDATE audit_{0} SET {1} = {1}", "DELETE FROM audit_{0}", "TRUNCATE audit_{0}"])
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_even_the_owner_changes_nothing(table: str, change: str, role: str) -> None:
    run_sql(f"SET LOCAL session_replication_role = {role}")
    column = {"event": "type", "leaf": "index", "node": "level", "checkpoint": "size", "anchor": "sink"}[table]
    with pytest.raises(Error, match="insert-only"), transaction.atomic():
        run_sql(change.format(table, column))


def test_nobody_chooses_a_number() -> None:
    with pytest.raises(Error, match="GENERATED ALWAYS"), transaction.atomic():
        run_sql(
            "INSERT INTO audit_event (number, type, actor_kind, actor_ref)"
            " VALUES (1, 'test.recorded', 'person', gen_random_uuid())"
        )


def test_python_and_sql_give_the_same_ids() -> None:
    for kind, pk in [("auth.user", 1), ("sessions_app.sessionstore", 4711), ("audit.thing", "Größe")]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT memadmin_ref(%s, %s)", [kind, str(pk)])
            assert cursor.fetchone() == (ids.ref(kind, pk),)
    for made in (ids.uuid7(), value_of("SELECT memadmin_uuid7()")):
        assert (made.version, made.variant) == (7, uuid.RFC_4122)
        assert abs((made.int >> 80) / 1000 - float(value_of("SELECT extract(epoch FROM clock_timestamp())"))) < 60
