"""Injection of memories into a run. They are added to the model's instructions, and never persisted.

They are not added to its input: where a provider stores the conversation, all input is stored there, and a memory
retired tomorrow would stay in it.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from agents import Agent, RunContextWrapper
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData

from memadmin.client import runs
from memadmin.client.items import last_said
from memadmin.client.memories import MemoryClient, Recalled

logger = logging.getLogger(__name__)

Instructions: TypeAlias = "str | Callable[[RunContextWrapper[Any], Agent[Any]], Any]"

KEPT_SECONDS = 30.0
"""Time for which a look-up serves the same query again, where no GovernedSession identifies the run."""

MOST_KEPT = 200


def memory_filter(
    client: MemoryClient, *, budget: int | None = None, top_k: int | None = None, threshold: float = 0.0
) -> CallModelInputFilter:
    """For `RunConfig.call_model_input_filter`: memories for all agents of a run.

    Looked up once in a run for each agent, by the user's last text; the options are those of `recall`.
    """
    cache = RecallCache(client, budget, top_k=top_k, threshold=threshold)

    async def with_memories(data: CallModelData[Any]) -> ModelInputData:
        asked = data.model_data
        text = await cache.text_for(data.context, data.agent.name, asked.input)
        return ModelInputData(input=asked.input, instructions=_joined(asked.instructions, text)) if text else asked

    return with_memories


def instructions(
    client: MemoryClient,
    base: Instructions = "",
    *,
    budget: int | None = None,
    top_k: int | None = None,
    threshold: float = 0.0,
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
    """For `Agent.instructions`: the agent's own, and its memories. For one agent; `memory_filter` is for all."""
    cache = RecallCache(client, budget, top_k=top_k, threshold=threshold)

    async def with_memories(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        own = base(context, agent) if callable(base) else base
        own = await own if inspect.isawaitable(own) else own
        return _joined(own, await cache.text_for(context.context, agent.name, context.turn_input))

    return with_memories


class RecallCache:
    """Earlier look-ups."""

    def __init__(
        self, client: MemoryClient, budget: int | None, *, top_k: int | None = None, threshold: float = 0.0
    ) -> None:
        self._client, self._budget, self._top_k, self._threshold = client, budget, top_k, threshold
        self._recent: OrderedDict[Any, tuple[float, Recalled]] = OrderedDict()

    async def text_for(self, context: Any, agent: str, items: Sequence[Any]) -> str:
        """A run continues without memories after any failure here."""
        try:
            return (await self._recalled(context, agent, items)).text
        except Exception as problem:
            logger.warning("A run continues without memories (%s).", type(problem).__name__)
            return ""

    async def _recalled(self, context: Any, agent: str, items: Sequence[Any]) -> Recalled:
        subject, run = self._client.subject_in_run(context), runs.current_in(context)
        said, count = last_said(items)
        if run and not count:
            # Where the provider stores the conversation, later turns do not contain the user's text.
            return run.remembered.get((self, agent)) or Recalled()
        question = (self, subject, agent, said, count)
        known = run.remembered.get(question) if run else self._recently(question)
        if known:
            return known
        recalled = await self._client.recall(
            said, subject, self._budget, agent=agent, top_k=self._top_k, threshold=self._threshold
        )
        if recalled.refused:
            return recalled  # asked again in the next turn
        if run:
            run.remembered[question] = run.remembered[self, agent] = recalled
        else:
            self._recent[question] = time.monotonic(), recalled
            while len(self._recent) > MOST_KEPT:
                self._recent.popitem(last=False)
        return recalled

    def _recently(self, question: Any) -> Recalled | None:
        at, recalled = self._recent.get(question, (0.0, None))
        return recalled if recalled and time.monotonic() - at < KEPT_SECONDS else None


def _joined(own: str | None, text: str) -> str:
    return f"{own}\n\n{text}" if own and text else own or text
