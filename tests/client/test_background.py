"""Signals that no run waits for: they are sent nevertheless when a program ends, forks, or drops its client."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession
from psycopg.conninfo import make_conninfo

from memadmin.client.hooks import MemoryHooks
from memadmin.client.memories import MemoryClient
from memories_app.models import Signal
from tests.client.agents import client_at, in_agent, scripted
from tests.client.conftest import address
from tests.client.round_trips import Relay
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memadmin-client-loop"]


IMPORTS = """
import json, os, sys
from agents import Agent, RunConfig, Runner, SQLiteSession
from agents.testing import ScriptedModel, assistant_message
from memadmin.client.connection import Console
from memadmin.client.hooks import MemoryHooks
from memadmin.client.memories import MemoryClient
"""

PROGRAM = f"""
{IMPORTS}
client = MemoryClient(Console(sys.argv[1], seconds=float(sys.argv[2])), embedder="none")
hooks = MemoryHooks(client)

def run(session_id):
    config = RunConfig(model=ScriptedModel([[assistant_message("Good.")]]), tracing_disabled=True)
    session = client.session(SQLiteSession(session_id), subject="ada")
    Runner.run_sync(Agent(name="Support"), "Tea, please.", session=session, hooks=hooks, run_config=config)

run("s1")
"""

FORKING = """
child = os.fork()
client.signal_later("outcome", value=1, subject="ada", agent="parent" if child else "child")
if child:
    os.waitpid(child, 0)
"""


STARTS_PROGRAMS = f"""
{IMPORTS}
for asked in sys.stdin:
    program, said, *sys.argv = json.loads(asked)
    if not os.fork():
        for number in (1, 2):
            os.dup2(os.open(f"{{said}}.{{number}}", os.O_WRONLY | os.O_CREAT), number)
        exec(program, {{"__name__": "__main__"}})
        sys.exit()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
"""Runs programs, each in a new process in which the SDK is loaded already: loading takes seconds."""


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


RunProgram = Callable[..., Ended]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunProgram]:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_PROGRAMS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:

        def run(program: str, dsn: str, *, seconds: float = PATIENCE_SECONDS) -> Ended:
            assert starter.stdin
            assert starter.stdout
            said = tmp_path_factory.mktemp("program") / "said"
            starter.stdin.write(json.dumps([program, str(said), "-c", dsn, str(seconds)]) + "\n")
            starter.stdin.flush()
            code = int(starter.stdout.readline())
            return Ended(code, *(Path(f"{said}.{number}").read_text() for number in (1, 2)))

        yield run


def outcomes() -> set[str]:
    return set(Signal.objects.filter(kind="outcome").values_list("session_id", flat=True))


MANY = """
for _ in range(100):
    client.signal_later("rating", value=5, subject="ada")
"""


@pytest.mark.slow
def test_a_program_sends_all_signals_before_it_ends(dsn: str) -> None:
    """Of its own, which loads all that it needs."""
    command = [sys.executable, "-c", PROGRAM + MANY, dsn, str(PATIENCE_SECONDS)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, outcomes()) == (0, {"s1"}), done.stderr
    assert Signal.objects.filter(kind="rating").count() == 100


AT_THE_END = """
import atexit
client._background._running(client.console)
atexit.register(client.signal_later, "rating", value=5, subject="ada")
"""


@pytest.mark.slow
def test_the_host_is_found_although_the_program_ends(dsn: str, ended: RunProgram) -> None:
    """When handlers of the end are called, no thread can be started any more that would look up the host's name."""
    relay = Relay(dsn)
    try:
        done = ended(PROGRAM.replace('run("s1")', "") + AT_THE_END, make_conninfo(relay.dsn, host="localhost"))
    finally:
        relay.close()
    assert (done.returncode, done.stderr) == (0, "")
    assert Signal.objects.get().kind == "rating"


TOO_LATE = """
import atexit
atexit.register(lambda: client.signal_later("rating", value=5, subject="ada"))
"""


@pytest.mark.slow
def test_a_signal_after_the_last_moment_keeps_no_program_running(dsn: str, ended: RunProgram) -> None:
    done = ended(TOO_LATE + PROGRAM, dsn)
    assert (done.returncode, outcomes()) == (0, {"s1"}), done.stderr


@pytest.mark.slow
def test_a_forked_process_sends_its_own(dsn: str, ended: RunProgram) -> None:
    done = ended(PROGRAM + FORKING, dsn)
    agents = set(Signal.objects.values_list("agent", flat=True))
    assert (done.returncode, agents) == (0, {"Support", "parent", "child"}), done.stderr


@pytest.mark.slow
def test_a_program_ends_although_its_signals_cannot_be_sent(dsn: str, ended: RunProgram) -> None:
    with psycopg.connect(address()) as other:
        other.execute("LOCK TABLE memories_app_signal")
        done = ended(PROGRAM, dsn, seconds=1.0)
    assert (done.returncode, outcomes()) == (0, set()), done.stderr
    assert done.stdout == ""
    assert "ada" not in done.stderr


async def one_run(client: MemoryClient, session_id: str) -> None:
    config = RunConfig(model=scripted("Good."), tracing_disabled=True)
    session, hooks = client.session(SQLiteSession(session_id), subject="ada"), MemoryHooks(client)
    await Runner.run(Agent[Any](name="Support"), "Tea, please.", session=session, hooks=hooks, run_config=config)


def test_closing_sends_what_waits_and_a_later_run_sends_again(dsn: str) -> None:
    async def program() -> None:
        client = client_at(dsn, embedder="none")
        await one_run(client, "s1")
        await client.aclose()
        assert not loop_threads()
        await one_run(client, "s2")

    in_agent(program)
    assert outcomes() == {"s1", "s2"}
    assert not loop_threads()


def test_too_many_that_wait_are_dropped_with_one_warning(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memadmin.client.background.MOST_WAITING", 2)

    async def program() -> None:
        client = client_at(dsn, embedder="none")
        with psycopg.connect(address()) as other:
            other.execute("LOCK TABLE memories_app_signal")
            for number in range(5):
                await one_run(client, f"s{number}")
        await client.flush()
        await one_run(client, "after")

    in_agent(program)
    assert outcomes() == {"s0", "s1", "after"}
    assert [record.getMessage() for record in caplog.records if record.name.startswith("memadmin.")] == [
        "More than 2 signals wait for the console; further ones are dropped."
    ]


def test_a_client_that_is_no_longer_used_ends_its_thread(dsn: str) -> None:
    def use() -> None:
        client = MemoryClient(dsn, embedder="none")
        client.signal_later("outcome", value=1, subject="ada")

    use()
    gc.collect()
    for thread in loop_threads():
        thread.join(PATIENCE_SECONDS)
    assert not loop_threads()
    assert Signal.objects.filter(kind="outcome").count() == 1


def test_the_last_reference_may_be_that_of_a_signal(dsn: str) -> None:
    """The thread then ends itself: nothing waits for it, least of all the thread, and its connections are closed."""
    client = MemoryClient(dsn, embedder="none")
    may_end = threading.Event()
    client._background.send(client.console, partial(asyncio.to_thread, lambda client: may_end.wait(), client))
    (thread,) = loop_threads()
    del client
    may_end.set()
    thread.join(PATIENCE_SECONDS)
    gc.collect()
    assert not thread.is_alive()


def test_what_no_reviewer_could_read_is_not_sent(dsn: str) -> None:
    async def program() -> None:
        client = client_at(dsn, embedder="none")
        client.signal_later("correction", "x" * 5000, subject="ada")
        client.signal_later("correction", "Too \x00 odd.", subject="ada")
        client.signal_later("correction", "Coffee.", subject="ada")

    in_agent(program)
    assert [signal.text for signal in Signal.objects.all()] == ["Coffee."]
