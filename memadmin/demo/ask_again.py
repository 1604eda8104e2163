"""A further question to a demo bot, to show how injected memories change its answer."""

from __future__ import annotations

import re
import time
from contextlib import aclosing
from dataclasses import dataclass

from agents import Agent, Runner
from agents.testing import ModelCall, ModelStep, ScriptedModel

from memadmin.demo import bots, remembering
from memadmin.demo.agents import has_real_model
from memadmin.demo.bots import Person
from memadmin.demo.remembering import memories
from memadmin.demo.script import says
from sessions_app.stores.sqlalchemy.engine import open_agent_tables

BLOCK = re.compile(r"<memories[^>]*>\n(.*?)\n</memories>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    bot: Agent[Person]
    person: str
    session_id: str
    said: str
    otherwise: str
    """Answer of the scripted model without memories."""


QUESTIONS = {
    "support": DemoQuestion(
        bots.support,
        "cust_48213",
        "customer_cust_48213:ticket_T-{number}",
        "The lid of the second pot does not close either. How do I get my money back?",
        "I am sorry. Shall I pay it back to your card, or would you like a voucher?",
    ),
    "tutor": DemoQuestion(
        bots.tutor,
        "stud_3071",
        "tutor:stud_3071:{number}",
        "How do I ask for orange juice?",
        "Shall I answer in the Portuguese of Portugal, or of Brazil?",
    ),
}


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    session_id: str
    text: str


async def ask_again(name: str, *, said: str = "", role: str = "") -> DemoAnswer:
    """One run in a new session of the bot, under the database role `role`."""
    question = QUESTIONS[name]
    session_id = question.session_id.format(number=int(time.time() * 1000))
    model = None if has_real_model() else ScriptedModel([ModelStep.respond(lambda call: _answer(question, call))])
    with remembering.reached(role):
        async with aclosing(open_agent_tables(role=role)) as tables, aclosing(memories):
            session = memories.session(
                tables.session(session_id), ticket=session_id.partition(":ticket_")[2], agent=question.bot.name
            )
            result = await Runner.run(
                question.bot,
                said or question.said,
                context=Person(question.person),
                session=session,
                **remembering.run_options(model),
            )
    return DemoAnswer(session_id, str(result.final_output))


def _answer(question: DemoQuestion, call: ModelCall) -> ModelStep:
    block = BLOCK.search(call.system_instructions or "")
    if not block:
        return ModelStep([says(question.otherwise)])
    known = " ".join(line.removeprefix("- ") for line in block[1].splitlines())
    return ModelStep([says(f"I know about you: {known} I keep to that.")])
