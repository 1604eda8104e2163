"""Connections of agents to the console's database: under their own role, with a time limit, and never blocking them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from memadmin.client.candidates import READ_ON
from memadmin.client.subjects import NOBODY, Subject

logger = logging.getLogger(__name__)

T = TypeVar("T")

Connection = AsyncConnection[TupleRow]

SECONDS = 2.0
"""Time limit for a request to the console's database."""

REST_SECONDS = 15.0
"""After a failure agents do without the console for this time, instead of waiting for it in each run."""

IN_THE_WAY = "40"
"""The class of SQLSTATEs of a transaction that gave way to another one, as in a deadlock."""

ANSWERS = ("P0", "22", "23", "42", IN_THE_WAY)
"""Classes of SQLSTATEs with which a working database refuses a statement; all others mean that it does not work."""

UNREADABLE = "22021"
"""PostgreSQL's code for characters that it cannot store."""

MOST_OPEN = 8
"""Connections of one event loop. The agents' own sessions may be on the same server, which limits them."""

MOST_IDLE = 4

# One statement, because each is a round trip. The row policies use these settings until the transaction ends.
BEGIN_RUN = f"""
WITH whose AS MATERIALIZED (
    SELECT CASE WHEN %(key)s <> '' THEN memadmin_subject_for(%(kind)s, %(key)s) END AS subject
)
SELECT subject, set_config('memadmin.subject', coalesce(subject::text, ''), true),
       set_config('memadmin.agent', %(agent)s, true), {READ_ON}
FROM whose
"""

SUBJECT_ID = "nullif(current_setting('memadmin.subject', true), '')::uuid"
"""SQL for the id of the subject that BEGIN_RUN has set, in later statements of its transaction; null without one."""


class ConsoleUnavailable(Exception):
    """The console's database is not responding, or not in time."""


class _NotOpened(Exception):
    """No connection was made; the message says how it failed, without the address."""


class RefusedByDatabase(Exception):
    """The database works, and refused the statement."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(f"The database rejected the statement ({sqlstate}).")
        self.sqlstate = sqlstate


@dataclass(slots=True)
class _Place:
    """Connections of one event loop."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_OPEN))
    idle: list[Connection] = field(default_factory=list)


class Console:
    """Connections to the console's database, opened on demand and kept for the next request.

    `dsn` is an address for libpq, or a URL of SQLAlchemy's. Each event loop has its own connections, MOST_OPEN at most,
    so one object may serve a whole program; a request beyond them waits, and no longer than for an answer.
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
        """Result of `work`, whose statements are transactions of their own. Raises ConsoleUnavailable or
        RefusedByDatabase.

        Work that failed with an idle connection is tried once more with a fresh one, and so is work that gave way to
        another transaction: it should be safe to repeat.
        """
        if time.monotonic() < self._rests_until:
            raise ConsoleUnavailable
        asking = asyncio.ensure_future(self._in_turn(work))
        # Not `asyncio.timeout`: that one waits until a cancelled statement has come back from a server that is gone.
        try:
            await asyncio.wait({asking}, timeout=self.seconds)
        finally:
            if not asking.done():
                asking.cancel()
                asking.add_done_callback(_forget)
        if not asking.done():
            raise self._away("no response in time")
        try:
            answer = asking.result()
        except _NotOpened as problem:
            raise self._away(str(problem)) from None
        except UnicodeError:
            raise RefusedByDatabase(UNREADABLE) from None
        except psycopg.Error as problem:
            # Values that the driver itself does not send: the character zero, an object of an unknown type.
            is_unfit = isinstance(problem, psycopg.DataError | psycopg.ProgrammingError)
            sqlstate = problem.sqlstate or (UNREADABLE if is_unfit else "")
            if sqlstate.startswith(ANSWERS):
                self._is_back()
                raise RefusedByDatabase(sqlstate) from None
            raise self._away(f"{type(problem).__name__} {sqlstate}".strip()) from None
        except Exception as problem:
            # Whatever else is at the other end: a run does not end because of it.
            raise self._away(type(problem).__name__) from None
        self._is_back()
        return answer

    async def ask_in_run(self, subject: Subject | None, agent: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        """As `ask`, for a run: one transaction, within the row policies of this subject; SUBJECT_ID is its id.

        One round trip, and another one for each statement whose rows `work` reads.
        """

        async def in_run(connection: Connection) -> T:
            whose = subject or NOBODY
            try:
                async with connection.pipeline():
                    await connection.execute("BEGIN")
                    await connection.execute(BEGIN_RUN, {"kind": whose.kind, "key": whose.key, "agent": agent[:200]})
                    answer = await work(connection)
                    # As a statement, because psycopg cannot continue after a pipeline whose end is refused.
                    await connection.execute("COMMIT")
            except psycopg.Error:
                if not connection.broken:
                    await connection.rollback()
                raise
            return answer

        return await self.ask(in_run)

    async def aclose(self) -> None:
        """Closes the connections of this event loop."""
        place = self._here()
        while place.idle:
            await place.idle.pop().close()

    async def _in_turn(self, work: Callable[[Connection], Awaitable[T]]) -> T:
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
        """Connections of the running loop. Also closes those of loops that have ended without closing them."""
        loop = asyncio.get_running_loop()
        if place := self._places.get(loop):
            return place
        with self._changing_places:
            for ended in [other for other in self._places if other.is_closed()]:
                for connection in self._places.pop(ended).idle:
                    connection.pgconn.finish()
            return self._places.setdefault(loop, _Place())

    def _away(self, how: str) -> ConsoleUnavailable:
        """Logs a failure once, until the database responds again. Messages of drivers quote addresses and statements,
        so they are left out.
        """
        self._rests_until = time.monotonic() + self.rest_seconds
        if not self._is_away:
            logger.warning("memadmin's database is not responding (%s); agents continue without it.", how)
        self._is_away = True
        return ConsoleUnavailable(how)

    def _is_back(self) -> None:
        if self._is_away:
            logger.info("memadmin's database is responding again.")
        self._is_away, self._rests_until = False, 0.0


def _forget(asked: asyncio.Future[Any]) -> None:
    if not asked.cancelled():
        asked.exception()  # retrieved, so that asyncio does not report it
