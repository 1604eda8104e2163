"""The console's database as agents reach it: under their own role, within a time limit, and never in their way."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from memadmin.client.subjects import Subject

logger = logging.getLogger(__name__)

T = TypeVar("T")

Connection = AsyncConnection[TupleRow]

SECONDS = 2.0
"""How long an agent waits for the console."""

REST_SECONDS = 15.0
"""After a failure agents do without the console for so long, instead of waiting for it anew in each run."""

ANSWERS = ("P0", "22", "23", "42")
"""Classes of SQLSTATEs with which a database that works refuses something; all others say that it does not work."""

UNREADABLE = "22021"
"""PostgreSQL's word for characters that it cannot store."""

MOST_IDLE = 4

# One statement, because each is a round trip. The row policies go by these settings, until the transaction ends.
BEGIN_RUN = """
WITH whose AS MATERIALIZED (
    SELECT CASE WHEN %(key)s <> '' THEN memadmin_subject_for(%(kind)s, %(key)s) END AS subject
)
SELECT subject, set_config('memadmin.subject', coalesce(subject::text, ''), true),
       set_config('memadmin.agent', %(agent)s, true)
FROM whose
"""


class Unavailable(Exception):
    """The console's database does not answer, or not in time."""


class RefusedByDatabase(Exception):
    """The database works, and said no."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(f"The database refused it ({sqlstate}).")
        self.sqlstate = sqlstate


class Console:
    """Connections to the console's database, opened when they are needed and kept for the next question.

    `dsn` is what libpq takes, or a URL of SQLAlchemy's. Each event loop has its own connections, so one object may
    serve a whole program.
    """

    def __init__(self, dsn: str, *, seconds: float = SECONDS, rest_seconds: float = REST_SECONDS) -> None:
        scheme, colon, rest = dsn.partition("://")
        self._dsn = scheme.partition("+")[0] + colon + rest if colon else dsn
        self.seconds, self.rest_seconds = seconds, rest_seconds
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Connection]] = WeakKeyDictionary()
        self._rests_until = 0.0
        self._is_away = False

    async def ask(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What `work` answers, within one transaction. Raises Unavailable or RefusedByDatabase.

        Work that failed with an idle connection is tried once more with a fresh one, so it should be safe to repeat.
        """
        if time.monotonic() < self._rests_until:
            raise Unavailable
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
        except UnicodeError:
            raise RefusedByDatabase(UNREADABLE) from None
        except psycopg.Error as problem:
            # The driver itself refuses the character zero.
            sqlstate = problem.sqlstate or (UNREADABLE if isinstance(problem, psycopg.DataError) else "")
            if sqlstate.startswith(ANSWERS):
                self._is_back()
                raise RefusedByDatabase(sqlstate) from None
            raise self._away(f"{type(problem).__name__} {sqlstate}".strip()) from None
        except OSError as problem:
            raise self._away(type(problem).__name__) from None
        self._is_back()
        return answer

    async def ask_in_run(
        self, subject: Subject | None, agent: str, work: Callable[[Connection, UUID | None], Awaitable[T]]
    ) -> T:
        """As `ask`, of a run: what the row policies show of this subject, which `work` gets by our id."""

        async def in_run(connection: Connection) -> T:
            whose = subject or Subject("")
            cursor = await connection.execute(BEGIN_RUN, {"kind": whose.kind, "key": whose.key, "agent": agent[:200]})
            row: Any = await cursor.fetchone()
            return await work(connection, row[0])

        return await self.ask(in_run)

    async def aclose(self) -> None:
        """Closes what this event loop has open."""
        for connection in self._idle.pop(asyncio.get_running_loop(), []):
            await connection.close()

    async def _in_transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        connection = self._take_idle()
        if connection:
            try:
                return await self._on(connection, work)
            except psycopg.OperationalError:
                if not connection.broken:
                    raise
                # The server was restarted, or ended idle connections.
        return await self._on(await self._open(), work)

    async def _open(self) -> Connection:
        return await AsyncConnection.connect(
            self._dsn,
            autocommit=True,
            prepare_threshold=None,  # poolers between here and the database may not know prepared statements
            connect_timeout=max(2, int(self.seconds)),
            application_name="memadmin-client",
        )

    async def _on(self, connection: Connection, work: Callable[[Connection], Awaitable[T]]) -> T:
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
            idle = self._idle.setdefault(asyncio.get_running_loop(), [])
            if is_fit and not connection.broken and len(idle) < MOST_IDLE:
                idle.append(connection)
            else:
                await connection.close()

    def _take_idle(self) -> Connection | None:
        idle = self._idle.get(asyncio.get_running_loop(), [])
        return idle.pop() if idle else None

    def _away(self, how: str) -> Unavailable:
        """Says so once, until it answers again. Messages of drivers quote addresses and statements, so none is told."""
        self._rests_until = time.monotonic() + self.rest_seconds
        if not self._is_away:
            logger.warning("memadmin's database is away (%s); agents go on without it.", how)
        self._is_away = True
        return Unavailable(how)

    def _is_back(self) -> None:
        if self._is_away:
            logger.info("memadmin's database answers again.")
        self._is_away, self._rests_until = False, 0.0


def _forget(asked: asyncio.Future[Any]) -> None:
    if not asked.cancelled():
        asked.exception()  # looked at, so that asyncio does not report it
