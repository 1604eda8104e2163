"""`demo`: the whole product on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memadmin.demo import agents, preparing, remembering, running
from memadmin.web import serving

DEFAULT_PASSWORD = "memadmin-demo"

RETRY_SECONDS = 5

FULL_BYTES = 32 * 1024**2
"""With less free space than this a failure is reported as a full disk."""


class Command(BaseCommand):
    help = (
        "Starts the embedded PostgreSQL, demo agents with conversations, a worker and the web server on 127.0.0.1."
        " Ctrl-C stops everything; the data stays in MEMADMIN_DATA_DIR for the next start."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        # A shell starts what it puts in the background with Ctrl-C ignored, and Python leaves it so.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for signal_number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(signal_number, as_ctrl_c)
        try:
            with blaming_a_full_disk():
                self.run(settings.PORT, password_for_everybody())
        except (running.CannotRun, preparing.NameTaken) as problem:
            raise CommandError(str(problem)) from problem
        except KeyboardInterrupt:
            self.stdout.write("\nStopped.")

    def run(self, port: int, password: str) -> None:
        if running.end_leftovers():
            self.stdout.write("Stopped the remaining processes of an earlier demo that was killed.")
        running.refuse_a_taken_port(port)
        self.stdout.write(f"Preparing the database in {settings.DATA_DIR} ...")
        preparing.wait_for_turn()
        names = preparing.prepare(password, self.step)
        if conversations := preparing.tell_stories(self.step):
            self.stdout.write(f"Created {conversations} demo conversations.")
        connection.close()
        # The password is on the screen for all to read, so a second factor would protect nothing.
        os.environ.setdefault("MEMADMIN_SECOND_FACTOR", "optional")
        os.environ.setdefault("MEMADMIN_PURPOSE", "optional")
        os.environ.setdefault("MEMADMIN_IDLE_MINUTES", "480")
        # An erasure can be followed to its end while somebody watches.
        os.environ.setdefault("MEMADMIN_CANCEL_MINUTES", "1")
        os.environ.setdefault("MEMADMIN_RESCAN_MINUTES", "1")
        commands = {"worker": running.worker_command(), "web_server": serving.web_command(port=port)}
        roles = {"worker": preparing.role_of("worker"), "web_server": preparing.role_of("web")}
        with running.programs(roles=roles, **commands) as programs:
            with self.step("Web server and worker"):
                running.wait_until_ready(port, programs)
            self.greet(port, names, password)
            asyncio.run(self.attend(programs))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Prints the name of a step of the preparation at once, and the seconds that it took when it is done."""
        self.stdout.write(f"  {name} ...", ending="")
        self.stdout.flush()
        begun = time.monotonic()
        try:
            yield
        except BaseException:
            self.stdout.write("")
            raise
        self.stdout.write(f" {time.monotonic() - begun:.0f} s")

    def greet(self, port: int, names: Sequence[str], password: str) -> None:
        self.stdout.write(
            f"\nOpen http://127.0.0.1:{port}/\n\nSign in with the password {password} and one of these user names:"
        )
        for name in names:
            self.stdout.write(f"  {name}")
        if role := preparing.role_of("agents"):
            self.stdout.write(
                f"\nAgents of your own reach its memories, from this machine, at\n  {remembering.agents_url(role)}"
            )
        self.stdout.write("\nPress Ctrl-C to stop the demo.")
        self.stdout.flush()

    async def attend(self, programs: Sequence[running.Program]) -> None:
        """Lets one demo agent continue a conversation, so that there is something to watch, until a program ends or a
        signal comes.
        """
        talking = asyncio.create_task(self.talk())
        try:
            await running.watch(programs)
        finally:
            talking.cancel()
            await asyncio.wait([talking])

    async def talk(self) -> None:
        while True:
            try:
                await agents.chat_on(role=preparing.role_of("agents"))
            except agents.DATABASE_AWAY:
                await asyncio.sleep(RETRY_SECONDS)  # it is back with the next page that a user opens
            except Exception as problem:
                self.stderr.write(f"The demo agent stopped: {problem}")
                return
            else:
                return


def as_ctrl_c(signal_number: int, frame: FrameType | None) -> None:
    """Turns other signals into SIGINT, which asyncio handles safely."""
    signal.raise_signal(signal.SIGINT)


def password_for_everybody() -> str:
    """The password that is printed on the screen. A database that others can reach gets no publicly known one."""
    is_embedded = settings.DATABASES["default"]["ENGINE"] == "memadmin.embedded"
    if not settings.DEMO_PASSWORD and not is_embedded:
        raise CommandError("With DATABASE_URL the demo needs your own password in MEMADMIN_DEMO_PASSWORD.")
    return settings.DEMO_PASSWORD or DEFAULT_PASSWORD


@contextmanager
def blaming_a_full_disk() -> Iterator[None]:
    """Reports a full disk, for which PostgreSQL, the SDK and Python each have another error."""
    try:
        yield
    except Exception as problem:
        if shutil.disk_usage(settings.DATA_DIR).free < FULL_BYTES:
            raise CommandError(f"The disk that holds {settings.DATA_DIR} is full.") from problem
        raise
