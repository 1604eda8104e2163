"""Processes of the console on a bench's databases, forked from the bench's own: Django takes longer to load than most
commands take to run, so it is loaded once.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import django
from django.utils.module_loading import import_string

import memadmin.settings
from tests.benchmarks.database import BenchServer

FORKING = get_context("fork")

COMMAND = "django.core.management.call_command"


def load_console(server: BenchServer, database: str = "postgres") -> None:
    """Loads Django in this process, with the settings of the bench."""
    os.environ.update(server.environment(database))
    # Read before it was known which data directory is meant.
    importlib.reload(memadmin.settings)
    django.setup()


class ConsoleProcess:
    """Runs functions of the console on one database, one after the other, until the block ends.

    It is forked at the start of the block: at that time this process must have loaded the console and have one thread.
    """

    def __init__(self, database: str) -> None:
        self._database = database

    def __enter__(self) -> ConsoleProcess:
        self._connection, theirs = FORKING.Pipe()
        self._process = FORKING.Process(target=_serve, args=(theirs, self._database), daemon=True)
        self._process.start()
        theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._connection.send(None)
        self._process.join()
        self._connection.close()

    def run(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Result of the function with this dotted name.

        Raises EOFError where it failed; its traceback is on stderr.
        """
        self._connection.send((function, arguments, options))
        return self._connection.recv()

    def command(self, *arguments: str) -> None:
        """Runs a management command, whose output is dropped."""
        self.run(COMMAND, *arguments)


def command(database: str, *arguments: str) -> None:
    """Runs a management command on a database, in a process that has ended afterwards."""
    with ConsoleProcess(database) as console:
        console.command(*arguments)


def _serve(tasks: Connection, database: str) -> None:
    from django.db import connections

    os.environ["MEMADMIN_BENCH_DATABASE"] = connections["default"].settings_dict["NAME"] = database
    while task := tasks.recv():
        function, arguments, options = task
        with contextlib.redirect_stdout(io.StringIO()):
            result = import_string(function)(*arguments, **options)
        # As at the end of a program: another database may be copied from this one.
        connections.close_all()
        tasks.send(result)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
