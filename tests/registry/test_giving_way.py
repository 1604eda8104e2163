"""An erasure and an agent that come to wait for each other: the erasure gives way, and no agent's write is broken off.

In each story PostgreSQL looks for deadlocks on behalf of the agent only, so it is the agent whose write it would end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from django.db import connection

from sessions_app.models import SessionRecord
from sessions_app.stores import backend_for
from tests.agents import add_items, attach_main_store, in_sdk, run_sql, second_connection, value_of
from tests.meanwhile import comes_to_wait, wait_until_blocked
from tests.waiting import PATIENCE_SECONDS

HOLD_SESSION = "SELECT FROM agent_sessions WHERE session_id = 'race' FOR UPDATE"
MAKE_SURE_OF_SESSION = (
    "INSERT INTO agent_sessions (session_id) VALUES ('race')"
    " ON CONFLICT (session_id) DO UPDATE SET updated_at = CURRENT_TIMESTAMP"
)
TOUCH_SESSION = "UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = 'race'"
ADD_ITEM = "INSERT INTO agent_messages (session_id, message_data) VALUES ('race', '{}')"
PASS_THE_FENCE = "SELECT FROM sessions_app_sessionrecord WHERE session_id = 'race' FOR KEY SHARE"
HOLD_FOR_A_LABEL = "SELECT FROM sessions_app_sessionrecord WHERE session_id = 'race' FOR NO KEY UPDATE"


class Scene:
    """One session, an eraser, and others on connections of their own."""

    def __init__(self, stack: ExitStack) -> None:
        self.store = attach_main_store()
        self._stack = stack
        self._threads = stack.enter_context(ThreadPoolExecutor(2))

    def somebody(self) -> psycopg.Connection:
        return self._stack.enter_context(second_connection())

    def begin_erasure(self) -> Future[int]:
        return self._threads.submit(self._erase)

    def _erase(self) -> int:
        try:
            run_sql("SET deadlock_timeout = '1h'")
            return backend_for(self.store).erase_session("race")
        finally:
            connection.close()

    def go_on(self, writer: psycopg.Connection, *statements: str) -> Future[None]:
        """The rest of a transaction, which comes to wait for the eraser."""

        def write() -> None:
            for statement in statements:
                writer.execute(statement)
            writer.commit()

        return self._threads.submit(write)


@pytest.fixture
def scene(agent_tables: None) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack)


Ending = tuple[Future[int], Future[None]]


def born_while_the_eraser_waited(scene: Scene) -> Ending:
    """The eraser found no session, and waits for its registry row; a writer finds the session just born.

    Then the eraser has the registry row and wants the session; the writer has that, and wants to follow its activity.
    """
    in_sdk(lambda tables: tables.session("race").clear_session())
    first, writer = scene.somebody(), scene.somebody()
    first.execute(PASS_THE_FENCE)
    erasure = scene.begin_erasure()
    wait_until_blocked(erasure, by=first)
    add_items("race", "hello")
    writer.execute(HOLD_SESSION)
    first.rollback()
    wait_until_blocked(erasure, by=writer)
    return erasure, scene.go_on(writer, ADD_ITEM, TOUCH_SESSION)


def met_by_a_writer_that_inserts_first(scene: Scene) -> Ending:
    """A writer that is not the SDK makes sure of the session by an insert, which passes the fence even if it is there.

    Then it wants the session, which the eraser has; the eraser wants whoever passed the fence to be done.
    """
    labelling, writer = scene.somebody(), scene.somebody()
    # PostgreSQL looks once, so long after the wait began: by then the eraser has to wait for the writer.
    writer.execute("SET deadlock_timeout = '5s'")
    labelling.execute(HOLD_FOR_A_LABEL)
    erasure = scene.begin_erasure()
    wait_until_blocked(erasure, by=labelling)
    write = scene.go_on(writer, MAKE_SURE_OF_SESSION, ADD_ITEM)
    comes_to_wait(write, on=writer)
    labelling.rollback()
    return erasure, write


STORIES = [born_while_the_eraser_waited, met_by_a_writer_that_inserts_first]
Story = Callable[[Scene], Ending]


@pytest.mark.parametrize("story", STORIES)
def test_the_erasure_gives_way_and_takes_the_write_along(scene: Scene, story: Story) -> None:
    add_items("race", "once upon a time")
    erasure, write = story(scene)
    write.result(PATIENCE_SECONDS)
    assert erasure.result(PATIENCE_SECONDS) > 0
    assert SessionRecord.objects.get(session_id="race").erased_at is not None
    assert value_of("SELECT count(*) FROM agent_messages") == 0
    assert value_of("SELECT count(*) FROM agent_sessions WHERE session_id = 'race'") == 0


# In the second story PostgreSQL looks for the deadlock after five seconds.
@pytest.mark.parametrize("story", [STORIES[0], pytest.param(STORIES[1], marks=pytest.mark.release)])
def test_an_erasure_that_insists_breaks_off_the_write(
    scene: Scene, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it does itself, when it happens to look first."""
    monkeypatch.setattr("sessions_app.stores.sqlalchemy.backend.ERASE_TURN", "1h")
    add_items("race", "once upon a time")
    erasure, write = story(scene)
    with pytest.raises(psycopg.errors.DeadlockDetected):
        write.result(PATIENCE_SECONDS)
    assert erasure.result(PATIENCE_SECONDS) > 0
