"""docs/backup.md, carried out word by word: from one PostgreSQL server to another, with a person erased in between."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as ours
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django import DjangoDbBlocker
from sqlalchemy.exc import DBAPIError

from memadmin.audit.transparency import anchors
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.erasure.suppression import entering
from memories_app.models import Memory
from sessions_app.models import SessionRecord
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, agent_process, attach_main_store, value_of
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.memories.builders import approved as approved_memory
from tests.ops.runbooks import Runbook, Shell, address_of, agrees, programs_of, working_on
from tests.people import person, signed_in
from tests.template_database import copy_to

pytestmark = pytest.mark.slow

RUNBOOK = Runbook("backup.md")


@pytest.fixture
def servers(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[list[EmbeddedServer]]:
    """The server of an installation, and the one that takes over, on which there is nothing."""
    made = [server_for(tmp_path / "old"), server_for(tmp_path / "new")]
    with django_db_blocker.unblock():
        copy_to(made[0])
        yield made
        agent_process.end()
        for server in made:
            server.leave()


@pytest.fixture
def kept(tmp_path: Path, settings: Any) -> dict[str, str]:
    """What is kept apart from the database, as settings of this process and of commands."""
    folder = tmp_path / "kept"
    folder.mkdir()
    settings.ANCHOR_PATH = folder / "anchor.jsonl"
    settings.SUPPRESSION_LEDGER = folder / "suppressions.jsonl"
    return {
        "MEMADMIN_SECRET_KEY": ours.SECRET_KEY,
        "MEMADMIN_SIGNING_KEY": base64.b64encode(ours.SIGNING_KEY).decode(),
        "MEMADMIN_ANCHOR_PATH": str(folder / "anchor.jsonl"),
        "MEMADMIN_SUPPRESSION_LEDGER": str(folder / "suppressions.jsonl"),
        "MEMADMIN_DATA_DIR": str(tmp_path / "data"),
    }


def messages_of(name: str) -> int:
    return int(value_of(f"SELECT count(*) FROM agent_messages WHERE session_id = '{name}'"))


def rows_by_table() -> dict[str, int]:
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
    return {table: int(value_of(f'SELECT count(*) FROM "{table}"')) for table in tables}


def anchor_the_log() -> None:
    Sequencer().finish()
    anchors.publish()


def test_the_runbook(servers: list[EmbeddedServer], kept: dict[str, str], tmp_path: Path) -> None:
    old, new = servers
    backups = tmp_path / "backups"
    backups.mkdir()
    shell = Shell(tmp_path / "bin", programs_of(old), BACKUPS=str(backups), **kept)

    def carry_out(heading: str, server: EmbeddedServer) -> None:
        """Carries out a section, and compares what it says is printed with what was."""
        printed = "".join(shell.run(step, **address_of(server)) for step in RUNBOOK.commands(heading))
        for promised in RUNBOOK.outputs(heading):
            assert agrees(promised, printed), f"{heading} promises\n{promised}and prints\n{printed}"

    def may_connect(database: str) -> bool:
        """As an agent, whose address names the database that there was."""
        question = f"psql --no-psqlrc --dbname $SERVER/{database} --username memadmin_agents --command 'SELECT 1'"
        return "(1 row)" in shell.run(f"{question} || true", **address_of(new))

    shell.run("DATABASE_URL=$SERVER/memadmin memadmin db_roles --apply", **address_of(old))
    with working_on(old):
        officer, second = person("compliance"), person("compliance", "reviewer")
        attach_main_store()
        ada, bob = make_subject("ada-1"), make_subject("bob-1")
        for name, subject in (("a1", ada), ("b1", bob)):
            add_items(name, "one", "two")
            attach_sessions(SessionRecord.objects.filter(session_id=name), subject, by=officer)
            approved_memory(f"likes {name}", subject=subject)
        anchor_the_log()
        before = rows_by_table()
        agent_process.end()

    carry_out("Make a backup", old)
    assert {file.stat().st_mode & 0o077 for file in backups.iterdir()} == {0}

    with working_on(old):
        work_off(approved(ada, by=officer, second=second))
        anchor_the_log()
        assert (messages_of("a1"), messages_of("b1")) == (0, 2)

    restoring, repairing = RUNBOOK.commands("Restore")
    shell.run(restoring, **address_of(new))
    with working_on(new, "memadmin_restored"):
        assert rows_by_table() == before
        assert messages_of("a1") == 2, "the control: she is back"
    shell.run(repairing, **address_of(new))
    [sentence] = RUNBOOK.outputs("Restore")
    with working_on(new, "memadmin_restored"):
        entering.check_again()
        page = signed_in(User.objects.get(pk=officer.pk)).get("/sessions/")
        assert (page.status_code, Client().get("/readyz").json()["problems"]) == (503, [sentence.strip()])
        assert html.escape(sentence.strip()) in page.content.decode()
    assert not may_connect("memadmin")

    carry_out("Check the audit log", new)
    with working_on(new, "memadmin_restored"):
        assert Client().get("/readyz").status_code == 503
    carry_out("Repeat the erasures", new)
    carry_out("Open the doors", new)

    assert may_connect("memadmin")
    with working_on(new):
        assert (messages_of("a1"), messages_of("b1")) == (0, 2)
        assert [memory.statement for memory in Memory.objects.all()] == ["likes b1"]
        entering.check_again()
        assert Client().get("/readyz").json()["ready"]
        browser = signed_in(User.objects.get(pk=officer.pk))
        page = browser.get(SessionRecord.objects.get(session_id="b1").get_absolute_url())
        assert (page.status_code, "two" in page.content.decode()) == (200, True)
        assert "ada-1" not in browser.get("/sessions/").content.decode()
        with pytest.raises(DBAPIError, match="erased"):
            add_items("a1", "a late word of an agent")


def test_each_section_with_commands_is_carried_out() -> None:
    assert RUNBOOK.headings() == [
        "Make a backup",
        "Restore",
        "Check the audit log",
        "Repeat the erasures",
        "Open the doors",
    ]
