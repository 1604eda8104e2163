"""The console's database as agents reach it: under their own role, within a time limit, and never in their way."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from memadmin.client.candidates import READ_ON
from memadmin.client.subjects import NOBODY, Subject

logger = logging.getLogger(__name__)

T = TypeVar("T")

Connection = AsyncConnection[TupleRow]

SECONDS = 2.0
"""How long an agent waits for the console."""

REST_SECONDS = 15.0
"""After a failure agents do without the console for so long, instead of waiting for it anew in each run."""

IN_THE_WAY = "40"
"""The class of SQLSTATEs of a transaction that gave way to another one, as in a deadlock."""

ANSWERS = ("P0", "22", "23", "42", IN_THE_WAY)
"""Classes of SQLSTATEs with which a database that works refuses something; all others say that it does not work."""

UNREADABLE = "22021"
"""PostgreSQL's word for characters that it cannot store."""

MOST_OPEN = 8
"""Connections of one event loop. The agents' own sessions may be kept by the same server, and need theirs."""

MOST_IDLE = 4

# One statement, because each is a round trip. The row policies go by these settings, until the transaction ends.
BEGIN_RUN = f"""
WITH whose AS MATERIALIZED (
    SELECT CASE WHEN %(key)s <> '' THEN memadmin_subject_for(%(kind)s, %(key)s) END AS subject
)
SELECT subject, set_config('memadmin.subject', coalesce(subject::text, ''), true),
       set_config('memadmin.agent', %(agent)s, true), {READ_ON}
FROM whose
"""


class ConsoleUnavailable(Exception):
    """The console's database does not answer, or not in time."""


class _NotOpened(Exception):
    """No connection was made; the message says how it failed, and nothing of where to."""


class RefusedByDatabase(Exception):
    """The database works, and said no."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(f"The database refused it ({sqlstate}).")
        self.sqlstate = sqlstate


@dataclass(slots=True)
class _Place:
    """What one event loop has."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_OPEN))
    idle: list[Connection] = field(default_factory=list)


class Console:
    """Connections to the console's database, opened when they are needed and kept for the next question.

    `dsn` is what libpq takes, or a URL of SQLAlchemy's. Each event loop has its own connections, MOST_OPEN at most, so
    one object may serve a whole program; who asks for one more waits, and no longer than for an answer.
    """

    def __init__(self, dsn: str, *, seconds: float = SECONDS, rest_seconds: float = REST_SECONDS) -> None:
        scheme, colon, rest = dsn.partition("://")
        self._dsn = scheme.partition("+")[0] + colon + rest if colon else dsn
        self.seconds, self.rest_seconds = seconds, rest_seconds
        self._places: dict[asyncio.AbstractEventLoop, _Place] = {}
        self._changing_places = threading.Lock()
        self._rests_until = 0.0
        self._is_away = False

    async def ask(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What `work` answers, within one transaction. Raises ConsoleUnavailable or RefusedByDatabase.

        Work that failed with an idle connection is tried once more with a fresh one, and so is what gave way to another
        transaction: it should be safe to repeat.
        """
        if time.monotonic() < self._rests_until:
            raise ConsoleUnavailable
        asking = asyncio.ensure_future(self._in_transaction(work))
        # Not `asyncio.timeout`: that one waits until a cancelled statement has come back from a server that is gone.
        try:
            await asyncio.wait({asking}, timeout=self.seconds)
        finally:
            if not asking.done():
                asking.cancel()
                asking.add_done_callback(_forget)
        if not asking.done():
            raise self._away("no answer in time")
        try:
            answer = asking.result()
        except _NotOpened as problem:
            raise self._away(str(problem)) from None
        except UnicodeError:
            raise RefusedByDatabase(UNREADABLE) from None
        except psycopg.Error as problem:
            # What the driver itself does not send: the character zero, an object that is no value.
            is_unfit = isinstance(problem, psycopg.DataError | psycopg.ProgrammingError)
            sqlstate = problem.sqlstate or (UNREADABLE if is_unfit else "")
            if sqlstate.startswith(ANSWERS):
                self._is_back()
                raise RefusedByDatabase(sqlstate) from None
            raise self._away(f"{type(problem).__name__} {sqlstate}".strip()) from None
        except Exception as problem:
            # Whatever else is at the other end: a run does not end for it.
            raise self._away(type(problem).__name__) from None
        self._is_back()
        return answer

    async def ask_in_run(
        self, subject: Subject | None, agent: str, work: Callable[[Connection, UUID | None], Awaitable[T]]
    ) -> T:
        """As `ask`, of a run: what the row policies show of this subject, which `work` gets by our id."""

        async def in_run(connection: Connection) -> T:
            whose = subject or NOBODY
            cursor = await connection.execute(BEGIN_RUN, {"kind": whose.kind, "key": whose.key, "agent": agent[:200]})
            row: Any = await cursor.fetchone()
            return await work(connection, row[0])

        return await self.ask(in_run)

    async def aclose(self) -> None:
        """Closes what this event loop has open."""
        place = self._here()
        while place.idle:
            await place.idle.pop().close()

    async def _in_transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        place = self._here()
        async with place.turns:
            try:
                return await self._on_any(work, place)
            except psycopg.OperationalError as problem:
                if not (problem.sqlstate or "").startswith(IN_THE_WAY):
                    raise
                return await self._on_any(work, place)

    async def _on_any(self, work: Callable[[Connection], Awaitable[T]], place: _Place) -> T:
        if place.idle:
            connection = place.idle.pop()
            try:
                return await self._on(connection, work, place)
            except psycopg.OperationalError:
                if not connection.broken:
                    raise
                # The server was restarted, or ended idle connections.
        return await self._on(await self._open(), work, place)

    async def _open(self) -> Connection:
        try:
            return await AsyncConnection.connect(
                self._dsn,
                autocommit=True,
                prepare_threshold=None,  # poolers between here and the database may not know prepared statements
                connect_timeout=max(2, int(self.seconds)),
                application_name="memadmin-client",
            )
        except Exception as problem:
            sqlstate = getattr(problem, "sqlstate", None) or ""
            raise _NotOpened(f"{type(problem).__name__} {sqlstate}".strip()) from None

    async def _on(self, connection: Connection, work: Callable[[Connection], Awaitable[T]], place: _Place) -> T:
        is_fit = False
        try:
            async with connection.transaction():
                answer = await work(connection)
            is_fit = True
            return answer
        except psycopg.Error as problem:
            is_fit = (problem.sqlstate or "").startswith(ANSWERS)
            raise
        finally:
            if is_fit and not connection.broken and len(place.idle) < MOST_IDLE:
                place.idle.append(connection)
            else:
                await connection.close()

    def _here(self) -> _Place:
        """Of the running loop. What loops left open that have ended meanwhile, nobody else closes."""
        loop = asyncio.get_running_loop()
        if place := self._places.get(loop):
            return place
        with self._changing_places:
            for ended in [other for other in self._places if other.is_closed()]:
                for connection in self._places.pop(ended).idle:
                    connection.pgconn.finish()
            return self._places.setdefault(loop, _Place())

    def _away(self, how: str) -> ConsoleUnavailable:
        """Says so once, until it answers again. Messages of drivers quote addresses and statements, so none is told."""
        self._rests_until = time.monotonic() + self.rest_seconds
        if not self._is_away:
            logger.warning("memadmin's database is away (%s); agents go on without it.", how)
        self._is_away = True
        return ConsoleUnavailable(how)

    def _is_back(self) -> None:
        if self._is_away:
            logger.info("memadmin's database answers again.")
        self._is_away, self._rests_until = False, 0.0


def _forget(asked: asyncio.Future[Any]) -> None:
    if not asked.cancelled():
        asked.exception()  # looked at, so that asyncio does not report it
