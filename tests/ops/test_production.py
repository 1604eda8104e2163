"""docs/production.md, block by block: from nothing to a console behind nginx, a restore, and an upgrade."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from agents.extensions.memory import SQLAlchemySession
from django.conf import settings
from django.urls import reverse

from memadmin import __version__
from tests.accounts.factors import code_shown_for
from tests.ops.debian_machine import DebianMachine
from tests.ops.runbooks import Runbook
from tests.stores.postgres import INSTALLED, running_postgres
from tests.stores.servers import without

pytestmark = pytest.mark.release

NEXT = "0.1.1"
INSTALLATION, BACKUP = Runbook("production.md"), Runbook("backup.md")
READY_WITHIN_SECONDS = 240


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[DebianMachine]:
    if not INSTALLED:
        without("PostgreSQL of Debian", "postgresql")
    programs = INSTALLED[0].parent
    with running_postgres(programs) as server:
        machine = DebianMachine(tmp_path / "machine", server, programs)
        try:
            yield machine
        finally:
            machine.end()


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The unpacked source of this version, with its wheel beside the folder."""
    return unpacked(settings.CHECKOUT_DIR, tmp_path / "release", __version__)


def unpacked(source: Path, folder: Path, version: str) -> Path:
    """Builds wheel and source of a release into `folder`, and unpacks the source there."""
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(folder / f"memadmin-{version}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder / f"memadmin-{version}"


def next_release(release: Path, folder: Path) -> Path:
    """The same program under the next number."""
    (release / "PKG-INFO").unlink()  # whose version counts where it is
    version = release / "memadmin/__init__.py"
    version.write_text(version.read_text().replace(__version__, NEXT))
    return unpacked(release, folder, NEXT)


class Agent:
    """A program of agents that uses the SDK with the address that the installation made for it."""

    def __init__(self, machine: DebianMachine) -> None:
        line = (machine.root / "etc/memadmin/agents.env").read_text().strip()
        address = line.removeprefix("DATABASE_URL=").replace("postgres://", "postgresql+asyncpg://")
        self.address = address.replace("@127.0.0.1/", f"@127.0.0.1:{machine.variables['PGPORT']}/")

    def says(self, text: str) -> None:
        asyncio.run(self._with_session(lambda session: session.add_items([{"role": "user", "content": text}])))

    def remembers(self) -> list[str]:
        items = asyncio.run(self._with_session(lambda session: session.get_items()))
        return [item["content"] for item in items]

    async def _with_session(self, action: Callable[[SQLAlchemySession], Any]) -> Any:
        session = SQLAlchemySession.from_url("ticket-1", url=self.address)
        try:
            return await action(session)
        finally:
            await session.engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[list[str]]:
        """Says something ten times a second at most; what was stored. Raises what went wrong."""
        stop, said, problems = Event(), [], []  # type: ignore[var-annotated]

        def write() -> None:
            # At full speed it would take a core from the upgrade that it is there to watch.
            while not stop.wait(0.1):
                text = f"Number {len(said)}."
                try:
                    self.says(text)
                except Exception as problem:
                    problems.append(problem)
                    return
                said.append(text)

        thread = Thread(target=write)
        thread.start()
        try:
            yield said
        finally:
            stop.set()
            thread.join()
        assert not problems


def sign_in(machine: DebianMachine, password: str) -> None:
    """The first sign-in of the administrator, who has to choose a second factor at once."""
    login, app = reverse("account_login"), reverse("mfa_activate_totp")
    send(machine, login, machine.browse(login), username="administrator", password=password)
    page = machine.browse(app)
    secret = re.search(r'id="totp-key">(\w+)<', page)
    assert secret
    send(machine, app, page, code=code_shown_for(secret[1]))


def send(machine: DebianMachine, path: str, page: str, **fields: str) -> None:
    """Sends the form of a page."""
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token
    form = {**fields, "csrfmiddlewaretoken": token[1]}
    machine.browse(path, *(word for pair in form.items() for word in ("--data-urlencode", "=".join(pair))))


def patiently(action: Callable[[], object]) -> None:
    """Repeats it until nothing is asserted in vain, for the minutes that a busy machine may take."""
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while True:
        try:
            action()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return


def assert_anchored(anchor: Path, events: int) -> None:
    assert anchor.exists(), f"There is no {anchor}"
    size = json.loads(anchor.read_text().splitlines()[-1])["size"]
    assert size >= events, f"Of {events} events only {size} are anchored"


def test_from_nothing_to_a_console_a_restore_and_an_upgrade(
    machine: DebianMachine, release: Path, tmp_path: Path
) -> None:
    steps = {heading.partition(". ")[2]: heading for heading in INSTALLATION.headings()}

    def carry_out(step: str, source: Path = release) -> str:
        return "".join(machine.run(block, source) for block in INSTALLATION.commands(steps.pop(step)))

    for step in ("Packages", "The program", "The database", "Settings", "Tables and roles", "The agents' tables"):
        carry_out(step)
    agent = Agent(machine)
    agent.says("Before the backup.")
    for step in ("Web server and workers", "nginx with TLS"):
        carry_out(step)
    printed = carry_out("The first person")
    sign_in(machine, printed.partition("Password: ")[2].strip())
    assert "Before the backup." in machine.browse(reverse("sessions:list"))
    missing = steps.pop("What is missing")
    [check] = INSTALLATION.commands(missing)
    patiently(lambda: machine.run(check, release))
    page = INSTALLATION.sections()[missing]
    left = re.findall(r"^(?:warning|error): ([\w.-]+):", machine.run(check, release), re.MULTILINE)
    assert [name for name in left if f"| `{name}` |" not in page] == [], "No step of the page mends these."
    assert "memadmin_ready 1" in carry_out("Metrics and alerts")

    anchor = machine.root / "var/lib/memadmin/audit-anchor.jsonl"
    patiently(lambda: assert_anchored(anchor, 1))
    superuser, before, after = INSTALLATION.commands(steps.pop("Backups"))
    machine.run(superuser, release)
    agent.says("After the backup.")
    machine.browse(reverse("sessions:list"))  # which is an event of the log
    events = int(
        machine.run("""psql --tuples-only "$DATABASE_URL" --command 'SELECT count(*) FROM audit_event'""", release)
    )
    patiently(lambda: assert_anchored(anchor, events))
    machine.run(before, release)
    repairing = ("Prepare the restored database", "Check the audit log", "Repeat the erasures", "Open the doors")
    for section in ("Restore", *repairing):
        for block in BACKUP.commands(section):
            machine.run(block, release)
    machine.run(after, release)
    assert agent.remembers() == ["Before the backup."]

    with agent.writing() as said:
        carry_out("Upgrade", next_release(release, tmp_path / "next"))
    assert not machine.closed_to_others("opt", "etc/systemd", "etc/nginx", "etc/prometheus", "usr/local/sbin")
    assert agent.remembers() == ["Before the backup.", *said]
    assert "Before the backup." in machine.browse(reverse("sessions:list")), "The administrator is still signed in."

    carry_out("Removal")
    assert (machine.root / "var/lib/memadmin/audit-log.jsonl").stat().st_size > 0
    agent.says("After the removal.")
    assert agent.remembers()[-1] == "After the removal."
    tables = machine.run("""psql --tuples-only "$DATABASE_URL" --command "\\dt" """, release)
    assert re.findall(r"\| (\w+) +\| table", tables) == ["agent_messages", "agent_sessions"]
    assert not steps, "Every step was carried out."
