"""The demo bots propose, wait for a person, and then use what was approved."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from memadmin.client.items import text_of
from memadmin.demo import agents, preparing, remembering, talks
from memadmin.demo.stories import support
from memadmin.deploy.roles import Roles
from memories_app.learning import evidence_linking
from memories_app.learning.evidence_linking import place_evidence
from memories_app.learning.screening import screen_memories
from memories_app.models import Evidence, Memory, RecalledMemory, Signal
from sessions_app.masked_reader import reader_for
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.timeline.decode import parse_json
from tests.agents import attach_main_store, run_sql
from tests.deploy.conftest import in_force  # noqa: F401
from tests.deploy.connecting import bring_into_force

pytestmark = pytest.mark.release

STORIES = [support.DENTED_POT, support.SAME_AS_LAST_TIME]


@pytest.fixture
def role(in_force: Roles, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: F811
    settings.DATA_DIR = tmp_path
    settings.SESSION_KEYS = {}
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    attach_main_store()
    bring_into_force(in_force)
    monkeypatch.setattr(preparing, "ROLES", in_force)
    return in_force["agents"]


def quoted(evidence: Evidence) -> str:
    """What stands in the store at the place that a piece of evidence names."""
    record = SessionRecord.objects.get(pk__in=[evidence.record_id])
    content = parse_json(reader_for(record.store).item(record.session_id, evidence.item_id).raw)
    assert isinstance(content, dict)
    return text_of(content)


def run_again() -> str:
    said = StringIO()
    call_command("demo_run", "support", stdout=said)
    return said.getvalue()


def test_their_proposals_wait_with_the_items_that_they_come_from(role: str) -> None:
    agents.run_all(STORIES, role=role)
    assert set(Memory.objects.values_list("statement", "status", "key")) == {
        ("Wants refunds on the card, never as a voucher.", "proposed", "refund_method"),
        ("Orders go to Kalju 4, Tallinn.", "proposed", "delivery_address"),
    }
    assert place_evidence(within=timedelta(0)) == 0
    assert place_evidence() == 2
    assert place_evidence() == 0
    for evidence in Evidence.objects.all():
        assert quoted(evidence) == evidence.quote
    assert "not a voucher" in Evidence.objects.get(memory__key="refund_method").quote
    assert [signal.text for signal in Signal.objects.filter(kind="correction")] == [
        "Sorry, I mean Tallinn! Kalju 4, Tallinn. How long will it take to Tallinn?"
    ]
    # Nobody has decided anything, and nobody pretends so.
    assert not Memory.objects.exclude(status="proposed").exists()
    assert not RecalledMemory.objects.exists()


def test_what_a_person_approves_changes_the_next_run(role: str, reviewer: Client) -> None:
    agents.run_all([support.DENTED_POT], role=role)
    said = run_again()
    assert "Memory:   none; 1 proposals about this person wait" in said
    assert "or would you like a voucher?" in said

    place_evidence()
    screen_memories()
    memory = Memory.objects.get()
    page = reviewer.get(reverse("reviews:review", args=[memory.pk])).content.decode()
    assert "never as a voucher" in page
    assert f"?item={memory.evidence.get().item_id}" in page
    read = {"content_hash": memory.content_hash}
    assert reviewer.post(reverse("reviews:approve", args=[memory.pk]), read).status_code == 302
    said = run_again()
    assert "Memory:   Wants refunds on the card, never as a voucher. (version 1)" in said
    assert "I know about you: Wants refunds on the card" in said
    recalled = RecalledMemory.objects.get()
    record = SessionRecord.objects.get(pk__in=[recalled.recall.record_id])
    assert record.get_absolute_url() in said
    assert record.ticket.startswith("T-")


def test_a_bot_that_keeps_its_sessions_in_a_file_proposes_too(role: str) -> None:
    talks.connect()
    with remembering.reached(role):
        talks.tell([talk for talk in talks.TALKS if talk.place is talks.COUNTER])
    assert Memory.objects.get().statement.startswith("Would rather take an order along")
    assert place_evidence() == 1
    evidence = Evidence.objects.get()
    assert quoted(evidence) == evidence.quote
    assert evidence.session_id == "counter:cust_48213"


def test_a_quote_is_found_when_much_was_said_since(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_linking, "PAGE", 2)
    monkeypatch.setattr(evidence_linking, "MOST_PAGES", 1)
    agents.run_all([support.DENTED_POT], role=role)
    assert place_evidence() == 0
    monkeypatch.setattr(evidence_linking, "MOST_PAGES", 10)
    assert place_evidence() == 1
    assert quoted(Evidence.objects.get()) == Evidence.objects.get().quote


def test_what_is_not_found_is_left_without_a_place(role: str) -> None:
    agents.run_all([support.DENTED_POT], role=role)
    run_sql("UPDATE agent_messages SET message_data = '{'")
    assert place_evidence() == 0
    run_sql("DROP TABLE agent_messages CASCADE")
    assert place_evidence() == 0
    SessionStore.objects.update(encryption_key="demo")
    assert place_evidence() == 0
    assert Evidence.objects.get().item_id == ""
