"""Runbooks of docs/: their shell blocks, carried out word by word, and what they say that commands print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.db import connection

from memadmin.embedded import cluster
from memadmin.embedded.server import EmbeddedServer

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^#+ ([^\n]*)\n(.*?)(?=^#+ |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Runbook:
    """The sections of a page of docs/."""

    page: str

    def sections(self) -> dict[str, str]:
        """Texts by heading. A line of a shell block that begins with # would be taken for a heading: there is none."""
        return dict(SECTION.findall((Path(settings.CHECKOUT_DIR) / "docs" / self.page).read_text()))

    def headings(self) -> list[str]:
        """Headings of sections with something to carry out, in their order."""
        return [heading for heading, text in self.sections().items() if self._blocks(text, "sh")]

    def commands(self, heading: str) -> list[str]:
        return self._blocks(self.sections()[heading], "sh")

    def outputs(self, heading: str) -> list[str]:
        """What the section says that is printed or shown, in its order."""
        return self._blocks(self.sections()[heading], "text")

    def _blocks(self, text: str, kind: str) -> list[str]:
        return [block for each, block in BLOCK.findall(text) if each == kind]


def agrees(promised: str, printed: str) -> bool:
    """True if each promised line is printed, in this order; `…` stands for anything."""
    lines = [re.escape(line.strip()).replace("…", ".*") for line in promised.splitlines()]
    return re.search(r".*^\s*".join(lines), printed, re.DOTALL | re.MULTILINE) is not None


class Shell:
    """A shell in which `memadmin` is the command of this checkout, and PostgreSQL's programs are those of a server."""

    def __init__(self, folder: Path, programs: Path, **variables: str) -> None:
        """`folder` gets the command. Variables of memadmin are those given here alone."""
        folder.mkdir()
        command = folder / "memadmin"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memadmin "$@"\n')
        command.chmod(0o755)
        ours = ("MEMADMIN_", "DJANGO_SETTINGS_MODULE", "DATABASE_URL", "PG")
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "PATH": f"{folder}:{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(settings.CHECKOUT_DIR),
            **variables,
        }

    def run(self, commands: str, **variables: str) -> str:
        """Carries commands out, of which each must succeed. Returns what they printed, errors included."""
        return self._run(commands, variables)

    def run_as_owner_of(self, folder: Path, commands: str, **variables: str) -> str:
        """As `run`, in a folder, and as the system user to whom it belongs."""
        return self._run(commands, variables, cwd=folder, **cluster._account(folder))

    def _run(self, commands: str, variables: dict[str, str], **how: Any) -> str:
        done = subprocess.run(
            ["sh", "-eu", "-c", commands],
            env=self.variables | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **how,
        )
        assert done.returncode == 0, f"{commands}\nended with {done.returncode}:\n{done.stdout}"
        return str(done.stdout)


def programs_of(server: EmbeddedServer) -> Path:
    return Path(psutil.Process(server.ensure_running().pid).exe()).parent


def address_of(server: EmbeddedServer) -> dict[str, str]:
    """Variables for the server as its administrator, without a database. Its socket is no part of an address, because
    Django and libpq expect it in different forms.
    """
    return {"SERVER": "postgres://postgres@", "PGHOST": server.ensure_running().socket_dir}


@contextmanager
def working_on(server: EmbeddedServer, database: str = "memadmin") -> Iterator[None]:
    """Within the block this process works on a database of this server."""
    usual = {**connection.settings_dict}
    connection.close()
    connection.settings_dict |= {"NAME": database, "DATA_DIR": server.data_dir}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict |= usual
