"""Execution of the demo stories: real runs of the SDK, stored by its own session classes in the main store.

Without OPENAI_API_KEY the model is the SDK's `ScriptedModel` and nothing leaves the machine. With it the user messages
are the same, and a real model answers.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, TypeAlias, cast

from agents import (
    Agent,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
    Runner,
)
from agents.extensions.memory import SQLAlchemySession
from agents.memory import OpenAIResponsesCompactionSession, Session
from agents.result import RunResult, RunResultStreaming
from agents.run_error_handlers import RunErrorHandlerInput, RunErrorHandlerResult, RunErrorHandlers
from agents.testing import ModelStep, ScriptedModel
from django.db import OperationalError
from openai import AsyncOpenAI, OpenAIError
from sqlalchemy import (
    TIMESTAMP,
    Column,
    ColumnElement,
    Interval,
    MetaData,
    Table,
    Text,
    column,
    func,
    select,
    update,
    values,
)
from sqlalchemy.exc import DBAPIError

from memadmin.client.sessions import SubjectErased
from memadmin.demo import bots, remembering, sealing
from memadmin.demo.bots import Person
from memadmin.demo.remembering import memories
from memadmin.demo.script import Exchange, ExchangeEnding, FakeCompaction, Keeping, Story
from memadmin.demo.stories import STORIES
from memadmin.demo.stories.support import COURIER_CUSTOMER, COURIER_SESSION, courier_exchanges
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import MAIN_STORE
from sessions_app.stores.sqlalchemy.engine import AgentTables, open_agent_tables

logger = logging.getLogger(__name__)

Bot: TypeAlias = Agent[Person]
Result: TypeAlias = RunResult | RunResultStreaming
Pause: TypeAlias = tuple[datetime, timedelta]
"""When the database reached a pause of a story, and how long it is."""

EXCHANGES_WITH_A_REAL_MODEL = 8
"""Limit for a real model, which takes seconds and money for each exchange."""

COMPACTED_FROM = 12
"""Number of answers and calls after which a session is compacted."""

LIVE_PAUSE = timedelta(seconds=20)

DATABASE_AWAY = (DBAPIError, OSError, OperationalError)
"""Exceptions of SQLAlchemy, asyncpg and Django when the database becomes unavailable."""


def has_real_model() -> bool:
    return bool(os.environ.get("OPENAI_API_KEY"))


def run_all(stories: Sequence[Story] = STORIES, *, role: str = "") -> list[str]:
    """Plays the stories that are not in the main store yet, and returns the ids of their sessions.

    Finished stories and erased sessions are skipped; an interrupted story is played again from its beginning. When a
    real model does not respond, the rest waits for the next call. `role` is the database role to write under.
    """
    main = SessionStore.objects.filter(name=MAIN_STORE).first()
    erased = SessionRecord.objects.erased(main, [story.session_id for story in stories]) if main else set()
    with remembering.reached(role):
        return asyncio.run(_play_all([story for story in stories if story.session_id not in erased], role))


async def chat_on(*, pause: timedelta = LIVE_PAUSE, session_id: str = COURIER_SESSION, role: str = "") -> int:
    """Writes one short run after each pause into one session, so that an open timeline shows live updates.

    Continues where it stopped, and ends after the whole story (50 runs over all calls). Returns the number of runs
    written. Stops when the session is erased.
    """
    runs = 0
    with remembering.reached(role):
        async with aclosing(open_agent_tables(role=role)) as tables, aclosing(memories):
            stored = await tables.session(session_id).get_items()
            written = sum(item.get("role") == "user" for item in stored)
            session = memories.session(tables.session(session_id, limit=16), agent=bots.support.name)
            for exchange in list(courier_exchanges())[written:]:
                await asyncio.sleep(pause.total_seconds())
                try:
                    await _play(exchange, bots.support, Person(COURIER_CUSTOMER), session)
                except SubjectErased:
                    break
                runs += 1
    return runs


async def _play_all(stories: list[Story], role: str) -> list[str]:
    played = []
    async with aclosing(open_agent_tables(role=role)) as tables, aclosing(memories):
        await tables.create_missing()
        finished = await _finished(tables, [story.session_id for story in stories])
        for story in stories:
            if story.session_id in finished:
                continue
            try:
                await _tell(story, tables)
            except OpenAIError as problem:
                logger.warning(
                    "The real model does not respond (%s); the next start continues.", type(problem).__name__
                )
                break
            played.append(story.session_id)
    return played


async def _tell(story: Story, tables: AgentTables) -> None:
    stored = tables.session(story.session_id, limit=story.items_read_back)
    await stored.clear_session()  # items of an interrupted attempt
    session = memories.session(
        _kept(story, stored), ticket=story.session_id.partition(":ticket_")[2], agent=story.bot.name
    )
    person, bot = Person(story.person), story.bot
    pauses: list[Pause] = []
    for exchange in story.exchanges[: EXCHANGES_WITH_A_REAL_MODEL if has_real_model() else None]:
        pauses.append((await _now(tables), exchange.after))
        for _ in range(exchange.takes_back):
            await session.pop_item()
        bot = await _play(exchange, bot, person, session)
    await _date(tables, story, pauses)


async def _play(exchange: Exchange, bot: Bot, person: Person, session: Session) -> Bot:
    """One exchange: all steps of the bot until its answer. Returns the bot for the next exchange."""
    model = None if has_real_model() else ScriptedModel([ModelStep(answer) for answer in exchange.answers])
    options: dict[str, Any] = {
        **remembering.run_options(model),
        "session": session,
        "error_handlers": RunErrorHandlers[Person](model_refusal=_show_the_refusal),
    }
    result: Result
    try:
        if exchange.is_streamed or exchange.ending is ExchangeEnding.CANCELLED:
            result = Runner.run_streamed(bot, exchange.said, context=person, **options)
            async for event in result.stream_events():
                if exchange.ending is ExchangeEnding.CANCELLED and event.type == "raw_response_event":
                    result.cancel()
        else:
            result = await Runner.run(bot, exchange.said, context=person, **options)
        if exchange.ending in (ExchangeEnding.APPROVED, ExchangeEnding.REJECTED) and result.interruptions:
            state = result.to_state()
            for question in result.interruptions:
                if exchange.ending is ExchangeEnding.APPROVED:
                    state.approve(question)
                else:
                    state.reject(question)
            result = await Runner.run(bot, state, **options)
    except (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered, MaxTurnsExceeded):
        return bot  # the shop shows nothing, and the person writes again
    return cast("Bot", result.last_agent)


def _show_the_refusal(refused: RunErrorHandlerInput[Person]) -> RunErrorHandlerResult:
    """Output instead of an exception, after which the session would not contain the refusal."""
    return RunErrorHandlerResult(final_output=str(refused.error), include_in_history=False)


def _kept(story: Story, stored: SQLAlchemySession) -> Session:
    match story.keeping:
        case Keeping.PLAIN:
            return stored
        case Keeping.ENCRYPTED:
            return sealing.sealed(stored)
        case Keeping.COMPACTED:
            return OpenAIResponsesCompactionSession(
                story.session_id,
                stored,
                client=None if has_real_model() else cast("AsyncOpenAI", FakeCompaction()),
                compaction_mode="input",
                should_trigger_compaction=lambda now: len(now["compaction_candidate_items"]) >= COMPACTED_FROM,
            )


# --- demo time -------------------------------------------------------------------------------------------------------
#
# A scripted story runs in milliseconds, and the database stamps its items with its own clock: all sessions would be
# from now. So the demo, and only the demo, changes the times of its own items at the end of each story: items from
# before a pause are older by its length, and the session began on the story's day. Both tables in one transaction, so
# that the trigger updates an attached registry.


async def _now(tables: AgentTables) -> datetime:
    """The time of the database, in the zone in which it stamps items."""
    async with tables.engine.connect() as connection:
        return (await connection.execute(select(func.localtimestamp()))).scalar_one()


async def _date(tables: AgentTables, story: Story, pauses: Sequence[Pause]) -> None:
    """Moves the session's start to a full minute, which marks it for `_finished`; live sessions have seconds."""
    sessions, messages = _columns(tables)
    now = await _now(tables)
    of_session = sessions.c.session_id == story.session_id
    async with tables.engine.begin() as connection:
        # The session's row first, as the SDK locks them.
        found = await connection.execute(select(sessions.c.created_at).where(of_session).with_for_update())
        created_at = cast(datetime, found.scalar_one())
        began_at = (now - story.began).replace(second=0, microsecond=0)
        later = sum((length for at, length in pauses if at > created_at), timedelta())
        older = _older_by([*pauses, (now, created_at - later - began_at)])
        await connection.execute(
            update(sessions)
            .where(of_session)
            .values(created_at=older(sessions.c.created_at), updated_at=older(sessions.c.updated_at))
        )
        await connection.execute(
            update(messages)
            .where(messages.c.session_id == story.session_id)
            .values(created_at=older(messages.c.created_at))
        )


def _older_by(pauses: Sequence[Pause]) -> Callable[[Column[datetime]], ColumnElement[datetime]]:
    """The time in a column, earlier by the lengths of all pauses after it."""
    table = values(column("at", TIMESTAMP), column("length", Interval), name="pauses").data(list(pauses))

    def older(time: Column[datetime]) -> ColumnElement[datetime]:
        lengths = select(func.coalesce(func.sum(table.c.length), timedelta())).where(table.c.at > time)
        return time - lengths.scalar_subquery()

    return older


async def _finished(tables: AgentTables, session_ids: list[str]) -> set[str]:
    sessions, _ = _columns(tables)
    async with tables.engine.connect() as connection:
        rows = await connection.execute(
            select(sessions.c.session_id).where(
                sessions.c.session_id.in_(session_ids),
                sessions.c.created_at == func.date_trunc("minute", sessions.c.created_at),
            )
        )
        return set(rows.scalars())


def _columns(tables: AgentTables) -> tuple[Table, Table]:
    """The columns of the two tables that the demo uses; own tables, because the engine omits the schema of others."""
    return (
        Table(
            tables.sessions_table,
            MetaData(),
            Column("session_id", Text),
            Column("created_at", TIMESTAMP),
            Column("updated_at", TIMESTAMP),
        ),
        Table(tables.messages_table, MetaData(), Column("session_id", Text), Column("created_at", TIMESTAMP)),
    )
