"""What a person should look at, and what must not be called a finding."""

from __future__ import annotations

from typing import Any

from sessions_app.timeline import FindingCode, Inspector, build_timeline
from sessions_app.timeline.events import ToolCall, ToolState
from sessions_app.timeline.findings import SENTENCES, TITLES
from tests.cases import for_each
from tests.sessions.timeline.items import (
    COMPACTION,
    ENVELOPE,
    FIRST_BATCH_AT,
    MINUTE,
    Raw,
    assistant,
    call,
    handoff,
    output,
    session,
    stored,
    user,
)

REQUEST = {"type": "mcp_approval_request", "id": "r", "server_label": "wiki", "name": "ask", "arguments": "{}"}
PROGRAM = {"type": "program", "call_id": "p", "code": "return 1"}


@for_each(
    ("batches", "expected"),
    [
        ([[user("hi")], [assistant("hello")]], []),
        ([[user("hi")], [output("a")]], [("output_without_call", "2")]),
        ([[user("hi")], [call("a")], [user("hello?")]], [("call_without_output", "2")]),
        ([[user("hi")], [call("a")]], [("approval_open", "2")]),
        ([[user("hi")], [call("a")], [output("a")], [assistant("done")]], []),
        ([[user("hi")], [REQUEST], [user("hello?")]], [("approval_open", "2")]),
        ([[user("hi")], [PROGRAM]], [("call_without_output", "2")]),
        ([[user("hi")], [handoff("h", "Billing")[0]]], [("call_without_output", "2")]),
        ([[user("hi")], [user("hello?")], [user("anyone?")]], [("unanswered_text", "1"), ("unanswered_text", "2")]),
        ([[user("hi")], [{"role": "developer", "content": "x"}], [user("you?")]], [("unanswered_text", "1")]),
        ([[user("hi"), user("all of you")], [assistant("hello")]], []),
        ([[user("hi")]], []),
        ([[user("hi")], [Raw("{broken")]], [("undecodable", "2")]),
        ([[user("hi"), COMPACTION]], [("compaction", "2")]),
        ([[user("hi")], [ENVELOPE]], [("plaintext_before_encrypted", "2")]),
        ([[ENVELOPE], [user("hi"), assistant("x")], [ENVELOPE]], [("plaintext_among_encrypted", "2")]),
        ([[ENVELOPE], [ENVELOPE]], []),
        ([[{"type": "function_call_output", "call_id": 5, "output": "x"}]], []),
    ],
)
def test_findings_of_a_whole_session(batches: list[list[Any]], expected: Any) -> None:
    items = session(*batches)
    timeline = build_timeline(items, starts_session=True, ends_session=True)
    assert [(finding.code, finding.item.id) for finding in timeline.findings] == expected
    inspector = Inspector()
    inspector.feed(items)
    assert inspector.finish().findings == timeline.findings
    assert [finding for event in timeline.events for finding in event.findings] == list(timeline.findings)


def test_writer_in_another_time_zone_is_noticed() -> None:
    """The row was written between the others; its clock is nine hours ahead, so the agent reads it last."""
    hour = 60 * MINUTE
    times = {
        "1": FIRST_BATCH_AT,
        "2": FIRST_BATCH_AT + MINUTE,
        "4": FIRST_BATCH_AT + 2 * MINUTE,
        "3": FIRST_BATCH_AT + 9 * hour,
    }
    items = [stored(user(f"text {id}"), id=id, written_at=at) for id, at in times.items()]
    findings = build_timeline(items, starts_session=True, ends_session=True).findings
    assert ("out_of_order", "3") in [(finding.code, finding.item.id) for finding in findings]


def test_window_calls_nothing_missing_that_may_stand_outside_it() -> None:
    items = session([output("a")], [user("hi")], [call("b")])
    timeline = build_timeline(items, starts_session=False, ends_session=False)
    lone_output, _, lone_call = timeline.events
    assert not timeline.findings
    assert isinstance(lone_output, ToolCall)
    assert isinstance(lone_call, ToolCall)
    assert lone_output.state is ToolState.CALL_ELSEWHERE
    assert lone_call.state is ToolState.OUTPUT_ELSEWHERE


def test_window_does_not_know_what_was_encrypted_before_it() -> None:
    items = session([ENVELOPE], [user("hi")], [ENVELOPE])
    assert not build_timeline(items[1:], starts_session=False, ends_session=True).findings


def test_orphan_is_certain_only_at_its_end_of_the_session() -> None:
    items = session([output("a")], [user("hi")], [call("b")])
    at_start = build_timeline(items, starts_session=True, ends_session=False).findings
    assert [finding.code for finding in at_start] == [FindingCode.OUTPUT_WITHOUT_CALL]
    at_end = build_timeline(items, starts_session=False, ends_session=True).findings
    assert [finding.code for finding in at_end] == [FindingCode.APPROVAL_OPEN]


def test_inspector_tells_encryption_and_the_agents_that_took_over() -> None:
    inspector = Inspector()
    inspector.feed(
        session([user("hi")], handoff("h", "Billing agent"), handoff("i", "Refunds"), handoff("j", "Refunds"))
    )
    inspection = inspector.finish()
    assert inspection.agents == ("Billing agent", "Refunds")
    assert inspection.last_agent == "Refunds"
    assert (inspection.is_encrypted, inspection.has_plain_items) == (False, True)
    for items, has_plain_items in (([ENVELOPE], False), ([ENVELOPE, user("hi")], True), ([user("hi"), ENVELOPE], True)):
        inspector = Inspector()
        inspector.feed(session(items))
        inspection = inspector.finish()
        assert (inspection.is_encrypted, inspection.has_plain_items) == (True, has_plain_items)


def test_inspector_remembers_only_what_is_open() -> None:
    inspector = Inspector()
    batches = [[user("hi")], [call("a"), output("a")], [assistant("ok")]]
    inspector.feed(session(*batches * 500))
    assert not inspector._calls.remaining()
    assert not inspector.finish().findings


def test_every_code_has_its_words() -> None:
    assert TITLES.keys() == SENTENCES.keys() == set(FindingCode)


def test_what_was_redacted_carries_a_badge() -> None:
    items = session(
        [user("My key is [redacted]"), user("fine")], [call("a", arguments='{"key":"[redacted]"}'), output("a")]
    )
    events = list(build_timeline(items, starts_session=True, ends_session=True).events)
    assert [any(badge.word == "redacted" for badge in event.badges) for event in events] == [True, False, True]
