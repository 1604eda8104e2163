"""Looking through sessions that were written to, as the worker does it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sessions_app.models import SessionFinding, SessionRecord
from sessions_app.services.inspection import inspect_quiet_sessions, inspect_session
from sessions_app.stores import backend_for
from tests.agents import add_items, assistant, second_connection
from tests.builders import make_session, make_store

AT_ONCE = timedelta(0)

CALL = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
ENVELOPE = {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAAAABrAO-iDemo"}


pytestmark = pytest.mark.usefixtures("kept_main_store")


def test_a_session_with_something_wrong_is_found_and_leads_to_the_item() -> None:
    add_items("s", "Where is my order?")
    add_items("s", OUTPUT)

    assert inspect_quiet_sessions(quiet=AT_ONCE) == 1

    record = SessionRecord.objects.get()
    finding = SessionFinding.objects.get()
    assert record.finding_count == 1
    assert finding.kind == "output_without_call"
    item = backend_for(record.store).item("s", finding.item_id)
    assert "call_1" in item.raw


def test_a_finding_goes_when_its_reason_goes() -> None:
    add_items("s", "Where is my order?")
    add_items("s", CALL)
    inspect_quiet_sessions(quiet=AT_ONCE)
    assert SessionFinding.objects.count() == 1

    add_items("s", OUTPUT)
    add_items("s", assistant("It ships today."))
    inspect_quiet_sessions(quiet=AT_ONCE)

    assert SessionRecord.objects.get().finding_count == 0
    assert not SessionFinding.objects.exists()


def test_a_session_is_inspected_once_until_an_agent_writes_again() -> None:
    add_items("s", "Hello")
    assert inspect_quiet_sessions(quiet=AT_ONCE) == 1
    assert inspect_quiet_sessions(quiet=AT_ONCE) == 0

    add_items("s", assistant("Hello, how can I help?"))
    assert inspect_quiet_sessions(quiet=AT_ONCE) == 1


def test_a_running_session_is_left_alone() -> None:
    add_items("s", "Hello")
    assert inspect_quiet_sessions(quiet=timedelta(hours=1)) == 0
    assert SessionRecord.objects.awaiting_inspection().count() == 1


def test_what_is_written_during_an_inspection_is_inspected_next_time() -> None:
    add_items("s", "Hello")
    record = SessionRecord.objects.select_related("store").get()
    add_items("s", assistant("Hello, how can I help?"))

    inspect_session(record)

    assert SessionRecord.objects.awaiting_inspection().count() == 1


def test_encryption_and_the_last_agent_are_noted() -> None:
    add_items("sealed", ENVELOPE)
    add_items("handed", "I want my money back")
    add_items(
        "handed",
        {"type": "function_call", "call_id": "c", "name": "transfer_to_refunds", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": '{"assistant": "Refunds"}'},
    )

    inspect_quiet_sessions(quiet=AT_ONCE)

    assert SessionRecord.objects.get(session_id="sealed").is_encrypted
    assert SessionRecord.objects.get(session_id="handed").agent == "Refunds"


def test_an_agent_can_write_while_findings_are_noted() -> None:
    """The inspection locks the registry row without its key, which a writer in flight holds."""
    add_items("s", "Hello")
    record = SessionRecord.objects.select_related("store").get()
    with second_connection() as agent:
        # A writer that has passed the fence and not committed: BEFORE INSERT holds FOR KEY SHARE.
        agent.execute("SELECT FROM sessions_app_sessionrecord WHERE session_id = 's' FOR KEY SHARE")
        inspect_session(record)
    assert SessionRecord.objects.get().inspected_count == record.activity_count


def test_a_session_erased_meanwhile_stays_without_a_trace() -> None:
    add_items("s", OUTPUT)
    record = SessionRecord.objects.select_related("store").get()
    SessionRecord.objects.update(erased_at=record.registered_at)

    inspect_session(record)

    assert not SessionFinding.objects.exists()


def test_a_store_that_is_away_holds_up_no_other() -> None:
    """Its sessions wait longest, so they would fill every batch."""
    away = make_store("away", sessions_table="gone.sessions", messages_table="gone.messages")
    for _ in range(3):
        make_session(store=away)
    add_items("s", OUTPUT)

    assert inspect_quiet_sessions(quiet=AT_ONCE, limit=2) == 1

    assert SessionRecord.objects.get(session_id="s").finding_count == 1
