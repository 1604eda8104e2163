"""docs/backup.md, carried out word by word: from one PostgreSQL server to another, with a person erased in between.

Once with a dump, and once with a base backup and an archive of the write-ahead log.
"""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as ours
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from psycopg import sql
from pytest_django import DjangoDbBlocker
from sqlalchemy.exc import DBAPIError

from memadmin.audit.transparency import anchors
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.deploy.checks import operation
from memadmin.embedded import cluster
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
from tests.waiting import wait_until

pytestmark = pytest.mark.release

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


class Move:
    """The runbook, from one server to another, with two people of whom one is erased after the backup."""

    def __init__(self, servers: list[EmbeddedServer], kept: dict[str, str], folder: Path) -> None:
        self.old, self.new = servers
        self.backups = folder / "backups"
        self.backups.mkdir()
        self.shell = Shell(folder / "bin", programs_of(self.old), BACKUPS=str(self.backups), **kept)
        self.shell.run("DATABASE_URL=$SERVER/memadmin memadmin db_roles --apply", **address_of(self.old))
        with working_on(self.old):
            self.officer, self.second = person("compliance"), person("compliance", "reviewer")
            attach_main_store()
            self.ada, bob = make_subject("ada-1"), make_subject("bob-1")
            for name, subject in (("a1", self.ada), ("b1", bob)):
                add_items(name, "one", "two")
                attach_sessions(SessionRecord.objects.filter(session_id=name), subject, by=self.officer)
                approved_memory(f"likes {name}", subject=subject)
            anchor_the_log()
            self.rows = rows_by_table()
            agent_process.end()

    def carry_out(self, heading: str, server: EmbeddedServer) -> None:
        """Carries out a section, and compares what it says is printed with what was."""
        printed = "".join(self.shell.run(step, **address_of(server)) for step in RUNBOOK.commands(heading))
        for promised in RUNBOOK.outputs(heading):
            assert agrees(promised, printed), f"{heading} promises\n{promised}and prints\n{printed}"

    def erase_ada(self) -> None:
        with working_on(self.old):
            work_off(approved(self.ada, by=self.officer, second=self.second))
            anchor_the_log()
            assert messages_of("a1") == 0
            assert messages_of("b1") >= 2

    def may_connect(self, database: str) -> bool:
        """As an agent, whose address names the database that there was."""
        question = f"psql --no-psqlrc --dbname $SERVER/{database} --username memadmin_agents --command 'SELECT 1'"
        return "(1 row)" in self.shell.run(f"{question} || true", **address_of(self.new))

    def open_the_doors(self, *, messages_of_bob: int) -> None:
        """Everything after the restore, where she is back and must not be seen."""
        new = self.new
        with working_on(new, "memadmin_restored"):
            assert (messages_of("a1"), messages_of("b1")) == (2, messages_of_bob), "the control: she is back"
        [repairing] = RUNBOOK.commands("Prepare the restored database")
        self.shell.run(repairing, **address_of(new))
        [sentence] = RUNBOOK.outputs("Prepare the restored database")
        with working_on(new, "memadmin_restored"):
            entering.check_again()
            page = signed_in(User.objects.get(pk=self.officer.pk)).get("/sessions/")
            assert (page.status_code, Client().get("/readyz").json()["problems"]) == (503, [sentence.strip()])
            assert html.escape(sentence.strip()) in page.content.decode()
        assert not self.may_connect("memadmin")

        self.carry_out("Check the audit log", new)
        with working_on(new, "memadmin_restored"):
            assert Client().get("/readyz").status_code == 503
        self.carry_out("Repeat the erasures", new)
        self.carry_out("Open the doors", new)

        assert self.may_connect("memadmin")
        with working_on(new):
            assert (messages_of("a1"), messages_of("b1")) == (0, messages_of_bob)
            assert [memory.statement for memory in Memory.objects.all()] == ["likes b1"]
            entering.check_again()
            assert Client().get("/readyz").json()["ready"]
            browser = signed_in(User.objects.get(pk=self.officer.pk))
            page = browser.get(SessionRecord.objects.get(session_id="b1").get_absolute_url())
            assert (page.status_code, "two" in page.content.decode()) == (200, True)
            assert "ada-1" not in browser.get("/sessions/").content.decode()
            with pytest.raises(DBAPIError, match="erased"):
                add_items("a1", "a late word of an agent")


def test_the_runbook_with_a_dump(servers: list[EmbeddedServer], kept: dict[str, str], tmp_path: Path) -> None:
    move = Move(servers, kept, tmp_path)
    move.carry_out("Make a backup", move.old)
    assert {file.stat().st_mode & 0o077 for file in move.backups.iterdir()} == {0}
    move.erase_ada()

    [restoring] = RUNBOOK.commands("Restore")
    move.shell.run(restoring, **address_of(move.new))
    with working_on(move.new, "memadmin_restored"):
        assert rows_by_table() == move.rows
    move.open_the_doors(messages_of_bob=2)


def test_the_runbook_with_a_base_backup(servers: list[EmbeddedServer], kept: dict[str, str], tmp_path: Path) -> None:
    move = Move(servers, kept, tmp_path)
    old, new = move.old.cluster, move.new.cluster
    # The system user of PostgreSQL, if we are root.
    account = cluster._account(old)
    new.mkdir(parents=True, mode=0o700)
    elsewhere, configuration = tmp_path / "elsewhere", tmp_path / "configuration"
    elsewhere.mkdir()
    configuration.mkdir()
    # As Debian has it, apart from the data.
    (configuration / "postgresql.conf").write_text(f"data_directory = '{new}'\nmax_connections = 200\n")
    (configuration / "pg_hba.conf").write_text("local all all trust\n")
    (configuration / "pg_ident.conf").write_text("")
    for folder in (move.backups, elsewhere, new) if account else ():
        os.chown(folder, account["user"], account["group"])
    for heading in ("Archive the write-ahead log", "Make a base backup"):
        [step] = RUNBOOK.commands(heading)
        move.shell.run_as_owner_of(old, step, **address_of(move.old))
        if heading == "Archive the write-ahead log":
            cluster.stop(old)  # "Restart PostgreSQL"
    with working_on(move.old):
        assert list(operation.backups()) == [], "the finding of a server without an archive is gone"
        correct = value_of("SHOW archive_command")
        set_archive_command("false")
        wait_until(lambda: [finding.level for finding in operation.backups()] == ["error"])
        [finding] = operation.backups()
        assert "correct archive_command, and reload the settings" in finding.hint
        set_archive_command(correct)
        wait_until(lambda: list(operation.backups()) == [])
        add_items("b1", "three")
        agent_process.end()
        segment = value_of("SELECT pg_walfile_name(pg_switch_wal())")
        wait_until(lambda: value_of("SELECT last_archived_wal FROM pg_stat_archiver") >= segment)
    move.erase_ada()
    # The machine is lost before her erasure is in the archive.
    arrived = [file.name for file in (move.backups / "wal").iterdir() if file.name <= segment]
    copied = f"cp --archive {move.backups}/base {elsewhere}; mkdir {elsewhere}/wal; cd {move.backups}/wal; "
    move.shell.run_as_owner_of(old, f"{copied} cp {' '.join(arrived)} {elsewhere}/wal")
    cluster.stop(old)

    [restoring] = RUNBOOK.commands("Restore a base backup")
    places = {"BACKUPS": str(elsewhere), "DATA": str(new), "CONFIG": str(configuration)}
    move.shell.run_as_owner_of(new, restoring, **places)
    assert not move.may_connect("memadmin")
    move.open_the_doors(messages_of_bob=3)


def set_archive_command(command: str) -> None:
    """Takes effect, and something is to be archived."""
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("ALTER SYSTEM SET archive_command = {}").format(sql.Literal(command)))
        cursor.execute("SELECT pg_reload_conf()")
        cursor.execute("SELECT pg_logical_emit_message(false, 'test', 'something'), pg_switch_wal()")


def test_each_section_with_commands_is_carried_out() -> None:
    assert RUNBOOK.headings() == [
        "Make a backup",
        "Restore",
        "Prepare the restored database",
        "Check the audit log",
        "Repeat the erasures",
        "Open the doors",
        "Archive the write-ahead log",
        "Make a base backup",
        "Restore a base backup",
    ]
