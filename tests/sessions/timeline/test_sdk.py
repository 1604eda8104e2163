"""What we know of the SDK by heart, held against the SDK that is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from agents import Agent, RunContextWrapper, TResponseInputItem, handoff
from agents.tool import (
    DEFAULT_APPROVAL_REJECTION_MESSAGE,
    default_tool_error_function,
    default_tool_timeout_error_message,
)

from sessions_app.timeline import build_timeline
from sessions_app.timeline.events import Handoff, ToolCall, ToolState
from tests.cases import for_each
from tests.sessions.timeline.items import call, output, session, stored, user


def types_of_the_sdk() -> Iterator[str]:
    for member in get_args(TResponseInputItem):
        yield from (name for name in _literals(get_type_hints(member).get("type")) if isinstance(name, str))


def _literals(hint: Any) -> Iterator[Any]:
    for inner in get_args(hint):
        if get_args(inner):
            yield from _literals(inner)
        elif not isinstance(inner, type):
            yield inner


@for_each("item_type", sorted(set(types_of_the_sdk())))
def test_no_type_of_the_sdk_is_unknown(item_type: str) -> None:
    (event,) = build_timeline([stored({"type": item_type})], starts_session=False, ends_session=False).events
    assert "Unknown" not in event.title


def test_all_types_were_seen() -> None:
    assert len(set(types_of_the_sdk())) >= 31


@for_each(
    ("text", "state"),
    [
        (default_tool_error_function(RunContextWrapper(None), ValueError("boom")), ToolState.FAILED),
        (default_tool_timeout_error_message(tool_name="create_refund", timeout_seconds=30), ToolState.FAILED),
        (DEFAULT_APPROVAL_REJECTION_MESSAGE, ToolState.NOT_APPROVED),
    ],
)
def test_failure_texts_are_those_of_the_sdk(text: str, state: ToolState) -> None:
    items = session([user("go")], [call("a"), output("a", text)])
    _, event = build_timeline(items, starts_session=True, ends_session=True).events
    assert isinstance(event, ToolCall)
    assert event.state is state


def test_handoffs_are_written_as_the_sdk_writes_them() -> None:
    agent = Agent(name="Billing agent")
    made = handoff(agent)
    transfer = made.get_transfer_message(agent)
    assert json.loads(transfer) == {"assistant": "Billing agent"}
    items = session([user("go")], [call("a", made.tool_name), output("a", transfer)])
    _, event = build_timeline(items, starts_session=True, ends_session=True).events
    assert isinstance(event, Handoff)
    assert event.to_agent == "Billing agent"
