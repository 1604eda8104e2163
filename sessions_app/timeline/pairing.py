"""Pairing of calls and outputs."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from sessions_app.timeline.decode import DecodedItem
from sessions_app.timeline.values import text_in

CALLS = {
    "function_call": ("function", "call_id"),
    "custom_tool_call": ("custom", "call_id"),
    "computer_call": ("computer", "call_id"),
    "local_shell_call": ("local_shell", "call_id"),
    "shell_call": ("shell", "call_id"),
    "apply_patch_call": ("apply_patch", "call_id"),
    "tool_search_call": ("tool_search", "call_id"),
    "mcp_approval_request": ("mcp_approval", "id"),
    "program": ("program", "call_id"),
    "multi_agent_call": ("multi_agent", "call_id"),
}
"""Family within which a call is paired, and the member with its key, by type of call."""

OUTPUTS = {
    "function_call_output": ("function", "call_id"),
    "custom_tool_call_output": ("custom", "call_id"),
    "computer_call_output": ("computer", "call_id"),
    # The SDK puts the call's call_id into the output's id here.
    "local_shell_call_output": ("local_shell", "id"),
    "shell_call_output": ("shell", "call_id"),
    "apply_patch_call_output": ("apply_patch", "call_id"),
    "tool_search_output": ("tool_search", "call_id"),
    "mcp_approval_response": ("mcp_approval", "approval_request_id"),
    "program_output": ("program", "call_id"),
    "multi_agent_call_output": ("multi_agent", "call_id"),
}

Key = tuple[str, str]
Call = TypeVar("Call")


def call_key(entry: DecodedItem) -> Key | None:
    """Key that an output must have to answer this call; None for other items, and for a call without a usable key."""
    return _key(entry, CALLS)


def output_key(entry: DecodedItem) -> Key | None:
    return _key(entry, OUTPUTS)


def call_family(entry: DecodedItem) -> str:
    return CALLS.get(entry.type, ("", ""))[0]


def _key(entry: DecodedItem, table: dict[str, tuple[str, str]]) -> Key | None:
    family, member = table.get(entry.type, ("", ""))
    value = text_in(entry.fields, member)
    return (family, value) if value else None


class OpenCalls(Generic[Call]):
    """Calls without an output so far. Memory grows with their number.

    Keys are not unique: models reuse them in later runs and, rarely, within one turn. An output answers the first open
    call of the latest batch that has its key, so a call that was never answered cannot shift all later ones.
    """

    def __init__(self) -> None:
        self._open: dict[Key, list[tuple[datetime | None, Call]]] = {}
        self._keyless_search: Call | None = None

    def see(self, entry: DecodedItem, call: Call) -> Call | None:
        """The `call` that was passed with the call which this entry answers; None if it is no output of an open call.

        Has to be called for every entry, in order.
        """
        search, self._keyless_search = self._keyless_search, None
        if key := output_key(entry):
            return self._answer(key)
        if key := call_key(entry):
            self._open.setdefault(key, []).append((entry.stored.written_at, call))
        elif entry.type == "tool_search_call":
            self._keyless_search = call
        elif entry.type == "tool_search_output":
            return search  # run by the provider, without a call_id: the output is the next item
        return None

    def remaining(self) -> list[Call]:
        return [call for waiting in self._open.values() for _, call in waiting]

    def _answer(self, key: Key) -> Call | None:
        waiting = self._open.get(key)
        if not waiting:
            return None
        latest = waiting[-1][0]
        first = next(index for index, (written_at, _) in enumerate(waiting) if written_at == latest)
        _, call = waiting.pop(first)
        if not waiting:
            del self._open[key]
        return call
