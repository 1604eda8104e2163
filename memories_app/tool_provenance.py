"""Tools that may have influenced a message, derived from the order of items in a session. Pure."""

from __future__ import annotations

from sessions_app.timeline.events import Event, Message, ToolCall, ToolState

LONGEST_TOOL = 200

MOST_TOOLS = 50
"""Maximum of tools of one piece of evidence: the first ones of a run."""

NAMELESS = (ToolState.UNCALLED, ToolState.CALL_ELSEWHERE)
"""Outputs without their call, which contains the tool's name."""


class ToolsBehind:
    """Processes the events of a session in order; `of` returns the tools of the latest one.

    A run begins with a user message, which has no tools. Messages of an assistant may come from any tool called before
    in the run, and the output of a tool from that tool.
    """

    def __init__(self) -> None:
        self._called: dict[str, None] = {}

    def of(self, event: Event) -> list[str]:
        if isinstance(event, ToolCall):
            if event.state in NAMELESS:
                return []
            self._called[event.title[:LONGEST_TOOL]] = None
            return [event.title[:LONGEST_TOOL]]
        if isinstance(event, Message) and event.is_by_user:
            self._called.clear()
        return list(self._called)[:MOST_TOOLS]
