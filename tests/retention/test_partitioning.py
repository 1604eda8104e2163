"""Hash partitions of the agents' tables, made with the SQL of docs/partitioning.md: everything works as before."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from sqlalchemy.exc import DBAPIError

from memadmin.erasure.models import SubjectRequest
from memadmin.retention.models import SweepResult
from memadmin.retention.sweep.tables import sizes_of, with_too_many_dead
from memadmin.retention.vacuum import vacuum
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.registry import health
from sessions_app.search.remembered import remember_search
from sessions_app.services.sessions import attach_sessions
from sessions_app.stores import backend_for
from tests.agents import add_items, assistant, attach_main_store, in_sdk, run_sql, user, value_of
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.people import person
from tests.retention.policies import age, in_force, swept
from tests.table_statistics import keep_autovacuum_off, wait_for_statistics

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = (settings.CHECKOUT_DIR / "docs" / "partitioning.md").read_text()
MAKE, DROP_COPIES = re.findall(r"^ *```sql\n(.*?)^ *```", DOCUMENT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    """The main store: attached, written to, and then partitioned as the document says."""
    store = attach_main_store()
    for name in ("old", "ours", "young"):
        add_items(name, user("Good morning"), assistant("Good morning!"))
    call_command("attach_store", "main", "--remove", verbosity=0)
    run_sql(MAKE)
    run_sql("ANALYZE agent_sessions, agent_messages")
    call_command("attach_store", "main", verbosity=0)
    run_sql(DROP_COPIES)
    store.refresh_from_db()
    return store


def items_of(session_id: str) -> int:
    return int(value_of(f"SELECT count(*) FROM agent_messages WHERE session_id = '{session_id}'"))


def test_the_document_has_both_statements() -> None:
    assert "PARTITION BY HASH (session_id)" in MAKE
    assert "DROP TABLE" in DROP_COPIES


def test_nothing_is_lost_and_the_store_is_healthy(store: SessionStore) -> None:
    assert value_of("SELECT count(*) FROM pg_inherits WHERE inhparent = 'agent_messages'::regclass") == 8
    assert not value_of("SELECT to_regclass('agent_messages_plain')")
    assert [items_of(name) for name in ("old", "ours", "young")] == [2, 2, 2]
    assert not health(store).problems
    assert SessionRecord.objects.count() == 3


def test_the_sdk_writes_reads_and_pops_and_the_registry_follows(store: SessionStore) -> None:
    before = SessionRecord.objects.get(session_id="young").activity_count
    add_items("young", "And now?")
    add_items("new", *(f"item {number}" for number in range(20)))
    assert SessionRecord.objects.get(session_id="young").activity_count > before
    assert SessionRecord.objects.filter(session_id="new").exists()
    popped = in_sdk(lambda tables: tables.session("young").pop_item())
    assert popped == user("And now?")
    assert items_of("young") == 2
    assert backend_for(store).count("new") == 20
    in_sdk(lambda tables: tables.session("new").clear_session())
    assert items_of("new") == 0


def test_a_sweep_takes_old_sessions_and_agents_go_on_with_the_others(store: SessionStore) -> None:
    age("old", timedelta(days=40))
    in_force("Chats", days=30)
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    assert [items_of(name) for name in ("old", "ours", "young")] == [0, 2, 2]
    result = SweepResult.objects.get()
    assert result.tables == {"agent_messages": 2, "agent_sessions": 1, "sessions_app_sessionrecord": 1}
    add_items("old", "I am back")
    add_items("young", "Still here")
    assert [items_of(name) for name in ("old", "young")] == [1, 3]


def test_an_erasure_erases_and_the_fence_keeps_agents_out(store: SessionStore) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    subject = make_subject("customer-77-ada")
    attach_sessions(SessionRecord.objects.filter(session_id="ours"), subject, by=officer)
    request = approved(subject, by=officer, second=second)
    work_off(request)
    assert request.state == SubjectRequest.State.SCANNING
    assert [items_of(name) for name in ("old", "ours", "young")] == [2, 0, 2]
    with pytest.raises(DBAPIError, match="erased"):
        add_items("ours", "Hello again")
    assert items_of("ours") == 0


def test_sizes_and_vacuum_are_those_of_all_partitions(store: SessionStore, settings: Any) -> None:
    [size] = sizes_of(["agent_messages"])
    assert size.partitions == 8
    parts = "SELECT sum(pg_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'agent_messages'::regclass"
    assert size.size >= value_of(parts) > 0
    keep_autovacuum_off("agent_messages")
    add_items("bulk", *(f"item {number}" for number in range(100)))
    run_sql("DELETE FROM agent_messages WHERE session_id = 'bulk'")
    settings.RETENTION_DEAD_ROWS = 20
    wait_for_statistics(lambda: with_too_many_dead(["agent_messages"]) == {"agent_messages": 100})
    # While autovacuum analyzes any other table, rows that died meanwhile stay.
    wait_for_statistics(lambda: vacuum("agent_messages", analyze=True) and not with_too_many_dead(["agent_messages"]))


def test_the_runner_of_the_sdk_continues_a_conversation(store: SessionStore) -> None:
    agent = Agent("Tea", model=ScriptedModel([[assistant_message("With milk?")]]))
    quiet = RunConfig(tracing_disabled=True)
    in_sdk(lambda tables: Runner.run(agent, "Tea, please", session=tables.session("young"), run_config=quiet))
    assert items_of("young") == 4


class TestPages:
    """Pages that read agents' tables: list, timeline in both directions, searches, subject."""

    @pytest.fixture
    def subject(self, store: SessionStore) -> Subject:
        """A subject with two of the sessions, in different partitions."""
        for run in range(30):
            said = [assistant(f"tea number {run * 10 + number}") for number in range(1, 10)]
            add_items("young", user(f"tea number {run * 10}"), *said)
        subject = make_subject("customer-77-ada")
        both = SessionRecord.objects.filter(session_id__in=("ours", "young"))
        attach_sessions(both, subject, by=person("compliance"))
        partition = "SELECT count(DISTINCT tableoid) FROM agent_sessions WHERE session_id IN ('ours', 'young')"
        assert value_of(partition) == 2
        return subject

    def test_lists_show_sessions_of_all_partitions(self, subject: Subject, operator: Client) -> None:
        page = operator.get(reverse("sessions:list"))
        records = {each.session_id: each for each in SessionRecord.objects.all()}
        assert all(records[name].get_absolute_url() in page.text for name in ("old", "ours", "young"))
        assert "Good morning" in page.text
        page = operator.get(subject.get_absolute_url())
        assert records["young"].get_absolute_url() in page.text
        assert records["ours"].get_absolute_url() in page.text
        assert records["old"].get_absolute_url() not in page.text

    def test_a_timeline_is_walked_to_its_start_and_its_end(self, subject: Subject, operator: Client) -> None:
        address = SessionRecord.objects.get(session_id="young").get_absolute_url()
        newest = operator.get(address)
        assert "tea number 299" in newest.text
        assert "tea number 20<" not in newest.text
        start = operator.get(address, {"start": "1"})
        assert "Good morning!" in start.text
        assert "tea number 299" not in start.text
        item = value_of("SELECT id FROM agent_messages WHERE message_data LIKE '%tea number 100%'")
        middle = operator.get(address, {"item": str(item)})
        assert "tea number 100" in middle.text
        assert middle.context["target"] == str(item)

    def test_texts_and_ids_are_found(self, subject: Subject, operator: Client) -> None:
        by_id = operator.post(reverse("sessions:search"), {"q": "customer-77-ada"}, follow=True)
        assert subject.get_absolute_url() in by_id.text
        search = remember_search(person("support", "reviewer"), "tea number 137")
        page = operator.get(reverse("sessions:search-messages", args=[search.pk]))
        assert SessionRecord.objects.get(session_id="young").get_absolute_url() in page.text
        everywhere = remember_search(person("support", "auditor"), "Good morning")
        page = operator.get(reverse("sessions:search-messages", args=[everywhere.pk]))
        found = {record for record in SessionRecord.objects.all() if record.get_absolute_url() in page.text}
        assert len(found) == 3

    def test_what_was_swept_and_erased_is_on_no_page(self, subject: Subject, operator: Client) -> None:
        records = {each.session_id: each for each in SessionRecord.objects.all()}
        age("old", timedelta(days=40))
        in_force("Chats", days=30)
        assert swept().state == Run.State.COMPLETE
        request = approved(subject, by=person("compliance", "support"), second=person("compliance", "reviewer"))
        work_off(request)
        assert value_of("SELECT count(*) FROM agent_messages") == 0
        page = operator.get(reverse("sessions:list"))
        assert not any(record.get_absolute_url() in page.text for record in records.values())
        search = remember_search(person("support", "reviewer"), "Good morning")
        page = operator.get(reverse("sessions:search-messages", args=[search.pk]))
        assert "No messages match" in page.text
        for record in records.values():
            assert "Good morning" not in operator.get(record.get_absolute_url()).text
