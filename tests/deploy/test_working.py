"""What each role of the database does all day, as that role: pages, jobs, attaching, and the agents' own writing."""

from __future__ import annotations

import asyncio
import io
import re
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import mail
from django.core.management import call_command
from django.db import Error, connection, transaction
from django.test import Client
from django.urls import reverse
from procrastinate import PsycopgConnector
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params

from memadmin import audit
from memadmin.accounts import notices
from memadmin.accounts.audit_events import READING_NOTICED
from memadmin.accounts.grants import services as grants
from memadmin.audit.log import erasing
from memadmin.audit.models import AuditActor, AuditEvent, AuditLeaf
from memadmin.audit.transparency import verification, verifier
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.deploy.roles import APPLICATION, Roles
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memories_app.models import Memory
from memories_app.review import queue_changes
from memories_app.review.claiming import claim
from memories_app.review.queue_changes import QueueAction
from sessions_app import registry
from sessions_app.audit_events import RedactReason
from sessions_app.models import AgentMessage, SessionRecord, SubjectKind
from sessions_app.redaction import services
from sessions_app.redaction.services import RedactionRequest
from sessions_app.services import patterns, session_changes, sessions, subjects
from sessions_app.services.attaching import attach_store, detach_store
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.raw_edits import state_of
from sessions_app.services.session_changes import SessionAction
from sessions_app.services.store_config import declare_store
from tests.accounts.matrix import MATRIX, RAW_EDITOR, SUPERUSER
from tests.accounts.test_matrix import World, address_of, browser_of, make_world, somebody, with_lasting_people
from tests.agents import add_items, attach_main_store, in_sdk, make_agent_tables, run_sql, user, value_of
from tests.approvals import approve_grant
from tests.builders import make_subject
from tests.deploy.connecting import bring_into_force, connected_as, logged_in_as, refusal
from tests.memories.builders import proposed
from tests.people import person, signed_in
from tests.runs.working import report_of, work_off
from tests.sessions.admin.test_raw_edits import fields_of

transactional = pytest.mark.django_db(transaction=True)


def label_of(ref: uuid.UUID) -> str:
    return AuditActor.objects.get(ref=ref).label


# --- the web server ---------------------------------------------------------------------------------------------------

RAW = "sessions_app_agent"
"""In the names of addresses where people change the agents' rows, which takes `--raw-edits`."""


WAITS = "audit:export-log"
"""What it streams waits for the sequencer, of which a test's transaction has none."""


def answers(client: Client, world: World, *names: str) -> dict[tuple[str, str], int]:
    """What every address, or these, answer to both methods; the effect of each is undone."""
    found = {}
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    for name in names or MATRIX:
        rule = MATRIX[name]
        for method, is_taken in (("GET", rule.reads), ("POST", rule.sends)):
            if is_taken is None:
                continue
            point = transaction.savepoint()
            try:
                answer = client.generic(method, address_of(name, world))
                if answer.streaming and name != WAITS:
                    answer.getvalue()
                found[name, method] = answer.status_code
            except Error as problem:
                found[name, method] = str(problem).splitlines()[0]  # type: ignore[assignment]
            finally:
                transaction.savepoint_rollback(point)
                client.cookies[settings.SESSION_COOKIE_NAME] = cookie
    return found


@pytest.mark.django_db
@pytest.mark.release
def test_every_page_answers_as_it_does_to_the_administrator_of_the_database(
    ours: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = somebody(SUPERUSER)
    with_lasting_people(monkeypatch)
    world, client = make_world(by), browser_of(by)
    with connected_as(ours["web"]):
        found = answers(client, world)
    # A page that is shown lacked no right.
    expected = answers(client, world, *{name for (name, _), status in found.items() if status != 200})
    wrong = {
        asked: status
        for asked, status in found.items()
        if status not in (200, expected.get(asked)) and RAW not in asked[0]
    }
    assert wrong == {}
    assert sum(status == 200 for status in found.values()) > 10


@pytest.mark.django_db
def test_broken_variant_a_right_too_few_is_seen_on_a_page(ours: Roles) -> None:
    by = somebody("compliance")
    world, client = make_world(by), browser_of(by)
    assert answers(client, world, "sessions:subject") == {("sessions:subject", "GET"): 200}
    run_sql(f'REVOKE SELECT ON sessions_app_subjectalias FROM "{ours["web"]}"')
    with connected_as(ours["web"]):
        assert answers(client, world, "sessions:subject") != {("sessions:subject", "GET"): 200}


@transactional
def test_people_work(in_force: Roles) -> None:
    """Signing in, looking, searching, labelling, a grant from the asking to the end, exports, a verification."""
    attach_main_store(agent_roles=[in_force["agents"]])
    add_items("customer_1:ticket_1", "Where is my order?")
    add_items("customer_2:ticket_2", "And mine?")
    asking, deciding = person("support"), person("compliance")
    subject = make_subject("customer_1")
    run_sql("UPDATE sessions_app_sessionrecord SET is_sensitive = true WHERE session_id = 'customer_2:ticket_2'")
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        assert value_of("SHOW statement_timeout") == "30s"
        record, locked = SessionRecord.objects.order_by("session_id")
        client = Client()
        signed = client.post(reverse("accounts:login"), {"username": "support", "password": "support"})
        assert signed.status_code == 302, signed.content
        timeline = reverse("sessions:timeline", args=[record.pk])
        assert "Where is my order?" in client.get(timeline).text
        assert client.get(reverse("sessions:timeline", args=[locked.pk])).status_code == 403
        asked = client.post(reverse("sessions:search"), {"q": "order"})
        assert client.get(asked["Location"]).status_code == 200
        assert sessions.attach_sessions([record], subject, by=asking) == 1
        assert sessions.label_sessions([record], "vip", by=asking) == 1
        alias = subjects.add_alias(subject, kind="user", key="cust_egret", by=asking)  # type: ignore[arg-type]
        subjects.remove_alias(alias, by=asking)
        lines = client.get(reverse("sessions:export-jsonl", args=[record.pk])).getvalue()
        assert b"Where is my order?" in lines
        grant = grants.request_grant(by=asking, reason="support_case", ticket="T-1", minutes=30, record_ids=[locked.pk])
        approve_grant(grant, by=deciding)
        assert "And mine?" in client.get(reverse("sessions:timeline", args=[locked.pk])).text
        client.post(reverse("accounts:grant-end", args=[grant.pk]))
        assert client.get(reverse("sessions:timeline", args=[locked.pk])).status_code == 403
        log = signed_in(deciding)
        assert log.get(reverse("audit:list")).status_code == 200
        for name in ("export-jsonl", "export-csv"):
            assert b"session.viewed" in log.get(reverse(f"audit:{name}")).getvalue()
        assert log.post(reverse("audit:verify")).status_code == 302
        told = AuditEvent.objects.filter(type="session.attached").latest("number")
        assert erasing.erase_details(told, by=deciding, reason="mistake") > 0
        client.post(reverse("accounts:logout"))
    assert value_of("SELECT count(*) FROM procrastinate_jobs WHERE task_name LIKE '%verify_log'") == 1
    viewed = AuditEvent.objects.filter(type="session.viewed").latest("number")
    assert (label_of(viewed.actor_ref), label_of(viewed.role_ref)) == ("support", in_force["web"])


@transactional
def test_the_store_is_as_well_to_them_as_to_the_administrator(in_force: Roles) -> None:
    store = attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    for kind in ("web", "worker", "migrator"):
        with logged_in_as(in_force[kind]):
            assert registry.health(store).problems == ()
    run_sql(f'REVOKE SELECT ON agent_messages FROM "{in_force["web"]}"')
    with logged_in_as(in_force["web"]):
        assert "lacks a right" in registry.health(store).problems[0].sentence
        with pytest.raises(registry.AttachRefused, match="has to GRANT SELECT, UPDATE, DELETE, TRIGGER"):
            registry.plan_attachment(store)


@pytest.mark.django_db
def test_what_is_changed_past_the_verbs_is_refused_to_the_application_and_shows_with_the_owner(ours: Roles) -> None:
    person("support")
    change = "UPDATE auth_user SET last_name = 'Seen' WHERE username = 'support'"
    for kind in APPLICATION:
        with connected_as(ours[kind]):
            assert re.search("the actor is not proven|permission denied", refusal(change))
    with connected_as(ours["migrator"]):
        run_sql(change)
    raw = AuditEvent.objects.filter(type="user.row_updated").latest("number")
    assert label_of(raw.role_ref) == label_of(raw.actor_ref) == ours["migrator"]


@pytest.mark.django_db
def test_whoever_takes_the_web_server_over_still_shows_with_its_role(ours: Roles) -> None:
    """With its key, too, which says who acts for the web server; which role it was nobody can say otherwise."""
    with connected_as(ours["web"]), audit.acting(audit.Actor("person", "Nobody")):
        run_sql("INSERT INTO sessions_app_subject (id) VALUES (gen_random_uuid())")
    event = AuditEvent.objects.get(type="subject.row_inserted")
    assert (label_of(event.role_ref), label_of(event.actor_ref)) == (ours["web"], "Nobody")


@pytest.mark.django_db
def test_no_event_no_content(ours: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an operator would find out who took a right too many away."""
    by = somebody("support")
    world, client = make_world(by), browser_of(by)
    run_sql(f'REVOKE INSERT ON audit_event FROM "{ours["web"]}"')
    point = transaction.savepoint()
    with connected_as(ours["web"]):
        answer = client.get(address_of("sessions:timeline", world))
        transaction.savepoint_rollback(point)
    assert answer.status_code == 503
    assert "tea leaves" not in answer.text


@transactional
def test_raw_edits_are_refused_in_a_sentence_unless_they_were_asked_for(in_force: Roles) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    add_items("chat-1", "helo")
    editor, item = somebody(RAW_EDITOR), AgentMessage.objects.get()
    address = reverse("admin:sessions_app_agentmessage_change", args=[item.pk])
    for raw_edits, status in ((False, 503), (True, 302)):
        bring_into_force(in_force, raw_edits=raw_edits)
        with logged_in_as(in_force["web"]):
            client = browser_of(editor)
            fields = fields_of(client.get(address)) if raw_edits else {"opened_as": state_of(item)}
            answer = client.post(address, fields | {"message_data": '{"role": "user", "content": "hello"}'})
        assert answer.status_code == status, answer.text
        assert raw_edits or "lacks a right: permission denied for table agent_sessions" in answer.text
    assert "hello" in str(value_of("SELECT message_data FROM agent_messages"))


# --- the worker -------------------------------------------------------------------------------------------------------


def run_jobs(*names: str) -> dict[str, object]:
    """Every periodic job once, or these, as a worker runs it; what each failed of, by name."""
    failed: dict[str, object] = {}

    async def run_one(task: Any, timestamp: int) -> None:
        with app.replace_connector(PsycopgConnector(kwargs=connector_params)) as working:
            async with working.open_async():
                await task.func(timestamp=timestamp)

    periodic = {each.task.name: each.task for each in app.periodic_registry.periodic_tasks.values()}
    for name in names or periodic:
        task = periodic[name]
        try:
            if asyncio.iscoroutinefunction(task.func):
                asyncio.run(run_one(task, int(time.time())))
            else:
                task.func(timestamp=int(time.time()))
        except Exception as problem:
            failed[name] = problem
    assert len(periodic) >= 8
    return failed


def give_the_worker_something_to_do() -> None:
    store = attach_main_store(mode="drop")
    add_items("customer_1:ticket_1", "Where is my order?")
    add_items("customer_2:ticket_2", "And mine?")
    patterns.add_pattern(
        store, name="tickets", text="customer_{subject}:ticket_{ticket}", subject_kind=SubjectKind.USER, by=person()
    )
    SessionRecord.objects.filter(session_id="customer_2:ticket_2").update(erased_at="2026-01-01T00:00Z")
    run_sql("DELETE FROM agent_sessions WHERE session_id = 'customer_2:ticket_2'")
    add_items("customer_2:ticket_2", "Are you there?")
    signed_in(person("support"))
    run_sql("UPDATE django_session SET expire_date = now() - interval '1 day'")


@transactional
def test_what_the_web_server_asks_to_be_redacted_the_worker_redacts(in_force: Roles) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    add_items("chat-1", "my key is sk-live-4711")
    officer, record = person("compliance"), SessionRecord.objects.with_names().get()
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        wanted = RedactionRequest("sk-live-4711", reason=RedactReason.LEAKED_SECRET, by=officer)
        asked = services.redact_in_session(record, wanted)
        with pytest.raises(Error, match="Only a worker writes token"):
            carry_on(asked.run)
    with logged_in_as(in_force["worker"]):
        assert work_off() == 1
    asked.refresh_from_db()
    assert (report_of(asked)["items"], report_of(asked)["reasons"], asked.text) == (1, [], "")
    assert "sk-live" not in str(value_of("SELECT message_data FROM agent_messages"))
    assert label_of(AuditEvent.objects.get(type="session.redacted").actor_ref) == "compliance"


@transactional
def test_what_people_choose_for_all_that_match_the_worker_does(in_force: Roles) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    add_items("chat-1", "Hello")
    subject, keeper, other = make_subject("customer_1"), person("compliance"), person("reviewer")
    plain, theirs, claimed = (proposed(f"Likes tea number {number}.") for number in range(3))
    Memory.objects.filter(pk=theirs.pk).update(proposed_by=other)
    claim(claimed, by=other)
    bring_into_force(in_force)
    record = SessionRecord.objects.get()
    actions = [action for action in SessionAction if action != SessionAction.UNLABEL]
    for action in [*actions, SessionAction.UNLABEL]:
        with logged_in_as(in_force["web"]):
            session_changes.begin([record.pk], action, by=keeper, label="spring", subject=subject)
        with logged_in_as(in_force["worker"]):
            assert work_off() == 1, action
    record.refresh_from_db()
    assert (record.labels, record.is_sensitive, record.subject_id) == ([], True, None)
    memories = [plain.pk, theirs.pk, claimed.pk]
    for verb, said in ((QueueAction.SNOOZE, "day"), (QueueAction.REJECT, "wrong")):
        with logged_in_as(in_force["web"]):
            queue_changes.begin(memories, verb, by=keeper, said=said)
        with logged_in_as(in_force["worker"]):
            assert work_off() == 1, verb
    assert [run.counters for run in Run.objects.filter(kind="queue_changes").order_by("number")] == [
        {"changed": 2, "unchanged": 1},
        {"changed": 2, "unchanged": 1},
    ]
    assert label_of(AuditEvent.objects.filter(type="memory.rejected")[0].actor_ref) == "compliance"


@transactional
def test_every_job_is_done(in_force: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "BACKLOG_SECONDS", -1)  # for a first checkpoint, which nobody writes
    give_the_worker_something_to_do()
    bring_into_force(in_force)
    with logged_in_as(in_force["worker"]):
        failed = run_jobs()
        taken = Sequencer().step(is_last=True)
        verdict = verification.verify()
    with logged_in_as(in_force["auditor"]):
        report = verifier.verify_database(lambda: psycopg.connect(**connection.get_connection_params()))
        with pytest.raises(Error, match="read-only transaction"):
            run_sql("CREATE TABLE mine (a int)")
    assert report.findings == []
    assert failed == {}
    assert taken is not None
    assert taken.checkpoint is not None
    assert verdict is not None
    assert AuditLeaf.objects.count() > 3
    assert SessionRecord.objects.get(session_id="customer_1:ticket_1").ticket == "1"
    dropped = AuditEvent.objects.get(type="write.dropped")
    assert label_of(dropped.role_ref) == in_force["worker"]
    assert value_of("SELECT count(*) FROM django_session") == 0


@transactional
def test_the_worker_tells_those_who_decide_of_grants_and_readings(in_force: Roles, settings: Any) -> None:
    settings.MAIL_SERVER, settings.CONSOLE_URL = {"EMAIL_HOST": "mail.example.org"}, "https://console.example.org"
    EmailAddress.objects.create(user=person("compliance"), email="officer@example.org", verified=True, primary=True)
    reader = person("support")
    grants.request_grant(by=reader, record_ids=[uuid.uuid4()], reason="incident", ticket="T-1")
    audit.record_alone(READING_NOTICED, by=reader, target=reader, counters={"sessions": 100})
    bring_into_force(in_force)
    with logged_in_as(in_force["worker"]):
        assert notices.send_notices() == 2
    assert [message.to for message in mail.outbox] == [["officer@example.org"]] * 2
    sent = AuditEvent.objects.get(type="grant.notice_sent")
    assert label_of(sent.role_ref) == in_force["worker"]


@transactional
def test_broken_variant_a_worker_with_the_web_servers_rights_gets_stuck(in_force: Roles) -> None:
    give_the_worker_something_to_do()
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        assert "permission denied for table sessions_app_fenceoutbox" in str(
            run_jobs("sessions_app.jobs.drain_outbox")["sessions_app.jobs.drain_outbox"]
        )
        with pytest.raises(Error, match="permission denied for table audit_"):
            Sequencer().step(is_last=True)


@transactional
def test_transcripts_are_imported_by_the_worker(in_force: Roles, tmp_path: Any) -> None:
    store = attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    file = tmp_path / "chats.jsonl"
    file.write_text('{"session_id": "chat-1", "messages": [{"role": "user", "content": "Hello"}]}\n')
    with logged_in_as(in_force["worker"]), audit.acting(audit.Actor("command", "import_transcripts")):
        call_command("import_transcripts", str(file), "--store", store.name, stdout=io.StringIO())
    assert value_of("SELECT count(*) FROM agent_messages") == 1
    noted = AuditEvent.objects.filter(type="stored_item.row_inserted").latest("number")
    assert (label_of(noted.actor_ref), label_of(noted.role_ref)) == ("import_transcripts", in_force["worker"])


# --- commands ---------------------------------------------------------------------------------------------------------


@transactional
def test_commands_run_under_the_role_that_the_documentation_names(in_force: Roles, tmp_path: Path) -> None:
    store = attach_main_store(agent_roles=[in_force["agents"]])
    declare_encryption(store, ttl=timedelta(minutes=10))
    add_items("chat-1", "Hello")
    person("support")
    bring_into_force(in_force)
    said = io.StringIO()
    with logged_in_as(in_force["worker"]):
        for arguments in (
            ("sequence_audit", "--once"),
            ("verify_audit",),
            ("export_audit", str(tmp_path / "log.jsonl")),
            ("purge_expired", store.name, "--older-than=90d", "--yes"),
        ):
            call_command(*arguments, stdout=said, stderr=said)
    with logged_in_as(in_force["web"]):
        for arguments in (
            ("check_stores",),
            ("store_key", store.name, "--ttl", "700"),
            ("reset_second_factor", "support"),
        ):
            call_command(*arguments, stdout=said, stderr=said)
        with audit.acting(audit.Actor("command", "grant_role")):
            call_command("grant_role", "support", "reviewer", "--reason", "New duties.", stdout=said)
    assert "main: ok" in said.getvalue()
    assert (tmp_path / "log.jsonl").stat().st_size > 1000


# --- the migrator -----------------------------------------------------------------------------------------------------


@transactional
def test_the_migrator_attaches_and_takes_off(in_force: Roles) -> None:
    make_agent_tables()
    bring_into_force(in_force)
    with logged_in_as(in_force["migrator"]):
        store = declare_store(registry.MAIN_STORE, agent_roles=[in_force["agents"]])
        attach_store(store)
    assert registry.health(store).fence == "on"
    add_items("chat-1", "Hello", role=in_force["agents"])
    assert SessionRecord.objects.get().session_id == "chat-1"
    with logged_in_as(in_force["migrator"]):
        detach_store(store)
    assert registry.health(store).fence == "off"


# --- agents -----------------------------------------------------------------------------------------------------------


def open_chat(role: str) -> list[dict[str, Any]]:
    """What an agent does with the SDK's own session class, on connections of its own; what it reads back in the end."""

    async def chat(tables: Any) -> list[dict[str, Any]]:
        session = tables.session("chat-1")
        await session.add_items([user("Hello"), user("Are you there?")])
        await session.pop_item()
        cleared = tables.session("chat-2")
        await cleared.add_items([user("Forget this")])
        await cleared.clear_session()
        return list(await session.get_items())

    return in_sdk(chat, role=role)


@transactional
def test_agents_write_through_the_fence_without_a_right_on_our_tables(in_force: Roles) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    assert open_chat(in_force["agents"]) == [user("Hello")]
    assert set(SessionRecord.objects.values_list("session_id", flat=True)) == {"chat-1", "chat-2"}
    assert not AuditEvent.objects.filter(type__startswith="stored_").exists()


@transactional
def test_an_erased_session_stays_erased_for_them(in_force: Roles) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    add_items("chat-1", "Hello", role=in_force["agents"])
    run_sql("UPDATE sessions_app_sessionrecord SET erased_at = now(); DELETE FROM agent_sessions")
    with pytest.raises(Exception, match="was erased and can never be written to again"):
        add_items("chat-1", "Are you there?", role=in_force["agents"])
    assert value_of("SELECT count(*) FROM agent_messages") == 0


@transactional
def test_broken_variant_without_the_owners_rights_the_fence_stops_every_agent(in_force: Roles) -> None:
    store = attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    run_sql(f"ALTER FUNCTION memadmin_register_{store.pk}() SECURITY INVOKER")
    with pytest.raises(Exception, match="permission denied for table sessions_app_sessionrecord"):
        add_items("chat-1", "Hello", role=in_force["agents"])


@transactional
def test_nobody_acts_as_somebody_else(in_force: Roles) -> None:
    """Asked on connections of their own: it is who opened one that counts."""
    bring_into_force(in_force)
    for kind, name in in_force.names.items():
        with logged_in_as(name):
            assert connection.settings_dict["ROLE"] == value_of("SELECT session_user")
            for other in {"postgres", *in_force.names.values()} - {name}:
                for statement in (f'SET SESSION AUTHORIZATION "{other}"', f'SET ROLE "{other}"'):
                    with pytest.raises(Error, match="permission denied"):
                        run_sql(statement)
            assert kind
