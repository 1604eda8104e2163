"""Calls and their outputs become one event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sessions_app.timeline import Timeline, build_timeline
from sessions_app.timeline.blocks import Data, TextBlock
from sessions_app.timeline.events import Handoff, Message, NoteEvent, ToolCall, ToolState
from sessions_app.timeline.values import length
from tests.cases import for_each
from tests.sessions.timeline.items import assistant, call, handoff, output, session, user


def whole(*batches: Sequence[Any]) -> Timeline:
    return build_timeline(session(*batches), starts_session=True, ends_session=True)


def tools(timeline: Timeline) -> list[ToolCall]:
    return [event for event in timeline.events if isinstance(event, ToolCall)]


@for_each(
    ("asked", "answer"),
    [
        (call("a"), output("a")),
        (
            {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT 1"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "1"},
        ),
        (
            {"type": "computer_call", "call_id": "a", "action": {"type": "wait"}},
            {"type": "computer_call_output", "call_id": "a", "output": {"type": "computer_screenshot", "file_id": "f"}},
        ),
        (
            {"type": "local_shell_call", "id": "ls", "call_id": "a", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "a", "output": "total 0"},
        ),
        (
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "a", "output": []},
        ),
        (
            {"type": "apply_patch_call", "call_id": "a", "operation": {"type": "delete_file", "path": "x"}},
            {"type": "apply_patch_call_output", "call_id": "a", "status": "completed", "output": "gone"},
        ),
        (
            {"type": "tool_search_call", "call_id": "a", "arguments": {"query": "crm"}},
            {"type": "tool_search_output", "call_id": "a", "tools": []},
        ),
        (
            {"type": "tool_search_call", "call_id": None, "arguments": {"query": "crm"}},
            {"type": "tool_search_output", "call_id": None, "tools": []},
        ),
        (
            {"type": "program", "call_id": "a", "code": "return 1"},
            {"type": "program_output", "call_id": "a", "result": "1", "status": "completed"},
        ),
        (
            {"type": "multi_agent_call", "call_id": "a", "action": "spawn_agent", "arguments": "{}"},
            {"type": "multi_agent_call_output", "call_id": "a", "output": "spawned"},
        ),
    ],
    ids=lambda item: item["type"],
)
def test_output_joins_its_call(asked: dict[str, Any], answer: dict[str, Any]) -> None:
    timeline = whole([user("go")], [asked, answer])
    (event,) = tools(timeline)
    assert event.item_ids == ("2", "3")
    assert event.output_item is not None
    assert event.state is ToolState.OK
    assert not timeline.findings


@for_each(("approve", "state"), [(True, ToolState.APPROVED), (False, ToolState.DENIED)])
def test_decision_joins_the_request(approve: bool, state: ToolState) -> None:
    request = {"type": "mcp_approval_request", "id": "r", "server_label": "wiki", "name": "ask", "arguments": "{}"}
    (event,) = tools(
        whole(
            [user("go")], [request], [{"type": "mcp_approval_response", "approval_request_id": "r", "approve": approve}]
        )
    )
    assert event.title == "Approval requested"
    assert event.state is state


def test_a_call_whose_output_was_written_later_has_a_duration() -> None:
    (later,) = tools(whole([user("go")], [call("a")], [output("a")]))
    assert later.duration == "1 min"
    (at_once,) = tools(whole([user("go")], [call("a"), output("a")]))
    (open_call,) = tools(whole([user("go")], [call("a")]))
    without_times = [replace(item, written_at=None) for item in session([call("a")], [output("a")])]
    (timeless,) = tools(build_timeline(without_times, starts_session=True, ends_session=True))
    assert at_once.duration == open_call.duration == timeless.duration == ""


@for_each(
    ("seconds", "shown"),
    [(0.0002, "1 ms"), (0.412, "412 ms"), (1.24, "1.2 s"), (30, "30 s"), (90, "1.5 min"), (9_000, "2.5 h")],
)
def test_lengths_of_time_are_short(seconds: float, shown: str) -> None:
    assert length(timedelta(seconds=seconds)) == shown


def test_parallel_calls_are_stored_before_their_outputs() -> None:
    timeline = whole([user("go")], [call("a"), call("b"), output("b", "B"), output("a", "A")])
    assert [event.item_ids for event in tools(timeline)] == [("2", "5"), ("3", "4")]


def test_keys_that_come_again_in_a_later_run_are_paired_within_it() -> None:
    timeline = whole(
        [user("one")], [call("call_1")], [user("two")], [call("call_1"), output("call_1")], [assistant("done")]
    )
    first, second = tools(timeline)
    assert first.state is ToolState.UNANSWERED
    assert second.item_ids == ("4", "5")


def test_keys_that_come_twice_in_one_turn_are_paired_in_order() -> None:
    timeline = whole([user("go")], [call("x"), call("x"), output("x", "first"), output("x", "second")])
    assert [event.item_ids for event in tools(timeline)] == [("2", "4"), ("3", "5")]


def test_output_of_another_family_does_not_answer() -> None:
    timeline = whole([user("go")], [call("a"), {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}])
    assert [event.state for event in tools(timeline)] == [ToolState.AWAITING_APPROVAL, ToolState.UNCALLED]


def test_id_that_every_item_shares_pairs_nothing() -> None:
    spoken = {**assistant("hi"), "id": "__fake_id__"}
    timeline = whole([user("go")], [spoken, spoken, {"type": "item_reference", "id": "__fake_id__"}])
    *_, reference = timeline.events
    assert isinstance(reference, NoteEvent)
    assert reference.detail == "not on this page"
    assert [event.item.id for event in timeline.events] == ["1", "2", "3", "4"]


def test_reference_names_the_row_that_is_meant() -> None:
    *_, reference = whole([user("go")], [assistant("hi")], [{"type": "item_reference", "id": "msg_1"}]).events
    assert reference.detail == "item 2"


def test_calls_of_a_program_are_told_inside_it() -> None:
    inner = {**call("b"), "caller": {"type": "program", "caller_id": "a"}}
    timeline = whole(
        [user("go")],
        [{"type": "program", "call_id": "a", "code": "…"}, inner, output("b")],
        [{"type": "program_output", "call_id": "a", "result": '{"temp": 25}'}],
    )
    _, program = (event for run in timeline.runs for event in run.events)
    assert isinstance(program, ToolCall)
    assert [nested.item_ids for nested in program.nested] == [("3", "4")]
    assert program.item_ids == ("2", "5")
    assert program.output == (Data({"temp": 25}),)


def test_handoff_is_one_event_and_names_who_acts_from_then_on() -> None:
    to_billing, billing_took_over = handoff("h", "Billing agent")
    to_refunds, refunds_took_over = handoff("i", "Refunds")
    timeline = whole(
        [user("money back")],
        [to_billing, billing_took_over],
        [call("a"), output("a")],
        [to_refunds, refunds_took_over],
        [assistant("done")],
        [user("thanks")],
        [assistant("welcome")],
    )
    _, first, tool, second, answer, _, later = timeline.events
    assert isinstance(first, Handoff)
    assert isinstance(second, Handoff)
    assert (first.agent, first.to_agent) == ("", "Billing agent")
    assert (second.agent, second.to_agent) == ("Billing agent", "Refunds")
    assert tool.agent == "Billing agent"
    assert answer.title == "Refunds"
    assert later.title == "Assistant", "nobody knows which agent the next run began with"
    assert timeline.runs[0].agents == ("Billing agent", "Refunds")


def test_second_handoff_of_a_turn_is_ignored() -> None:
    taken, taken_output = handoff("h", "Billing")
    ignored, _ = handoff("i", "Sales")
    timeline = whole(
        [user("go")],
        [taken, ignored, taken_output, output("i", "Multiple handoffs detected, ignoring this one.")],
        [assistant("hello")],
    )
    *_, second, answer = timeline.events
    assert [badge.word for badge in second.badges] == ["ignored"]
    assert answer.agent == "Billing"


@for_each("answer", ["Transfer successful", '{"assistant": "Ana", "queue": 3}', '{"assistant": 5}', "{}"])
def test_tool_that_is_only_named_like_a_handoff_stays_a_tool(answer: str) -> None:
    (event,) = tools(whole([user("human!")], [call("a", "transfer_to_human"), output("a", answer)]))
    assert event.title == "transfer_to_human"


@for_each(
    ("text", "state"),
    [
        ("An error occurred while running the tool. Please try again.", ToolState.FAILED),
        ("An error occurred while running the tool. Please try again. Error: boom", ToolState.FAILED),
        ("Tool 'create_refund' timed out after 30 seconds.", ToolState.FAILED),
        ("Tool 'create_refund' timed out after 0.5 seconds.", ToolState.FAILED),
        ("Tool 'nope' not found.", ToolState.FAILED),
        ("Tool execution was not approved.", ToolState.NOT_APPROVED),
        ("The weather station said: An error occurred while running the tool.", ToolState.OK),
        ("18 C", ToolState.OK),
    ],
)
def test_failed_tool_is_recognised_by_the_texts_of_the_sdk(text: str, state: ToolState) -> None:
    (event,) = tools(whole([user("go")], [call("a"), output("a", text)]))
    assert event.state is state
    assert event.is_collapsed is (state is ToolState.OK)


@for_each(
    "answer",
    [
        {"type": "mcp_call", "name": "ask", "error": {"type": "http_error", "code": 502, "message": "Bad Gateway"}},
        {"type": "image_generation_call", "status": "failed", "error": {"code": "x", "message": "Blocked"}},
        {"type": "code_interpreter_call", "status": "failed", "code": "1/0", "outputs": None},
    ],
    ids=lambda item: item["type"],
)
def test_failed_hosted_tool_says_so_itself(answer: dict[str, Any]) -> None:
    (event,) = tools(whole([user("go")], [answer]))
    assert event.state is ToolState.FAILED


def test_failed_command_of_a_shell() -> None:
    results = [{"stdout": "", "stderr": "no such file", "outcome": {"type": "exit", "exit_code": 2}}]
    (event,) = tools(
        whole(
            [user("go")],
            [
                {"type": "shell_call", "call_id": "a", "action": {"commands": ["cat x"]}},
                {"type": "shell_call_output", "call_id": "a", "output": results},
            ],
        )
    )
    assert event.state is ToolState.FAILED
    assert event.output == (TextBlock("no such file", "Command 1, exit 2, stderr", style="machine"),)


def test_values_of_environment_variables_are_not_shown() -> None:
    shell = {"type": "local_shell_call", "call_id": "a", "action": {"command": ["ls"], "env": {"TOKEN": "hush"}}}
    (event,) = tools(whole([user("go")], [shell]))
    assert "environment: TOKEN, values not shown" in event.notes
    assert "hush" not in repr((event.title, event.detail, event.body, event.notes))


def test_json_in_a_string_is_shown_parsed() -> None:
    (event,) = tools(whole([user("go")], [call("a", arguments='{"city": "Riga"}'), output("a", '[{"t": 18}]')]))
    assert event.detail == '(city: "Riga")'
    assert event.body == (Data({"city": "Riga"}, "Arguments"),)
    assert event.output == (Data([{"t": 18}]),)


def test_long_json_in_a_string_is_not_parsed() -> None:
    long = json.dumps(["x"] * 50_000)
    (event,) = tools(whole([user("go")], [call("a"), output("a", long)]))
    assert event.output == (TextBlock(long, style="machine"),)


def test_refusal_and_phase_are_said_beside_the_speaker() -> None:
    refused = {"role": "assistant", "type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    _, event = whole([user("go")], [refused]).events
    assert isinstance(event, Message)
    assert event.is_refusal
    assert event.body == (TextBlock("No."),)


def test_reasoning_points_to_the_item_it_belongs_to() -> None:
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look it up"}]}
    _, event, _ = whole([user("go")], [reasoning, call("a"), output("a")]).events
    assert getattr(event, "next_item_id", None) == "3"


def test_output_with_parts_shows_each_of_them() -> None:
    parts = [{"type": "input_text", "text": "chart"}, {"type": "input_file", "filename": "a.pdf", "file_id": "f1"}]
    (event,) = tools(whole([user("go")], [call("a"), output("a", parts)]))
    assert [block.kind for block in event.output] == ["text", "reference"]


def test_list_that_is_no_list_of_parts_stays_data() -> None:
    (event,) = tools(whole([user("go")], [call("a"), output("a", json.loads('[{"type": "room", "text": "A"}]'))]))
    assert event.output == (Data([{"type": "room", "text": "A"}]),)
