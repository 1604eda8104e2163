"""Signals that a run gives by itself: corrections and wishes of the user, and its outcome."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from agents import Agent, RunContextWrapper, RunHooks, TResponseInputItem
from agents.tool import Tool

from memadmin.client.items import last_said
from memadmin.client.learning import LONGEST_QUOTE, SignalKind
from memadmin.client.memories import MemoryClient

logger = logging.getLogger(__name__)

# Any character between a word and its "s": people type several.
CORRECTION = re.compile(
    r"^\W*(?:no|nope|nein|non|nee|não)\b\W+(?:i|it|that|this|not|the|my|we|ich|das|nicht|je|ce|yo|eu)\b"
    r"|\bi (?:actually )?meant?\b|\bnot what i (?:said|meant|asked|wanted)\b|\byou misunderstood\b"
    r"|\bthat(?:.s| is) (?:wrong|not right|not true|incorrect)\b|\bi (?:already )?(?:said|told you)\b"
    r"|^\W*correction\b|\bich meinte\b|\bdas stimmt nicht\b|\bje voulais dire\b|\bquise decir\b|\beu quis dizer\b",
    re.IGNORECASE,
)

PREFERENCE = re.compile(
    r"\bi(?:.d| would)? (?:always |really |much )?(?:prefer|rather)\b|\bfrom now on\b|\bin future\b|\bnext time\b"
    r"|\bplease (?:always|never)\b|\b(?:call|address) me\b|\bi (?:do not|don.t) (?:like|want|drink|eat)\b"
    r"|\bich (?:bevorzuge|möchte lieber|hätte lieber)\b|\bje préfère\b|\bprefiero\b|\bprefiro\b",
    re.IGNORECASE,
)

TOOL_FAILED = ("An error occurred while running the tool", "Tool execution was not approved")

MOST_RUNS = 1000


@dataclass(slots=True)
class _Seen:
    has_failed: bool = False


class MemoryHooks(RunHooks[Any]):
    """For `Runner.run(hooks=...)`. One object serves all runs; its failures are logged and never stop a run.

    Signals are sent in the background (`MemoryClient.signal_later`): no run waits for them, and a run that fails has
    sent them, too. Where a process stands still after a run, or ends without Python's exit handlers as those of
    multiprocessing do, call `MemoryClient.flush`.

    `outcomes` are one signal for each run that ended: 1, or -1 if one of its tools failed.
    """

    def __init__(self, client: MemoryClient, *, outcomes: bool = True) -> None:
        self._client, self._outcomes = client, outcomes
        # Keyed by the usage that all contexts of one run share. Failed runs have no end, so the oldest are dropped.
        self._seen: OrderedDict[int, tuple[Any, _Seen]] = OrderedDict()

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        if id(context.usage) in self._seen:
            return
        self._of_run(context)
        said = last_said(input_items)[0][:LONGEST_QUOTE]
        if CORRECTION.search(said):
            self._send("correction", context, agent, said, value=-1)
        elif PREFERENCE.search(said):
            self._send("preference", context, agent, said)

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        if str(result)[:60].startswith(TOOL_FAILED):
            self._of_run(context).has_failed = True

    async def on_agent_end(self, context: RunContextWrapper[Any], agent: Agent[Any], output: Any) -> None:
        seen = self._of_run(context)
        self._seen.pop(id(context.usage), None)
        if self._outcomes:
            self._send("outcome", context, agent, value=-1 if seen.has_failed else 1)

    def _of_run(self, context: RunContextWrapper[Any]) -> _Seen:
        _, seen = self._seen.setdefault(id(context.usage), (context.usage, _Seen()))
        while len(self._seen) > MOST_RUNS:
            self._seen.popitem(last=False)
        return seen

    def _send(
        self, kind: SignalKind, context: RunContextWrapper[Any], agent: Agent[Any], text: str = "", **options: Any
    ) -> None:
        try:
            subject = self._client.subject_in_run(context.context)
            self._client.signal_later(kind, text, subject=subject, agent=agent.name, **options)
        except Exception as problem:
            logger.warning("A signal was not sent (%s).", type(problem).__name__)
