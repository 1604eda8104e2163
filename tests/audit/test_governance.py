"""Whatever path a change of a governed row takes, it is in the log, with whoever made it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.models import Approval, ContentGrant, GrantedSession, RoleRequest
from memadmin.audit.log import ids, row_triggers, types
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.erasure.models import ProcessingRecord, RequestBatch, SubjectRequest
from memadmin.retention.models import LegalHold, PolicyVersion, RetentionPolicy
from memories_app.models import (
    ApprovalRule,
    Evidence,
    LearningStop,
    Memory,
    Recall,
    RecalledMemory,
    Review,
    Signal,
)
from sessions_app.models import (
    SessionIdPattern,
    SessionRecord,
    SessionStore,
    Subject,
    SubjectAlias,
    UnlockRequest,
    WatchedPath,
)
from tests.agents import add_items, attach_main_store, run_sql, value_of
from tests.builders import make_session, make_store, make_subject
from tests.memories.builders import approval_rule, decided
from tests.people import person, proven
from tests.retention.builders import make_hold
from tests.retention.policies import in_force

pytestmark = pytest.mark.django_db


def events(noun: str = "") -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(type__startswith=noun).order_by("number"))


def details(event: AuditEvent) -> Any:
    return json.loads(event.detail.details)["rows"]


def test_one_row_is_the_object_of_its_event_with_values_beside_it() -> None:
    session, subject = make_session(ticket="4711"), make_subject()
    SessionRecord.objects.filter(pk=session.pk).update(subject=subject, ticket="4712", finding_count=3)
    event = events("session.row_updated")[-1]
    assert (event.object_kind, event.object_ref) == ("sessions_app.sessionrecord", session.pk)
    assert (event.subject_ref, event.shown, event.counters) == (subject.pk, [], {"rows": 1})
    assert details(event) == [
        {
            "key": str(session.pk),
            "before": {"subject_id": None, "ticket": "4711"},
            "after": {"subject_id": str(subject.pk), "ticket": "4712"},
        }
    ]


def test_a_change_of_subject_is_found_from_both() -> None:
    before, after = make_subject(), make_subject()
    session = make_session(subject=before)
    SessionRecord.objects.filter(pk=session.pk).update(subject=after)
    event = events("session.row_updated")[-1]
    assert (event.subject_ref, event.shown) == (after.pk, [before.pk])


def test_several_rows_are_one_event_that_names_them_and_their_subjects() -> None:
    subject = make_subject()
    sessions = [make_session(subject=subject) for _ in range(3)]
    SessionRecord.objects.update(ticket="4711")
    event = events("session.row_updated")[-1]
    assert (event.object_kind, event.object_ref, event.subject_ref) == (None, None, None)
    assert set(event.shown) == {subject.pk, *(session.pk for session in sessions)}
    assert event.counters == {"rows": 3}
    assert len(details(event)) == 3


def test_thousands_of_rows_are_counted_and_the_first_thousand_named() -> None:
    store = make_store()
    run_sql(
        "INSERT INTO sessions_app_sessionrecord (store_id, session_id)"
        f" SELECT {store.pk}, 's' || n FROM generate_series(1, 1200) AS n"
    )
    run_sql("UPDATE sessions_app_sessionrecord SET ticket = 'x'")
    for event in events("session"):
        assert (event.counters, len(event.shown), len(details(event))) == ({"rows": 1200}, 1000, 1000)
    assert len(events("session")) == 2


def test_nothing_is_recorded_where_no_governed_column_changed() -> None:
    session = make_session()
    before = len(events())
    SessionRecord.objects.filter(pk=session.pk).update(finding_count=5, ticket=session.ticket)
    SessionRecord.objects.filter(pk=session.pk, ticket="none has it").update(ticket="x")
    SessionRecord.objects.none().delete()
    run_sql("DELETE FROM sessions_app_subjectalias WHERE false")
    assert len(events()) == before


def test_a_primary_key_that_moves_is_seen() -> None:
    store = make_store()
    run_sql(f"UPDATE sessions_app_sessionstore SET id = {store.pk + 1000}")
    event = events("store.row_updated")[-1]
    assert event.counters == {"rows": 2}
    assert set(event.shown) == {ids.ref("sessions_app.sessionstore", pk) for pk in (store.pk, store.pk + 1000)}


def test_rows_name_the_verb_that_changed_them() -> None:
    TRIED = types.declare("test.caused", "Only tests try this.")
    subject = make_subject()
    cause = audit.record(TRIED)
    SubjectAlias.objects.filter(subject=subject).update(key="other")
    assert events("alias.row_updated")[-1].cause == cause


def test_of_a_password_only_the_change_is_noted() -> None:
    somebody = person("support")
    somebody.set_password("another one")
    somebody.save()
    event = events("user.row_updated")[-1]
    assert details(event) == [
        {"key": str(somebody.pk), "before": {"password": "hidden"}, "after": {"password": "hidden"}}
    ]
    assert event.object_ref == ids.ref("auth.user", somebody.pk)


CHANGES: dict[str, Callable[[], Any]] = {
    "legal_hold.row_inserted": lambda: place_a_hold("second"),
    "legal_hold.row_updated": lambda: LegalHold.objects.update(review_on="2030-01-01"),
    "legal_hold.row_deleted": lambda: delete_a_hold(),
    "retention_policy.row_inserted": lambda: RetentionPolicy.objects.create(name="second"),
    "retention_policy.row_updated": lambda: RetentionPolicy.objects.filter(is_default=True).update(name="the rest"),
    "retention_policy.row_deleted": lambda: delete_a_policy("retention_retentionpolicy"),
    "retention_policy_version.row_inserted": lambda: in_force("second"),
    "retention_policy_version.row_updated": lambda: PolicyVersion.objects.filter(starts_at=None).update(
        closed_at=now()
    ),
    "retention_policy_version.row_deleted": lambda: delete_a_policy("retention_policyversion"),
    "request.row_inserted": lambda: make_case(make_subject("second")),
    "request.row_updated": lambda: SubjectRequest.objects.update(ground="child"),
    "request.row_deleted": lambda: SubjectRequest.objects.all().delete(),
    "batch.row_inserted": lambda: make_batch("second"),
    "batch.row_updated": lambda: RequestBatch.objects.update(ground="child"),
    "batch.row_deleted": lambda: RequestBatch.objects.all().delete(),
    "subject.row_inserted": lambda: Subject.objects.create(),
    "subject.row_updated": lambda: run_sql(
        "UPDATE sessions_app_subject AS a SET merged_into_id = b.id FROM sessions_app_subject AS b WHERE a.id < b.id"
    ),
    "subject.row_deleted": lambda: run_sql(
        "DELETE FROM sessions_app_subject WHERE id NOT IN (SELECT subject_id FROM sessions_app_subjectalias)"
    ),
    "alias.row_inserted": lambda: make_subject(),
    "alias.row_updated": lambda: SubjectAlias.objects.update(key="moved", kind="project", is_primary=False),
    "alias.row_deleted": lambda: SubjectAlias.objects.all().delete(),
    "store.row_inserted": lambda: make_store("second"),
    "store.row_updated": lambda: SessionStore.objects.update(fence_mode="drop"),
    "store.row_deleted": lambda: SessionStore.objects.filter(name="third").delete(),
    "pattern.row_inserted": lambda: SessionIdPattern.objects.create(
        store=make_store(), name="one", pattern="{subject}"
    ),
    "pattern.row_updated": lambda: SessionIdPattern.objects.update(pattern="c_{subject}"),
    "pattern.row_deleted": lambda: SessionIdPattern.objects.all().delete(),
    "watched_path.row_inserted": lambda: WatchedPath.objects.create(name="second", kind="sqlite"),
    "watched_path.row_updated": lambda: WatchedPath.objects.update(options={"path": "/other/*.db"}),
    "watched_path.row_deleted": lambda: WatchedPath.objects.all().delete(),
    "session.row_inserted": lambda: make_session(),
    "session.row_updated": lambda: SessionRecord.objects.update(labels=["vip"]),
    "session.row_deleted": lambda: SessionRecord.objects.all().delete(),
    "user.row_inserted": lambda: person("auditor"),
    "user.row_updated": lambda: User.objects.update(is_superuser=True),
    "user.row_deleted": lambda: User.objects.filter(username="reviewer").delete(),
    "role.row_inserted": lambda: Group.objects.create(name="helper"),
    "role.row_updated": lambda: Group.objects.filter(name="auditor").update(name="inspector"),
    "role.row_deleted": lambda: Group.objects.filter(name="auditor").delete(),
    "user_role.row_inserted": lambda: User.objects.get(username="support").groups.add(
        Group.objects.get(name="administrator")
    ),
    "user_role.row_updated": lambda: run_sql(
        "UPDATE auth_user_groups SET group_id = (SELECT id FROM auth_group WHERE name = 'auditor')"
    ),
    "user_role.row_deleted": lambda: User.objects.get(username="support").groups.clear(),
    "user_permission.row_inserted": lambda: give_permission(),
    "user_permission.row_updated": lambda: run_sql(
        f"UPDATE auth_user_user_permissions SET permission_id = permission_id + {give_permission()}"
    ),
    "user_permission.row_deleted": lambda: run_sql(
        f"DELETE FROM auth_user_user_permissions WHERE {give_permission()} > 0"
    ),
    "role_permission.row_inserted": lambda: run_sql(
        "INSERT INTO auth_group_permissions (group_id, permission_id) SELECT g.id, p.id FROM auth_group AS g,"
        " auth_permission AS p WHERE g.name = 'auditor' AND p.codename = 'raw_edit'"
    ),
    "role_permission.row_updated": lambda: run_sql(
        "UPDATE auth_group_permissions SET permission_id = (SELECT id FROM auth_permission WHERE codename = 'raw_edit')"
        " WHERE id = (SELECT max(id) FROM auth_group_permissions)"
    ),
    "grant.row_inserted": lambda: grant(),
    "grant.row_updated": lambda: ContentGrant.objects.update(minutes=grant().minutes + 5),
    "grant.row_deleted": lambda: grant().delete(),
    "role_request.row_inserted": lambda: role_request(),
    "role_request.row_updated": lambda: RoleRequest.objects.filter(pk=role_request().pk).update(reason="staff"),
    "role_request.row_deleted": lambda: role_request().delete(),
    "approval.row_inserted": lambda: approval(),
    "approval.row_updated": lambda: (approval(), Approval.objects.update(decision="void", decided_at=now())),
    "approval.row_deleted": lambda: approval().delete(),
    "granted_session.row_inserted": lambda: grant(),
    "granted_session.row_updated": lambda: (grant(), GrantedSession.objects.update(record_id=ids.uuid7())),
    "granted_session.row_deleted": lambda: grant().delete(),
    "unlock_request.row_inserted": lambda: unlock_request(),
    "unlock_request.row_updated": lambda: (unlock_request(), UnlockRequest.objects.update(reason="legal")),
    "unlock_request.row_deleted": lambda: unlock_request().delete(),
    "role_permission.row_deleted": lambda: run_sql("DELETE FROM auth_group_permissions"),
    "memory.row_inserted": lambda: Memory.objects.create(kind="fact", statement="x"),
    "memory.row_updated": lambda: Memory.objects.update(source="operator"),
    "memory.row_deleted": lambda: Memory.objects.all().delete(),
    "memory_version.row_inserted": lambda: run_sql(
        "INSERT INTO memories_app_memoryversion (id, memory_id, number, statement, content_hash)"
        " SELECT gen_random_uuid(), id, 7, 'forged', '' FROM memories_app_memory"
    ),
    "memory_version.row_updated": lambda: run_sql(
        "UPDATE memories_app_memoryversion SET statement = '', data = '{}', erased_at = now()"
    ),
    "memory_version.row_deleted": lambda: run_sql("DELETE FROM memories_app_memoryversion"),
    "evidence.row_inserted": lambda: Evidence.objects.create(memory=Memory.objects.all()[0], quote="x"),
    "evidence.row_updated": lambda: Evidence.objects.update(quote="z"),
    "evidence.row_deleted": lambda: Evidence.objects.all().delete(),
    "signal.row_inserted": lambda: Signal.objects.create(kind="correction", text="x"),
    "signal.row_updated": lambda: Signal.objects.update(value=-1),
    "signal.row_deleted": lambda: Signal.objects.all().delete(),
    "recall.row_updated": lambda: Recall.objects.update(agent="another"),
    "recall.row_deleted": lambda: Recall.objects.all().delete(),
    "recalled_memory.row_updated": lambda: RecalledMemory.objects.update(version=7),
    "recalled_memory.row_deleted": lambda: RecalledMemory.objects.all().delete(),
    "review.row_inserted": lambda: review(),
    "review.row_updated": lambda: (review(), change_as_person(Review.objects.all(), agreed=True)),
    "review.row_deleted": lambda: review().delete(),
    "approval_rule.row_inserted": lambda: approval_rule("second"),
    "approval_rule.row_updated": lambda: change_as_person(ApprovalRule.objects.all(), is_active=True),
    "approval_rule.row_deleted": lambda: ApprovalRule.objects.all().delete(),
    "processing_record.row_inserted": lambda: processing_record(),
    "processing_record.row_updated": lambda: (processing_record(), ProcessingRecord.objects.update(purpose="x")),
    "processing_record.row_deleted": lambda: processing_record().delete(),
    "learning_stop.row_inserted": lambda: LearningStop.objects.create(subject=make_subject()),
    "learning_stop.row_updated": lambda: LearningStop.objects.update(subject=make_subject()),
    "learning_stop.row_deleted": lambda: LearningStop.objects.all().delete(),
}


def grant(**columns: Any) -> ContentGrant:
    by = User.objects.get(username="support")
    made = ContentGrant.objects.create(requested_by=by, reason="incident", ticket="4711", **columns)
    GrantedSession.objects.create(grant=made, record_id=ids.uuid7())
    return made


def unlock_request() -> UnlockRequest:
    return UnlockRequest.objects.create(sessions=[ids.uuid7()], reason="mistake")


def role_request() -> RoleRequest:
    by = User.objects.get(username="support")
    return RoleRequest.objects.create(person=by, is_superuser=True, reason="incident")


def approval() -> Approval:
    """One that nobody asked for: a person would have to prove who they are."""
    return Approval.objects.create(kind="role", object_ref=ids.uuid7(), digest="")


def give_permission() -> int:
    run_sql(
        "INSERT INTO auth_user_user_permissions (user_id, permission_id)"
        " SELECT u.id, min(p.id) FROM auth_user AS u, auth_permission AS p GROUP BY u.id"
    )
    return 1


def review() -> Review:
    return decided(Memory.objects.all()[0], User.objects.get(username="reviewer"), "reject")


def change_as_person(rows: QuerySet[Any], **columns: Any) -> int:
    with proven(User.objects.get(username="reviewer")):
        return rows.update(**columns)


def processing_record() -> ProcessingRecord:
    return ProcessingRecord.objects.bulk_create([ProcessingRecord()])[0]


def place_a_hold(label: str) -> LegalHold:
    return make_hold(label, by=User.objects.get(username="reviewer"))


def make_case(subject: Subject) -> SubjectRequest:
    today = now().date()
    return SubjectRequest.objects.create(
        kind="erasure", subject=subject, channel="letter", received_on=today, due_on=today
    )


def make_batch(digest: str) -> RequestBatch:
    return RequestBatch.objects.create(
        file_name="a.csv", file_size=1, file_sha256=digest, ground="consent", received_on=now(), due_on=now()
    )


def let_holds_be_deleted() -> None:
    """As the owner of the function that refuses it, until the end of the transaction."""
    run_sql(
        "CREATE OR REPLACE FUNCTION memadmin_keep_hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    )


def delete_a_hold() -> None:
    let_holds_be_deleted()
    run_sql("DELETE FROM retention_legalhold")


def let_versions_be_deleted() -> None:
    run_sql(
        "CREATE OR REPLACE FUNCTION memadmin_keep_policy_versions() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'"
    )


def delete_a_policy(table: str) -> None:
    """Deletes the rows of this table; those that refer to them are gone before."""
    let_versions_be_deleted()
    run_sql("SET CONSTRAINTS ALL DEFERRED")
    run_sql(f"DELETE FROM {table}")


def propose_a_policy(name: str) -> None:
    """A first version that awaits a second person."""
    policy = RetentionPolicy.objects.create(name=name)
    PolicyVersion.objects.create(policy=policy, number=1, target="sessions", clock="created", action="keep")


def a_memory_with_all_that_it_rests_on() -> None:
    memory = Memory.objects.create(kind="fact", statement="y")
    Evidence.objects.create(memory=memory, quote="y", signal=Signal.objects.create(kind="correction", text="y"))
    RecalledMemory.objects.create(recall=Recall.objects.create(), memory=memory, version=1, place=1)


def test_every_kind_of_change_of_every_governed_table_is_recorded() -> None:
    person("support"), person("reviewer"), make_session(subject=make_subject()), Subject.objects.create()
    make_store("third")
    SessionIdPattern.objects.create(store=make_store(), name="zero", pattern="{subject}")
    WatchedPath.objects.create(name="first", kind="sqlite")
    a_memory_with_all_that_it_rests_on()
    approval_rule("first")
    place_a_hold("first")
    propose_a_policy("first")
    make_batch("first")
    make_case(Subject.objects.earliest("created_at"))
    LearningStop.objects.create(subject=SubjectAlias.objects.latest("pk").subject)
    for event_type, change in CHANGES.items():
        point = transaction.savepoint()
        before = len(events(event_type))
        with audit.acting(audit.Actor("job", "testing")):
            change()
        assert len(events(event_type)) == before + 1, event_type
        event = events(event_type)[-1]
        assert types.known(event.type), event_type
        actor = (event.actor_kind, AuditActor.objects.get(ref=event.actor_ref).label)
        assert actor == ("job", "testing"), event_type
        transaction.savepoint_rollback(point)


def governing_triggers() -> list[tuple[str, row_triggers.RowTrigger]]:
    """Each with the table that it is on."""
    return [
        (model._meta.db_table, trigger)
        for model in apps.get_models(include_auto_created=True)
        for trigger in row_triggers.row_triggers(model)
    ]


def test_every_trigger_of_a_governed_table_is_in_the_table_above() -> None:
    wanted = {
        f"{trigger.noun}.{row_triggers.EVENTS[trigger.statement][0]}"
        for _, trigger in governing_triggers()
        if trigger.statement != "TRUNCATE"
    }
    assert set(CHANGES) == wanted


UNGOVERNED = {
    "memories_app_distillation": "a note of a job, of which each has its event `session.distilled`",
    "memories_app_vectornote": "what a trigger has left for a job to do",
    "memories_app_digest": "a note of a job, so that nobody is told twice",
    "memories_app_nodigest": "who wants no daily mail",
}
"""Tables of memories whose changes are not recorded, and why."""


def test_every_table_of_memories_is_governed() -> None:
    tables = {model._meta.db_table for model in apps.get_app_config("memories_app").get_models()}
    assert tables - {table for table, _ in governing_triggers()} == set(UNGOVERNED)


def test_emptying_a_governed_table_is_recorded() -> None:
    make_session()
    emptied = {(table, trigger.noun) for table, trigger in governing_triggers() if trigger.statement == "TRUNCATE"}
    let_holds_be_deleted()
    let_versions_be_deleted()
    run_sql("SET CONSTRAINTS ALL IMMEDIATE")
    run_sql(f"TRUNCATE {', '.join(table for table, _ in emptied)} CASCADE")
    assert {event.type for event in events() if "truncated" in event.type} == {
        f"{noun}.table_truncated" for _, noun in emptied
    }


OF_MEMORIES = {
    "memory": "UPDATE memories_app_memory SET source = 'operator', screened_hash = content_hash",
    "memory_version": "UPDATE memories_app_memoryversion SET statement = '', data = '{}', erased_at = now()",
    "evidence": "UPDATE memories_app_evidence SET quote = 'forged'",
    "signal": "UPDATE memories_app_signal SET text = 'forged'",
    "review": "UPDATE memories_app_review SET note = 'forged'",
    "approval_rule": "DELETE FROM memories_app_approvalrule",
    "learning_stop": "DELETE FROM memories_app_learningstop",
    "recall": "DELETE FROM memories_app_recall",
    "recalled_memory": "UPDATE memories_app_recalledmemory SET version = 7",
}


@pytest.mark.parametrize("noun", OF_MEMORIES)
def test_raw_sql_on_memories_shows_with_the_role_and_without_what_was_said(noun: str) -> None:
    person("reviewer")
    a_memory_with_all_that_it_rests_on()
    review()
    approval_rule("first")
    LearningStop.objects.create(subject=make_subject())
    if noun == "recall":
        RecalledMemory.objects.all().delete()
    before = len(events())
    run_sql(OF_MEMORIES[noun])
    (event,) = events()[before:]
    assert event.type.startswith(f"{noun}.row_")
    assert (event.actor_kind, event.counters, event.cause) == ("database", {"rows": 1}, None)
    assert AuditActor.objects.get(ref=event.actor_ref).label == value_of("SELECT session_user")
    assert "forged" not in event.detail.details
    assert '"y"' not in event.detail.details


def test_a_version_that_follows_from_a_change_is_not_told_twice() -> None:
    Memory.objects.create(kind="fact", statement="y")
    assert [event.type for event in events("memory")] == ["memory.row_inserted"]


def test_raw_sql_shows_with_the_role_of_the_database() -> None:
    subject = make_subject()
    run_sql("UPDATE sessions_app_subjectalias SET key = 'rewritten'")
    event = events("alias.row_updated")[-1]
    role = value_of("SELECT session_user")
    assert (event.actor_kind, AuditActor.objects.get(ref=event.actor_ref).label) == ("database", role)
    assert (event.subject_ref, event.cause) == (subject.pk, None)


@pytest.mark.parametrize(
    "setting", ["nobody", "person:", "person:zzz", "person:00000000-0000-0000-0000-00000000000", "; DROP"]
)
def test_a_name_that_is_none_falls_back_to_the_role(setting: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('memadmin.actor', %s, true), set_config('memadmin.cause', %s, true)", [setting] * 2
        )
    make_subject()
    assert {(event.actor_kind, event.cause) for event in events("subject")} == {("database", None)}


def test_no_setting_of_a_session_switches_recording_off() -> None:
    """pgtrigger's own functions obey `pgtrigger.ignore`; the broken variant below shows what that would mean."""
    names = value_of("SELECT string_agg(tgname, ',') FROM pg_trigger WHERE tgname LIKE 'pgtrigger_%'")
    run_sql(f"SET LOCAL pgtrigger.ignore = '{{{names}}}'")
    make_subject()
    assert events("subject.row_inserted")


def test_broken_variant_triggers_that_call_pgtriggers_functions_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trigger = row_triggers.RowTrigger("INSERT", "subject", ["merged_into"], "id", ())
    trigger.func = "RAISE EXCEPTION 'recorded'; RETURN NULL;"
    monkeypatch.setattr(row_triggers.RowTrigger, "render_execute", lambda self, model: f"{self.get_pgid(model)}()")
    trigger.name = "broken"
    trigger.install(Subject)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="recorded"), transaction.atomic():
        make_subject()
    run_sql(f"SET LOCAL pgtrigger.ignore = '{{{trigger.get_pgid(Subject)}}}'")  # type: ignore[arg-type]
    make_subject()


@pytest.mark.usefixtures("agent_tables")
def test_what_agents_do_to_the_registry_through_their_own_tables_is_theirs() -> None:
    attach_main_store()
    add_items("chat-1", "Hello")
    add_items("chat-1", "Are you there?")
    assert SessionRecord.objects.get().session_id == "chat-1"
    assert not events("session.")
