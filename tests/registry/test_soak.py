"""Many agents on the SDK's own sessions while all their sessions are erased: nothing may be left, nobody may deadlock.

The agents also clear their sessions, which leaves registry rows without session rows: the state in which a weaker
fence leaks. Operators write to the registry meanwhile.

One is run at each call, and all at all isolation levels before a release. What they found is in `test_fence` and
`test_tombstones` as an order of events.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from agents import TResponseInputItem
from agents.extensions.memory import SQLAlchemySession
from django.db import connection, transaction
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from sessions_app import registry
from sessions_app.models import FenceOutbox, SessionRecord, SessionStore
from sessions_app.services.erasing_subjects import fence_subject, forget_keys, forget_sessions
from sessions_app.services.subjects import known_subject
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionBusy
from sessions_app.stores.sqlalchemy.engine import asyncpg_arguments
from tests.agents import attach_main_store, run_sql, value_of

SESSIONS = 60
WRITERS = 16
ITEMS: list[TResponseInputItem] = [{"role": "user", "content": "hello"}] * 3

REFUSED = registry.ERASED
SERIALIZATION_FAILURE = "40001"
LOST_RACE = "23505"
"""The SDK's own race, without us too: another agent made the session's row first, and cleared it before we looked."""


async def write_until(
    done: threading.Event,
    begun: threading.Event,
    level: str,
    writers: int = WRITERS,
    chosen: Callable[[random.Random], int] = lambda chance: chance.randrange(SESSIONS),
) -> Counter[str]:
    """How the agents' writes ended, by SQLSTATE; `ok` for those that were stored."""
    engine = create_async_engine(
        "postgresql+asyncpg://", connect_args=asyncpg_arguments(), pool_size=writers, isolation_level=level
    )
    endings: Counter[str] = Counter()

    async def write(seed: int) -> None:
        chance = random.Random(seed)
        while not done.is_set():
            session = SQLAlchemySession(name(chosen(chance)), engine=engine)
            try:
                if chance.random() < 0.8:
                    await session.clear_session()
                await session.add_items(ITEMS)
                endings["ok"] += 1
                if endings["ok"] > writers:
                    begun.set()
            except DBAPIError as problem:
                endings[str(getattr(problem.orig, "sqlstate", problem.orig))] += 1

    await asyncio.gather(*(write(seed) for seed in range(writers)))
    await engine.dispose()
    return endings


def erase_all(store: SessionStore, done: threading.Event) -> list[str]:
    """Erases every session; returns why one had to be tried again."""
    reasons: list[str] = []
    try:
        for number in range(SESSIONS):
            reasons += erase(store, number)
    finally:
        done.set()
        connection.close()
    return reasons


def erase(store: SessionStore, number: int) -> list[str]:
    """Tries again as a job would; returns why it had to."""
    reasons: list[str] = []
    while True:
        try:
            backend_for(store).erase_session(name(number))
            return reasons
        except SessionBusy as busy:
            reasons.append(str(busy.__cause__))


def label_until(done: threading.Event, store: SessionStore) -> None:
    """What inspection and operators do to the registry at the same time."""
    chance = random.Random(7)
    try:
        while not done.wait(0.002):
            wanted = SessionRecord.objects.filter(store=store, session_id=name(chance.randrange(SESSIONS)))
            wanted.update(ticket=str(chance.randrange(1000)), labels=["seen"])
    finally:
        connection.close()


def name(number: int) -> str:
    return f"session-{number}"


LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


@pytest.mark.parametrize(
    "level", [LEVELS[0], *(pytest.param(level, marks=pytest.mark.release) for level in LEVELS[1:])]
)
def test_no_row_of_an_erased_session_is_left_and_no_agent_deadlocks(agent_tables: None, level: str) -> None:
    store = attach_main_store()
    # Half of the sessions have a registry row before anybody writes, as after a registration by the client.
    SessionRecord.objects.bulk_create([SessionRecord(store=store, session_id=name(n)) for n in range(0, SESSIONS, 2)])
    begun, done = threading.Event(), threading.Event()
    with ThreadPoolExecutor(3) as threads:
        writing = threads.submit(asyncio.run, write_until(done, begun, level))
        labelling = threads.submit(label_until, done, store)
        assert begun.wait(60), "the agents never came to write"
        reasons = threads.submit(erase_all, store, done).result()
        endings = writing.result()
        labelling.result()

    left = "SELECT count(*) FROM {} JOIN sessions_app_sessionrecord r USING (session_id) WHERE r.erased_at IS NOT NULL"
    assert SessionRecord.objects.filter(erased_at__isnull=False).count() == SESSIONS
    assert value_of(left.format("agent_messages")) == 0
    assert value_of(left.format("agent_sessions")) == 0
    assert endings["ok"], "nobody wrote, so nothing was tried"
    assert endings[REFUSED], "no write met the fence, so nothing was tried"
    expected = {"ok", REFUSED, LOST_RACE} | ({SERIALIZATION_FAILURE} if level != "READ COMMITTED" else set())
    assert endings.keys() <= expected, endings
    assert not [reason for reason in reasons if "deadlock" in reason]


MANY_WRITERS = 24
MANY_SESSIONS = 200


@contextmanager
def hesitation() -> Iterator[None]:
    """Agents on a slow line: a while passes between the look at the session, and so the snapshot, and the write."""
    run_sql(
        "CREATE FUNCTION hesitate() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN PERFORM pg_sleep(0.3 * random()); RETURN NEW; END';"
        "CREATE TRIGGER a_hesitate BEFORE INSERT ON agent_sessions FOR EACH ROW EXECUTE FUNCTION hesitate()"
    )
    try:
        yield
    finally:
        run_sql("DROP FUNCTION hesitate CASCADE")


def forget_all(store: SessionStore, done: threading.Event, current: list[int]) -> list[str]:
    """Erases a subject with one session after another, with its ids; returns why one had to be tried again."""
    reasons: list[str] = []
    try:
        for number in range(MANY_SESSIONS):
            current[0] = number
            with connection.cursor() as cursor:
                cursor.execute("SELECT memadmin_register_session('main', %s, 'user', %s)", [name(number), str(number)])
            subject = known_subject("user", str(number))
            with transaction.atomic():
                fence_subject(subject)
            reasons += erase(store, number)
            assert forget_sessions(subject, at_most=10) == forget_keys(subject) == 1
        # The agents go on after the last one.
        done.wait(1)
    finally:
        done.set()
        connection.close()
    return reasons


@pytest.mark.release
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", SessionStore.FenceMode.values)
def test_no_row_and_no_id_of_a_forgotten_session_comes_back(agent_tables: None, level: str, mode: str) -> None:
    """The agents write around the session that is being erased, some with a snapshot from before it was there."""
    store = attach_main_store(mode=mode)
    begun, done, current = threading.Event(), threading.Event(), [0]

    def chosen(chance: random.Random) -> int:
        return min(max(current[0] + chance.choice([-1, 0, 0, 1, 1]), 0), MANY_SESSIONS - 1)

    with hesitation(), ThreadPoolExecutor(2) as threads:
        writing = threads.submit(asyncio.run, write_until(done, begun, level, MANY_WRITERS, chosen))
        assert begun.wait(60), "the agents never came to write"
        reasons = threads.submit(forget_all, store, done, current).result()
        endings = writing.result()

    assert SessionRecord.objects.filter(is_forgotten=True).count() == MANY_SESSIONS
    assert list(SessionRecord.objects.filter(is_forgotten=False)) == []
    assert value_of("SELECT count(*) FROM agent_messages") == value_of("SELECT count(*) FROM agent_sessions") == 0
    assert endings["ok"], "nobody wrote, so nothing was tried"
    if mode == "drop":
        assert FenceOutbox.objects.exists(), "no write met the fence, so nothing was tried"
    else:
        assert endings[REFUSED], "no write met the fence, so nothing was tried"
    expected = {"ok", REFUSED, LOST_RACE} | ({SERIALIZATION_FAILURE} if level != "READ COMMITTED" else set())
    assert endings.keys() <= expected, endings
    assert not [reason for reason in reasons if "deadlock" in reason]
