"""The last release beside this version, on the schema of this version: both show pages, work, and write the log.

An upgrade migrates first and replaces the processes afterwards, one by one.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.error
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.cookiejar import CookieJar
from io import BytesIO
from pathlib import Path
from typing import IO
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import psutil
import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import Group, User
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import DjangoDbBlocker

from memadmin.audit.models import AuditEvent, AuditPending
from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.retention.models import LegalHold
from memories_app.models import Memory
from sessions_app.models import SessionRecord, SubjectAlias
from tests.agents import agent_process, attach_main_store, make_agent_tables
from tests.ops.runbooks import working_on
from tests.ops.test_migrations_while_running import LAST_RELEASE
from tests.ports import free_port
from tests.processes import kill_with_children
from tests.template_database import copy_to
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.release

PASSWORD = "tried by a test"

AGENT = """
import asyncio, sys
from agents.extensions.memory import SQLAlchemySession
from memadmin.client.memories import MemoryClient
from memadmin.client.sessions import GovernedSession

async def main(address, session_id, subject):
    memories = MemoryClient(address, store="main")
    inner = SQLAlchemySession.from_url(session_id, url=address.replace("postgresql:", "postgresql+psycopg:"))
    session = memories.session(inner, subject=subject)
    await session.add_items([{"role": "user", "content": "Tea, please."}])
    kept = await memories.propose("Drinks tea.", subject=subject, kind="preference")
    assert kept, kept
    print(len(await session.get_items()))
    await memories.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


class Version:
    """The programs of one version on the shared database."""

    def __init__(self, name: str, folder: Path, logs: Path, variables: dict[str, str]) -> None:
        self.name, self.folder, self.folder_of_logs = name, folder, logs
        ours = ("MEMADMIN_", "DJANGO_SETTINGS_MODULE", "DATABASE_URL", "PG")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        self.variables = {**inherited, **variables, "PYTHONPATH": str(folder)}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (
            f"{self.name}: {arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
        return done.stdout

    def command(self, *arguments: str) -> str:
        return self.run("manage.py", *arguments)

    def start(self, *arguments: str, errors: IO[str] | int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """One of its programs, with its output in a pipe, and errors too unless they go elsewhere."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Within the block its worker works, and does not end by itself; afterwards it ends in order."""
        log = self.folder_of_logs / f"worker of {self.name}.log"
        with log.open("w") as errors:
            worker = self.start("manage.py", "worker", errors=errors)
        try:
            assert worker.stdout
            assert worker.stdout.readline() == "The worker is running.\n", f"{self.name}: {log.read_text()}"
            yield
            assert worker.poll() is None, f"{self.name}: the worker has ended: {log.read_text()}"
            worker.terminate()
            assert worker.wait(PATIENCE_SECONDS) == 0, f"{self.name}: {log.read_text()}"
        finally:
            if worker.poll() is None:
                kill_with_children(worker.pid)
            worker.wait()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The address of its web server, which answers."""
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        log = self.folder_of_logs / f"{port}.log"
        with log.open("w") as errors:
            server = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(port)],
                cwd=self.folder,
                env=self.variables,
                stderr=errors,
            )
        try:
            wait_until(lambda: status_of(build_opener(), f"{address}/healthz") == 200 or server.poll() is not None)
            assert server.poll() is None, f"{self.name}: the web server has ended: {log.read_text()}"
            yield address
        finally:
            if server.poll() is None:
                kill_with_children(server.pid)
            server.wait()


def status_of(browser: OpenerDirector, address: str) -> int:
    """Status of the answer; 0 without one."""
    try:
        with browser.open(address, timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as answer:
        return answer.code
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0


def signed_in(address: str) -> tuple[OpenerDirector, str]:
    """The browser of a person who may see everything, and the first page."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    form = browser.open(f"{address}/accounts/login/").read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token
    given = {"login": "everything", "username": "everything", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    return browser, browser.open(f"{address}/accounts/login/", urlencode(given).encode()).read().decode()


def lost_pages(address: str) -> tuple[list[str], int]:
    """Addresses of the sidebar that show no page to somebody who may see all of them; and how many there are."""
    browser, home = signed_in(address)
    sidebar = sorted(set(re.findall(r'<a class="nav-link"\s+href="(/[^"]*)"', home)))
    return [page for page in sidebar if status_of(browser, address + page) != 200], len(sidebar)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """The files of the last release, from the history of this checkout."""
    archive = subprocess.run(
        ["git", "archive", LAST_RELEASE["commit"]], cwd=settings.CHECKOUT_DIR, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"THE LAST RELEASE WAS NOT TRIED: {LAST_RELEASE['commit']} is not in this checkout's history.")
    folder = tmp_path / "released"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture
def database(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[EmbeddedServer]:
    """The schema of this version, with a store, a person who may do everything, and one who approves."""
    server = server_for(tmp_path / "pg")
    with django_db_blocker.unblock():
        copy_to(server)
        with working_on(server):
            attach_main_store()
            make_agent_tables()
            for name in ("everything", "second"):
                # As the programs store it, and not as this process would.
                stored = PBKDF2PasswordHasher().encode(PASSWORD, salt="a trial")
                user = User.objects.create(username=name, password=stored, email=f"{name}@example.org")
                user.groups.set(Group.objects.all())
        agent_process.end()
        yield server
        server.leave()


@pytest.fixture
def versions(released: Path, database: EmbeddedServer, tmp_path: Path) -> list[Version]:
    """The last release, and this version, with the same settings."""
    common = {
        "DATABASE_URL": "postgres://postgres@/memadmin",
        "PGHOST": database.ensure_running().socket_dir,
        "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
        "MEMADMIN_SIGNING_KEY": base64.b64encode(settings.SIGNING_KEY).decode(),
        "MEMADMIN_ANCHOR_PATH": str(tmp_path / "anchor.jsonl"),
        "MEMADMIN_SUPPRESSION_LEDGER": str(tmp_path / "suppressions.jsonl"),
        "MEMADMIN_SECOND_FACTOR": "optional",
        "MEMADMIN_PURPOSE": "optional",
        "MEMADMIN_CANCEL_MINUTES": "1",
    }
    places = (("the last release", released), ("this version", Path(settings.CHECKOUT_DIR)))
    return [
        Version(name, folder, tmp_path, {**common, "MEMADMIN_DATA_DIR": str(tmp_path / f"data-{number}")})
        for number, (name, folder) in enumerate(places)
    ]


def going_on(versions: list[Version]) -> list[Version]:
    """Those whose web servers and workers run on the schema of this version."""
    return versions[1:] if LAST_RELEASE["is_stopped_first"] else versions


def test_the_last_release_and_this_version_work_on_one_database(
    versions: list[Version], database: EmbeddedServer, tmp_path: Path
) -> None:
    for version in going_on(versions):
        expected = LAST_RELEASE["lost_pages"] if version is versions[0] else []
        with version.serving() as address:
            lost, count = lost_pages(address)
            assert count > 10
            assert lost == expected, f"{version.name}: {lost} are no pages"

    agents_address = f"postgresql://postgres@/memadmin?host={database.ensure_running().socket_dir}"
    for number, version in enumerate(versions):
        propose(version, number, tmp_path)
        assert version.run("-c", AGENT, agents_address, f"session-{number}", f"person-{number}") == "1\n"
        if version in going_on(versions):
            holding = ("--subject", f"person-{number}", "--reason", "a trial", "--by", "everything")
            version.command("hold", "place", *holding)
        version.command("sequence_audit", "--once")
    # On what this version has written.
    last_release = versions[0]
    propose(last_release, len(versions), tmp_path)
    last_release.command("sequence_audit", "--once")
    for version in versions:
        report = json.loads(version.command("verify_audit", "--json"))
        assert report["verdict"] in ("ok", "unanchored"), f"{version.name}: {report}"
    with working_on(database):
        assert Memory.objects.count() == 5
        assert LegalHold.objects.count() == len(going_on(versions))


def schema_of(server: EmbeddedServer, database: str) -> set[str]:
    """Its statements, with the columns of a table in alphabetical order: an upgrade adds new ones at the end.

    Without the functions of pgtrigger, which nothing calls, and which stay when their trigger goes.
    """
    running = server.ensure_running()
    dump = Path(psutil.Process(running.pid).exe()).with_name("pg_dump")
    reach = ["--host", running.socket_dir, "--username", "postgres", "--dbname", database]
    text = subprocess.run([dump, "--schema-only", *reach], capture_output=True, text=True, check=True).stdout
    lines = [line for line in text.splitlines() if not line.startswith("\\")]
    statements = set()
    for each in "\n".join(lines).split("\n-- Name: ")[1:]:
        if "\nCREATE TABLE " in each:
            statements.add("\n".join(sorted(line.rstrip(",") for line in each.splitlines())))
        elif not each.startswith("pgtrigger_"):
            statements.add(each)
    return statements


def test_an_upgraded_database_has_the_schema_of_a_new_one(versions: list[Version], database: EmbeddedServer) -> None:
    """With the triggers that the models declare, and the functions of all files, as they are now."""
    last_release, this_version = versions
    for version, name in ((last_release, "upgraded"), (this_version, "upgraded"), (this_version, "new")):
        database.ensure_database(name)
        version.variables["DATABASE_URL"] = f"postgres://postgres@/{name}"
        version.command("migrate")
    upgraded, new = schema_of(database, "upgraded"), schema_of(database, "new")
    assert len(new) > 1000
    assert (upgraded - new, new - upgraded) == (set(), set())


ROUNDS = 3


def test_processes_of_both_write_at_the_same_time(
    versions: list[Version], database: EmbeddedServer, tmp_path: Path
) -> None:
    """Web servers and workers of both run, unless those of the last release are stopped first. Agents and commands of
    both write at once, also about the same subject, and each web server shows what agents of the other version, or of
    both, wrote, with an event of the log.
    """
    agents_address = f"postgresql://postgres@/memadmin?host={database.ensure_running().socket_dir}"
    names = [[f"session-{turn}-{number}" for number in range(2)] for turn in range(ROUNDS)]
    with ExitStack() as running:
        addresses = [running.enter_context(version.serving()) for version in going_on(versions)]
        for version in going_on(versions):
            running.enter_context(version.working())
        browsers = [signed_in(address)[0] for address in addresses]
        for turn in range(ROUNDS):
            writing = [
                version.start("-c", AGENT, agents_address, names[turn][number], f"shared-by-both-{turn}")
                for number, version in enumerate(versions)
            ]
            writing += [
                version.start("manage.py", "import_memories", str(facts_about(f"{turn}-{number}", tmp_path)))
                for number, version in enumerate(versions)
            ]
            for program, expected in zip(writing, ["1\n", "1\n", "1 proposed", "1 proposed"], strict=True):
                said, _ = program.communicate(timeout=PATIENCE_SECONDS)
                assert (program.returncode, expected in said) == (0, True), said
            with working_on(database):
                records = {record.session_id: record for record in SessionRecord.objects.all()}
            # The last one is that of this version, which shows what the last release's agent wrote.
            for number, (browser, address) in enumerate(zip(browsers[::-1], addresses[::-1], strict=True)):
                page = address + records[names[turn][number]].get_absolute_url()
                assert "Tea, please." in browser.open(page, timeout=PATIENCE_SECONDS).read().decode()
        with working_on(database):
            wait_until(lambda: not AuditPending.objects.exists())
    with working_on(database):
        assert SessionRecord.objects.filter(session_id__in=[name for each in names for name in each]).count() == 6
        assert AuditEvent.objects.filter(type="session.viewed").count() == len(addresses) * ROUNDS
        assert Memory.objects.count() == 4 * ROUNDS
        # Agents of both versions found the one subject that they registered side by side.
        assert SubjectAlias.objects.filter(key__startswith="shared-by-both").count() == ROUNDS
        assert ProcrastinateJob.objects.filter(status="failed").count() == 0
    for version in versions:
        report = json.loads(version.command("verify_audit", "--json"))
        assert report["verdict"] in ("ok", "unanchored"), f"{version.name}: {report}"


def facts_about(name: str, folder: Path) -> Path:
    file = folder / f"{name}.json"
    file.write_text(json.dumps({f"person-{name}": {"favorite_drink": "chai"}}))
    return file


def propose(version: Version, number: int, folder: Path) -> None:
    """The command of this version proposes a memory."""
    assert "1 proposed" in version.command("import_memories", str(facts_about(str(number), folder)))
