"""Messages in chat form, as other libraries keep them: calls and results are in the messages themselves."""

from __future__ import annotations

from typing import Any

from sessions_app.timeline import build_timeline
from sessions_app.timeline.blocks import Data, TextBlock
from sessions_app.timeline.events import Message, ToolState
from tests.sessions.timeline.items import session, user


def messages(*values: dict[str, Any]) -> list[Message]:
    timeline = build_timeline(session(values), starts_session=True, ends_session=True)
    assert not timeline.findings
    return [event for event in timeline.events if isinstance(event, Message)]


def asks(name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"id of {name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_what_a_message_calls_stands_behind_what_it_says() -> None:
    calls = [asks("look_up", '{"order": 7}'), asks("ring", "")]
    _, answer = messages(user("Where is it?"), {"role": "assistant", "content": "Let me see.", "tool_calls": calls})
    assert answer.body == (TextBlock("Let me see."), Data({"order": 7}, "Calls look_up"), Data({}, "Calls ring"))
    assert "without content" not in answer.notes


def test_a_result_says_of_which_tool_and_whether_it_failed() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "tool_name": "look_up", "content": '{"at": "the door"}'}
    found, failed = messages(result, {**result, "content": "no such order", "tool_call_error": True})
    assert (found.title, found.detail, found.notes) == ("Tool", "result of look_up", ("call c1",))
    assert found.body == (Data({"at": "the door"}),)
    assert ToolState.FAILED.value not in found.badges
    assert ToolState.FAILED.value in failed.badges


def test_what_a_model_thought_comes_first() -> None:
    _, answer = messages(user("?"), {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."})
    assert answer.body == (TextBlock("Hm.", "Reasoning"), TextBlock("Yes."))


def test_calls_that_make_no_sense_are_shown_all_the_same() -> None:
    _, answer = messages(user("?"), {"role": "assistant", "tool_calls": ["x", {"function": {"arguments": "{"}}]})
    assert [block.label for block in answer.body if isinstance(block, Data | TextBlock)] == [
        "Calls a tool without a name"
    ] * 2
