"""The client in programs without an event loop, in threads, beside a running event loop, and after a fork."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from inspect import iscoroutinefunction, signature
from typing import Any

import psycopg
import pytest
from agents import Agent, SQLiteSession, function_tool
from agents.testing import function_call

from memadmin.client.connection import Console
from memadmin.client.listing import ApprovedMemory
from memadmin.client.memories import MemoryClient
from memadmin.client.proposal_results import Kept, ProposalRefused, RefusalReason
from memadmin.client.synchronous import SyncMemoryClient
from memories_app.models import Memory, Recall, Signal
from sessions_app.models import SubjectKind
from sessions_app.services.subjects import subject_for_key
from tests.client.agents import Customer, client_at, in_agent, talk
from tests.client.conftest import address
from tests.meanwhile import wait_until_blocked
from tests.memories.builders import approved
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)

TEA = "Drinks green tea, never coffee."

METHODS = ("warm", "recall", "get", "list", "propose", "signal", "forget")


@pytest.fixture
def tea(dsn: str) -> Memory:
    return approved(TEA, subject=subject_for_key(SubjectKind.USER, "ada"), is_embedded=True)


@pytest.fixture
def client(dsn: str) -> Iterator[SyncMemoryClient]:
    with SyncMemoryClient(Console(dsn, seconds=PATIENCE_SECONDS)) as made:
        yield made


def test_each_method_gives_its_result(client: SyncMemoryClient, tea: Memory) -> None:
    assert TEA in client.recall("What does she drink?", "ada").text
    found = client.get(tea.pk, "ada")
    assert isinstance(found, ApprovedMemory)
    assert [each.statement for each in client.list("ada").memories] == [found.statement] == [TEA]
    assert isinstance(client.propose("Has a dog.", subject="ada"), Kept)
    assert isinstance(client.signal("rating", value=5, subject="ada"), Kept)
    assert isinstance(client.forget("the tea", subject="ada"), Kept)
    assert client.get(tea.pk, "bob") == ProposalRefused(RefusalReason.NOT_FOUND)
    assert (Recall.objects.count(), Signal.objects.count()) == (3, 2)
    client.close()
    assert TEA in client.recall("What does she drink?", "ada").text


def test_the_methods_are_those_of_the_client() -> None:
    for name in METHODS:
        ours, theirs = getattr(SyncMemoryClient, name), getattr(MemoryClient, name)
        assert signature(ours) == signature(theirs)
        assert not iscoroutinefunction(ours)
    asynchronous = {name for name in vars(MemoryClient) if iscoroutinefunction(getattr(MemoryClient, name))}
    assert {name for name in asynchronous if not name.startswith("_")} == {*METHODS, "flush", "aclose"}


def test_threads_ask_side_by_side(client: SyncMemoryClient, tea: Memory) -> None:
    together = threading.Barrier(16)

    def recall(number: int) -> str:
        together.wait()
        return client.recall(f"What does she drink on day {number}?", "ada").text

    with ThreadPoolExecutor(16) as threads:
        assert all(TEA in text for text in threads.map(recall, range(16)))
    assert Recall.objects.count() == 16


def in_daemon_thread(work: Callable[[], Any]) -> Future[Any]:
    """Result of work in a thread that ends with the program, also if it waits forever."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except Exception as problem:
            result.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return result


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memadmin-client-loop"]


def test_closing_ends_the_calls_of_other_threads(client: SyncMemoryClient, tea: Memory) -> None:
    with psycopg.connect(address()) as other:
        other.execute("LOCK TABLE memories_app_memory IN ACCESS EXCLUSIVE MODE")
        asked = in_daemon_thread(lambda: client.list("ada"))
        wait_until_blocked(asked, by=other)
        client.close()
        with pytest.raises(RuntimeError, match="closed during this call"):
            asked.result(timeout=PATIENCE_SECONDS)
    assert not loop_threads()
    assert len(client.list("ada").memories) == 1


def test_a_call_that_meets_a_closed_loop_opens_another(
    client: SyncMemoryClient, tea: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, closings = client._running, iter([client.close])

    def closed_just_after() -> Any:
        found = running()
        for close in closings:
            close()
        return found

    monkeypatch.setattr(client, "_running", closed_just_after)
    assert TEA in client.recall("What does she drink?", "ada").text


def test_the_thread_ends_although_connections_cannot_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SyncMemoryClient("host=/nowhere")

    async def fail() -> None:
        raise OSError("the socket is gone")

    monkeypatch.setattr(client._running()[0].console, "aclose", fail)
    with pytest.raises(OSError, match="the socket is gone"):
        client.close()
    assert not loop_threads()


def test_within_a_running_event_loop_nothing_waits_for_itself(client: SyncMemoryClient, tea: Memory) -> None:
    async def program() -> str:
        return client.recall("What does she drink?", "ada").text

    with ThreadPoolExecutor(1) as thread:
        assert TEA in thread.submit(asyncio.run, program()).result()


def test_a_function_tool_asks_for_the_subject_of_its_run(client: SyncMemoryClient, dsn: str, tea: Memory) -> None:
    @function_tool
    def look_up() -> str:
        """Looks up."""
        return client.recall("What does she drink?").text or "Nothing."

    async def run() -> None:
        bot = Agent(name="Support", tools=[look_up])
        session = client_at(dsn).session(SQLiteSession("s1"))
        model = await talk(
            session, "Tea?", [function_call("look_up", {}, call_id="c1")], "Yes.", context=Customer("ada"), bot=bot
        )
        assert TEA in str(model.calls[1].input)

    in_agent(run)
    assert Recall.objects.get().session_id == "s1"


AFTER_A_FORK = """
import os, signal, sys
from memadmin.client.connection import Console
from memadmin.client.synchronous import SyncMemoryClient

client = SyncMemoryClient(Console(sys.argv[1], seconds=float(sys.argv[2])))
print(client.recall("What does she drink?", "ada").text, flush=True)
child = os.fork()
signal.alarm(int(float(sys.argv[2])))  # ends a process that waits for itself
print(client.recall("What does she drink?", "ada").text, flush=True)
if child:
    os.waitpid(child, 0)
    print(client.recall("What does she drink?", "ada").text, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_a_forked_process_has_connections_of_its_own(dsn: str, tea: Memory) -> None:
    command = [sys.executable, "-c", AFTER_A_FORK, dsn, str(PATIENCE_SECONDS)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count(TEA)) == (0, 4), done.stderr


def test_without_the_console_there_is_a_reason() -> None:
    with SyncMemoryClient("host=/nowhere") as client:
        assert client.recall("tea", "ada").refused == ProposalRefused(RefusalReason.AWAY)
