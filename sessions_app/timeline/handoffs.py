"""Handoffs as the SDK stores them: a call of `transfer_to_…` and the output `{"assistant": "<name>"}`."""

from __future__ import annotations

from sessions_app.timeline.decode import DecodedItem, NotJson, parse_json
from sessions_app.timeline.values import as_fields, one_line, text_in

HANDOFF_PREFIX = "transfer_to_"
IGNORED_HANDOFF = "Multiple handoffs detected, ignoring this one."
OUTPUT_CHARACTERS = 1_000


def is_handoff_call(entry: DecodedItem) -> bool:
    """Whether a call looks like a handoff; an ordinary tool may have such a name, so only the output decides."""
    return entry.type == "function_call" and text_in(entry.fields, "name").startswith(HANDOFF_PREFIX)


def agent_handed_to(output: DecodedItem) -> str:
    """Name of the agent that takes over, by the output of a handoff; empty for any other output."""
    text = text_in(output.fields, "output")
    if not text.startswith("{") or len(text) > OUTPUT_CHARACTERS:
        return ""
    try:
        answer = as_fields(parse_json(text))
    except NotJson:
        return ""
    return one_line(text_in(answer, "assistant")) if answer.keys() == {"assistant"} else ""


def is_ignored_handoff(output: DecodedItem) -> bool:
    """Whether the SDK rejected the handoff, because the model requested several at once."""
    return text_in(output.fields, "output") == IGNORED_HANDOFF


def named_agent(call: DecodedItem) -> str:
    """The agent's name as spelled in the tool's name: the SDK has replaced spaces and may have lower-cased it."""
    return one_line(text_in(call.fields, "name").removeprefix(HANDOFF_PREFIX))
