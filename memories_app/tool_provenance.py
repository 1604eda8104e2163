"""Which tools may be behind what was said: known from the order of a session, as no item says it. Pure."""

from __future__ import annotations

from sessions_app.timeline.events import Event, Message, ToolCall, ToolState

LONGEST_TOOL = 200

MOST_TOOLS = 50
"""Of one piece of evidence; a run that called more names its first ones."""

NAMELESS = (ToolState.UNCALLED, ToolState.CALL_ELSEWHERE)
"""Outputs without their call, which alone has the name."""


class ToolsBehind:
    """Goes along the events of a session, in order; `of` answers for the one it came to last.

    A run begins with a user's words, which no tool is behind. Whatever an assistant says in it may come from any tool
    that was called before, and the output of a tool is that tool's.
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
