"""The processes of the demo: started as separate programs, monitored, and stopped together."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

import psutil

from memadmin.web.serving import reason_not_to_listen

START_SECONDS = 300
"""A program that ends is noticed at once; this is for a machine that does much else."""
STOP_SECONDS = 20


STARTED_BY = "STARTED_BY_MEMADMIN"
"""Environment variable of each program: the process id of its demo."""


class CannotRun(Exception):
    """The demo cannot continue; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running child."""

    name: str
    process: subprocess.Popen[bytes]

    def raise_if_ended(self) -> None:
        code = self.process.poll()
        if code is not None:
            raise CannotRun(f"The {self.name} stopped unexpectedly with exit code {code}.")


def worker_command() -> list[str]:
    return [sys.executable, "-m", "memadmin", "worker"]


def refuse_a_taken_port(port: int) -> None:
    if reason := reason_not_to_listen("127.0.0.1", port):
        raise CannotRun(f"Port {port} cannot be used ({reason}). Free it, or choose another one with MEMADMIN_PORT.")


def end_leftovers() -> int:
    """Ends programs of killed demos, which still use port and database; returns their number."""
    leftovers = [process.pid for process in psutil.process_iter() if is_leftover(process)]
    for leader in leftovers:
        end_session(leader)
    return len(leftovers)


def is_leftover(process: psutil.Process) -> bool:
    """Whether a demo that no longer runs started it, and it leads a process session; its children end with it.

    A database that one of the programs restarted is found, and finally stopped, by its next user.
    """
    try:
        demo = process.environ().get(STARTED_BY)
        return (
            demo is not None
            and not psutil.pid_exists(int(demo))
            and process.uids().real == os.getuid()
            and os.getsid(process.pid) == process.pid
            and process.name() != "postgres"
        )
    except (psutil.Error, OSError):  # of another user, or ended meanwhile
        return False


@contextmanager
def programs(*, roles: Mapping[str, str] | None = None, **commands: list[str]) -> Iterator[list[Program]]:
    """Runs each command until the block ends, then stops them all, first with SIGTERM.

    `roles` are the database roles under which they connect, by the same names.
    """
    started: list[Program] = []
    try:
        for name, command in commands.items():
            # In separate process sessions: Ctrl-C reaches only the demo, which then stops them once.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, STARTED_BY: str(os.getpid()), **as_role((roles or {}).get(name, ""))},
            )
            started.append(Program(name.replace("_", " "), process))
        yield started
    finally:
        # A second signal while stopping must not leave some of them running.
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signal_number, signal.SIG_IGN)
        for program in started:
            program.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for program in started:
            with suppress(subprocess.TimeoutExpired):
                program.process.wait(max(0, deadline - time.monotonic()))
            end_session(program.process.pid)
            program.process.wait()


def as_role(role: str) -> dict[str, str]:
    return {"MEMADMIN_DATABASE_ROLE": role} if role else {}


def end_session(leader: int) -> None:
    """Kills remaining processes: a program that did not stop, or the children of one that was killed.

    Returns when they have ended, because they use the port and the database.
    """
    rest = [process for process in psutil.process_iter() if session_of(process) == leader]
    for process in rest:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    while any(session_of(process) == leader for process in rest):
        time.sleep(0.01)


def session_of(process: psutil.Process) -> int | None:
    """None for a process that has ended, buried or not. A zombie may still have threads that hold its files."""
    try:
        has_ended = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
        return None if has_ended else os.getsid(process.pid)
    except (psutil.Error, ProcessLookupError):
        return None


def wait_until_ready(port: int, running: Sequence[Program]) -> None:
    deadline = time.monotonic() + START_SECONDS
    answer = "nothing"
    while time.monotonic() < deadline:
        for program in running:
            program.raise_if_ended()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except urllib.error.HTTPError as refusal:
            answer = f"{refusal.code} {refusal.read(500).decode(errors='replace')}"
        except OSError:
            pass  # not listening yet
        time.sleep(0.1)
    raise CannotRun(f"The web server was not ready after {START_SECONDS} seconds; its last answer was {answer}.")


async def watch(running: Sequence[Program]) -> NoReturn:
    """Raises CannotRun as soon as one of them ends."""
    while True:
        for program in running:
            program.raise_if_ended()
        await asyncio.sleep(0.2)
