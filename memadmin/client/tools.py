"""Function tools with which an agent remembers, recalls and forgets."""

from __future__ import annotations

from typing import Any, Literal

from agents import RunContextWrapper, function_tool
from agents.tool import Tool

from memadmin.client.items import last_said
from memadmin.client.learning import LONGEST_QUOTE, Evidence
from memadmin.client.memories import MemoryClient
from memadmin.client.proposal_results import Answer

EXTRACTOR = "agent/remember"

NOTED = "Saved as a proposal. You can use it only after a reviewer approves it."


def memory_tools(client: MemoryClient) -> list[Tool]:
    """`remember`, `recall` and `forget`, for the `tools` of an agent. They answer with a sentence, whatever happens."""

    @function_tool
    async def remember(
        context: RunContextWrapper[Any],
        statement: str,
        kind: Literal["preference", "fact", "procedure", "note"],
        topic: str,
        was_said: bool,
    ) -> str:
        """Proposes to remember something about the person in later conversations. A person decides about it.

        Args:
            statement: One sentence that can be understood without this conversation.
            kind: What sort of statement it is.
            topic: Of what it speaks, in one or two words such as "refund method"; empty if there is no such word.
            was_said: True if the person said it, false if you concluded it.
        """
        said = last_said(context.turn_input)[0]
        answer = await client.propose(
            statement,
            kind=kind,
            subject=client.subject_in_run(context.context),
            key="_".join(topic.lower().split())[:80],
            provenance="explicit" if was_said else "inferred",
            confidence=0.9 if was_said else 0.6,
            evidence=[Evidence(said)] if said.strip() and len(said) <= LONGEST_QUOTE else [],
            extractor=EXTRACTOR,
        )
        return _answer_text(answer)

    @function_tool
    async def recall(context: RunContextWrapper[Any], question: str) -> str:
        """Looks up what is known about the person, or about how things are done here.

        Args:
            question: What you want to know, in a few words.
        """
        agent = getattr(getattr(context, "agent", None), "name", "")
        recalled = await client.recall(question, client.subject_in_run(context.context), agent=agent)
        return str(recalled.refused) if recalled.refused else recalled.text or "No memory found."

    @function_tool
    async def forget(context: RunContextWrapper[Any], what: str) -> str:
        """Passes on that the person wants something forgotten.

        Args:
            what: What is to be forgotten, in their words.
        """
        answer = await client.forget(what, subject=client.subject_in_run(context.context))
        return "Sent to a reviewer, who decides." if answer else f"Not sent. {answer}"

    return [remember, recall, forget]


def _answer_text(answer: Answer) -> str:
    return NOTED if answer else f"Not saved. {answer}"
