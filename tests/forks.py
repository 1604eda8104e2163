"""Processes that are forked from one which has imported Django, and need none of the seconds that this takes."""

from __future__ import annotations

import os
from io import StringIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.forks"])


def said_by(command: str) -> str:
    """What a command says in a process that has imported no test."""
    here, there = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_say, args=(there, command))
    process.start()
    there.close()
    said: str = here.recv()
    process.join()
    return said


def _say(there: Connection[Any, Any], command: str) -> None:
    said = StringIO()
    call_command(command, stdout=said)
    there.send(said.getvalue())


def use_database(name: str, data_dir: Path) -> None:
    """For the forked process: a database of an embedded server, on which commits are durable."""
    settings.DATABASES["default"] |= {"NAME": name, "DATA_DIR": data_dir}
    settings.DATABASES["default"]["OPTIONS"].pop("options", None)
