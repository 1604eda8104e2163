"""Two more places where demo bots keep sessions: files of SQLite, one of them with branches.

The counter in the shop has a till with a file of its own; the gift planner tries one thing and then goes another way.
Both talk to customers whom support knows, too.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

from agents import Agent, RunConfig, Runner, SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession
from agents.result import RunResult
from agents.testing import ModelStep, ScriptedModel
from agents.usage import Usage
from django.conf import settings

from memadmin.demo import bots
from memadmin.demo.bots import Person
from memadmin.demo.script import Answer, calls, says
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore

COUNTER, PLANNER = "counter", "planner"

KINDS = {COUNTER: "sqlite", PLANNER: "advanced_sqlite"}


@dataclass(frozen=True, slots=True)
class Said:
    words: str
    answers: Sequence[Answer]
    tokens: Sequence[tuple[int, int]]
    """What goes in and comes out of each model call."""
    instead_of: tuple[int, str] | None = None
    """Goes another way from a turn on, in a branch of this name."""


@dataclass(frozen=True, slots=True)
class Talk:
    store: str
    customer: str
    bot: Agent[Person]
    began: timedelta
    said: Sequence[Said] = field(default_factory=list)

    @property
    def session_id(self) -> str:
        return f"{self.store}:{self.customer}"


counter: Agent[Person] = Agent(
    name="Counter",
    instructions="You stand at the counter of Harbour Tea & Coffee, and look up what a customer has ordered.",
    tools=[bots.find_orders, bots.warranty_until],
)
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
            Said(
                "I am in the shop right now. Can I take the Assam along instead of waiting for the courier?",
                [
                    [calls("find_orders", words="Assam")],
                    [says("Yes: SO-20533 is packed and still here. I will take the label off, and it is yours.")],
                ],
                [(412, 31), (498, 44)],
            ),
            Said(
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
            Said(
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
            Said(
                "I need a present for my sister, she drinks black tea only.",
                [[says("Then Assam, 500 g (19.50 €), and a strainer (9.00 €). What may it cost altogether?")]],
                [(204, 48)],
            ),
            Said(
                "About 60 €, with something to drink it from.",
                [[says("Two mugs “Fjord” (36.00 €) to go with it: 64.50 € altogether, wrapped.")]],
                [(310, 52)],
            ),
            Said(
                "Good, and a card that says: for many slow mornings.",
                [[says("Written on the card. The box is ready on Friday.")]],
                [(402, 29)],
            ),
            Said(
                "Let us start over from the price: at most 35 €.",
                [[says("Then Assam and the strainer, 28.50 €, in the small box. No mugs.")]],
                [(322, 41)],
                instead_of=(2, "35 euros at most"),
            ),
            Said(
                "That is the one. Same card.",
                [[says("The small box with your card is ready on Thursday.")]],
                [(398, 26)],
            ),
        ],
    ),
]


def path_of(store: str) -> Path:
    return Path(settings.DATA_DIR) / "agents" / f"{store}.db"


def connect() -> list[SessionStore]:
    """The stores, attached; their files are made as the SDK makes them, unless they are there."""
    path_of(COUNTER).parent.mkdir(mode=0o700, exist_ok=True)
    stores = []
    for name, kind in KINDS.items():
        _open(name, "nobody").close()
        stores.append(registry.declare_store(name, kind=kind, options={"path": str(path_of(name))}))
        registry.attach(stores[-1])
    return stores


def tell(talks: Iterable[Talk] = TALKS) -> int:
    """Has the talks that are not in their files yet, and returns how many. What was erased since stays so."""
    erased = set(SessionRecord.objects.exclude(erased_at=None).values_list("store__name", "session_id"))
    waiting = [talk for talk in talks if (talk.store, talk.session_id) not in erased and not _is_told(talk)]
    for talk in waiting:
        asyncio.run(_have(talk))
        _move_into_the_past(talk)
    return len(waiting)


async def _have(talk: Talk) -> None:
    session = _open(talk.store, talk.session_id)
    try:
        await session.clear_session()  # what a broken-off attempt has left
        for said in talk.said:
            if said.instead_of:
                await cast(AdvancedSQLiteSession, session).create_branch_from_turn(*said.instead_of)
            result = await _run(talk, said, session)
            if isinstance(session, AdvancedSQLiteSession):
                await session.store_run_usage(result)
    finally:
        session.close()


async def _run(talk: Talk, said: Said, session: SQLiteSession) -> RunResult:
    steps = [
        ModelStep(answer, usage=Usage(requests=1, input_tokens=given, output_tokens=made, total_tokens=given + made))
        for answer, (given, made) in zip(said.answers, said.tokens, strict=True)
    ]
    config = RunConfig(model=ScriptedModel(steps), tracing_disabled=True)
    return await Runner.run(talk.bot, said.words, context=Person(talk.customer), session=session, run_config=config)


def _open(store: str, session_id: str) -> SQLiteSession:
    if store == PLANNER:
        return AdvancedSQLiteSession(session_id=session_id, db_path=path_of(store), create_tables=True)
    return SQLiteSession(session_id, path_of(store))


# --- demo time: as in `agents`, what the demo wrote itself happened some time ago -----------------------------------


def _is_told(talk: Talk) -> bool:
    """A told one began on a full minute, which a live one hardly ever does."""
    query = "SELECT count(*) FROM agent_sessions WHERE session_id = ? AND created_at LIKE '%:00'"
    with closing(sqlite3.connect(path_of(talk.store))) as connection:
        return bool(connection.execute(query, [talk.session_id]).fetchone()[0])


def _move_into_the_past(talk: Talk) -> None:
    with closing(sqlite3.connect(path_of(talk.store))) as connection, connection:
        ids = [
            number
            for (number,) in connection.execute(
                "SELECT id FROM agent_messages WHERE session_id = ? ORDER BY id", [talk.session_id]
            )
        ]
        began = f"-{int(talk.began.total_seconds())} seconds"
        minute = "strftime('%Y-%m-%d %H:%M:00', 'now', ?, ?)"
        for place, number in enumerate(ids):
            connection.execute(
                f"UPDATE agent_messages SET created_at = {minute} WHERE id = ?",
                [began, f"+{place // 2} minutes", number],
            )
        connection.execute(
            f"UPDATE agent_sessions SET created_at = {minute}, updated_at = {minute} WHERE session_id = ?",
            [began, "+0 minutes", began, f"+{len(ids) // 2} minutes", talk.session_id],
        )
