"""Conversations in the further stores of the demo, with customers who also have support sessions.

The counter in the shop has its own file; the gift planner branches; sessions of the complaints desk are encrypted; the
hotline's bot is an old one that stores plain chats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

from agents import Agent, Runner
from agents.extensions.memory import AdvancedSQLiteSession
from agents.memory import Session
from agents.result import RunResult
from agents.testing import ModelStep, ScriptedModel
from agents.usage import Usage

from memadmin.demo import bots, remembering
from memadmin.demo.bots import Person
from memadmin.demo.places import BranchedFile, ChatFolder, DemoStore, File, SealedFile
from memadmin.demo.remembering import memories
from memadmin.demo.script import Answer, calls, remembers, says
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store

COUNTER = File("counter")
PLANNER = BranchedFile("planner")
COMPLAINTS = SealedFile("complaints")
HOTLINE = ChatFolder("hotline")

PLACES: list[DemoStore] = [COUNTER, PLANNER, COMPLAINTS, HOTLINE]


@dataclass(frozen=True, slots=True)
class DemoMessage:
    words: str
    answers: Sequence[Answer]
    tokens: Sequence[tuple[int, int]]
    """Input and output tokens of each model call."""
    instead_of: tuple[int, str] | None = None
    """Number of the turn at which a branch begins, and its name."""


@dataclass(frozen=True, slots=True)
class Talk:
    place: DemoStore
    customer: str
    bot: Agent[Person]
    began: timedelta
    said: Sequence[DemoMessage] = field(default_factory=list)

    @property
    def session_id(self) -> str:
        return f"{self.place.name}:{self.customer}"


counter: Agent[Person] = Agent(
    name="Counter",
    instructions="You stand at the counter of Harbour Tea & Coffee, and look up what a customer has ordered.",
    tools=[bots.find_orders, bots.warranty_until, *remembering.tools],
)
complaints: Agent[Person] = Agent(
    name="Complaints desk",
    instructions="You note what went wrong and promise nothing that the shop cannot keep. What people say stays here.",
)
hotline: Agent[Person] = Agent(name="Hotline", instructions="You answer the telephone after six in the evening.")
planner: Agent[Person] = Agent(
    name="Gift planner",
    instructions="You put gift boxes of tea and coffee together. Name the price of each thing, and the sum.",
)

TALKS: list[Talk] = [
    Talk(
        COUNTER,
        "cust_48213",
        counter,
        timedelta(days=2, hours=5),
        [
            DemoMessage(
                "I am in the shop right now. Can I take the Assam along instead of waiting for the courier?",
                [
                    [
                        calls("find_orders", words="Assam"),
                        remembers("Would rather take an order along from the shop than wait for the courier."),
                    ],
                    [says("Yes: SO-20533 is packed and still here. I will take the label off, and it is yours.")],
                ],
                [(412, 31), (498, 44)],
            ),
            DemoMessage(
                "Lovely. And does the moka pot still have its warranty?",
                [
                    [calls("warranty_until", order_number="SO-20417")],
                    [says("It does, on SO-20417. Bring the pot in and we look at the seal together.")],
                ],
                [(590, 28), (655, 39)],
            ),
        ],
    ),
    Talk(
        COUNTER,
        "cust_50977",
        counter,
        timedelta(days=6, hours=1),
        [
            DemoMessage(
                "The grinder from SO-20602 has not come yet. Do you have one I could look at here?",
                [[says("There is one on the shelf behind you, in walnut. Try it with the light roast.")]],
                [(388, 35)],
            ),
        ],
    ),
    Talk(
        PLANNER,
        "cust_48213",
        planner,
        timedelta(days=1, hours=3),
        [
            DemoMessage(
                "I need a present for my sister, she drinks black tea only.",
                [[says("Then Assam, 500 g (19.50 €), and a strainer (9.00 €). What may it cost altogether?")]],
                [(204, 48)],
            ),
            DemoMessage(
                "About 60 €, with something to drink it from.",
                [[says("Two mugs “Fjord” (36.00 €) to go with it: 64.50 € altogether, wrapped.")]],
                [(310, 52)],
            ),
            DemoMessage(
                "Good, and a card that says: for many slow mornings.",
                [[says("Written on the card. The box is ready on Friday.")]],
                [(402, 29)],
            ),
            DemoMessage(
                "Let us start over from the price: at most 35 €.",
                [[says("Then Assam and the strainer, 28.50 €, in the small box. No mugs.")]],
                [(322, 41)],
                instead_of=(2, "35 euros at most"),
            ),
            DemoMessage(
                "That is the one. Same card.",
                [[says("The small box with your card is ready on Thursday.")]],
                [(398, 26)],
            ),
        ],
    ),
    Talk(
        COMPLAINTS,
        "cust_48213",
        complaints,
        timedelta(days=4, hours=2),
        [
            DemoMessage(
                "Your driver left the parcel in the rain again, and I am in no state to carry it up: my hip is new.",
                [[says("I am sorry. Until the end of May, deliveries are brought to the door of the flat.")]],
                [(188, 34)],
            ),
            DemoMessage(
                "Please do not tell the driver why.",
                [[says("The driver reads “to the door of the flat”, and nothing else.")]],
                [(236, 22)],
            ),
        ],
    ),
    Talk(
        HOTLINE,
        "cust_48213",
        hotline,
        timedelta(days=9, hours=3),
        [
            DemoMessage(
                "Is the shop open on Whit Monday? I would come for the Assam.",
                [[says("It is closed on Whit Monday, and open again on Tuesday from nine.")]],
                [(150, 24)],
            ),
            DemoMessage(
                "Then please put a pack aside for me.",
                [[says("One pack of Assam, 500 g, is put aside until Wednesday evening.")]],
                [(182, 21)],
            ),
        ],
    ),
    Talk(
        HOTLINE,
        "cust_50977",
        hotline,
        timedelta(days=11, hours=8),
        [
            DemoMessage(
                "Zażółć gęślą jaźń: does the line understand me? I call about the grinder.",
                [[says("It does. The grinder is at the carrier; they bring it between ten and twelve.")]],
                [(161, 26)],
            ),
        ],
    ),
]


def connect() -> list[SessionStore]:
    """The attached stores; missing files are created as their bots do."""
    stores = [declare_store(each.name, kind=each.kind, options=dict(each.make())) for each in PLACES]
    for store in stores:
        attach_store(store)
    return stores


def tell(talks: Iterable[Talk] = TALKS) -> int:
    """Plays the talks that are not stored yet, and returns their number. Erased sessions are skipped."""
    talks = list(talks)
    erased = {
        (store.name, session_id)
        for store in SessionStore.objects.all()
        for session_id in SessionRecord.objects.erased(
            store, [talk.session_id for talk in talks if talk.place.name == store.name]
        )
    }
    waiting = [
        talk
        for talk in talks
        if (talk.place.name, talk.session_id) not in erased and not talk.place.is_told(talk.session_id)
    ]
    for talk in waiting:
        asyncio.run(_have(talk))
        talk.place.move_into_the_past(talk.session_id, talk.began)
    return len(waiting)


async def _have(talk: Talk) -> None:
    async with AsyncExitStack() as open_things:
        session = open_things.enter_context(talk.place.open(talk.session_id))
        await open_things.enter_async_context(aclosing(memories))
        await session.clear_session()  # items of an interrupted attempt
        governed = memories.session(session, store=talk.place.name, agent=talk.bot.name)
        for said in talk.said:
            if said.instead_of:
                await cast(AdvancedSQLiteSession, session).create_branch_from_turn(*said.instead_of)
            result = await _run(talk, said, governed)
            if isinstance(session, AdvancedSQLiteSession):
                await session.store_run_usage(result)


async def _run(talk: Talk, said: DemoMessage, session: Session) -> RunResult:
    steps = [
        ModelStep(answer, usage=Usage(requests=1, input_tokens=given, output_tokens=made, total_tokens=given + made))
        for answer, (given, made) in zip(said.answers, said.tokens, strict=True)
    ]
    options = remembering.run_options(ScriptedModel(steps))
    return await Runner.run(talk.bot, said.words, context=Person(talk.customer), session=session, **options)
