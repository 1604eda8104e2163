"""`memadmin-backup` of docs/systemd with stand-ins for PostgreSQL's programs; test_production has the real ones."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from django.conf import settings

SYSTEMD = Path(settings.CHECKOUT_DIR) / "docs/systemd"
SCRIPT = SYSTEMD / "memadmin-backup"
DAY_SECONDS = 86_400

WRITES = """#!/bin/sh
for word; do file=$word; done
echo "$*" > "$file"
"""
"""A program whose last argument is a file."""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.programs, self.backups = folder / "programs", folder / "backups"
        self.programs.mkdir()
        self.backups.mkdir()
        self.anchor, self.ledger = folder / "anchor.jsonl", folder / "suppressions.jsonl"
        for name, text in {"pg_dumpall": WRITES, "pg_dump": WRITES, "pg_restore": "#!/bin/sh\ntest -s $2\n"}.items():
            self.has_program(name, text)

    def has_program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def run(self, what: str, **variables: str) -> int:
        return subprocess.run(
            [SCRIPT, what],
            env={
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "SERVER": "postgres://127.0.0.1",
                "BACKUPS": str(self.backups),
                "MEMADMIN_ANCHOR_PATH": str(self.anchor),
                "MEMADMIN_SUPPRESSION_LEDGER": str(self.ledger),
                **variables,
            },
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode

    def has_folder(self, name: str, *, days_old: float) -> Path:
        folder = self.backups / name
        folder.mkdir()
        (folder / "memadmin.dump").touch()
        moment = time.time() - days_old * DAY_SECONDS
        os.utime(folder, (moment, moment))
        return folder

    def folders(self) -> list[Path]:
        return sorted(self.backups.iterdir())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_dump_is_in_a_folder_of_its_own_that_nobody_else_reads(machine: Machine) -> None:
    assert machine.run("database") == 0
    [folder] = machine.folders()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d{6}Z", folder.name)
    assert sorted(path.name for path in folder.iterdir()) == ["SHA256SUMS", "memadmin.dump", "roles.sql"]
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}
    assert "postgres://127.0.0.1/memadmin" in (folder / "memadmin.dump").read_text()
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


@pytest.mark.parametrize("program", ["pg_dumpall", "pg_dump", "pg_restore"])
def test_what_breaks_off_leaves_the_earlier_ones(machine: Machine, program: str) -> None:
    earlier = [machine.has_folder(f"20{year}-01-01T033000Z", days_old=400) for year in (24, 25)]
    machine.has_program(program, "#!/bin/sh\nexit 1\n")
    assert machine.run("database") != 0
    assert machine.folders() == earlier


def test_what_becomes_too_old_by_the_next_night_is_deleted(machine: Machine) -> None:
    machine.has_folder("2026-01-01T033000Z", days_old=7.1)
    machine.has_folder("2026-01-02T033000Z", days_old=6.1)
    machine.has_folder("2026-01-02T033000Z.part", days_old=6.1)  # of a machine that lost power
    kept = machine.has_folder("2026-01-03T033000Z", days_old=5.9)
    others = machine.has_folder("others", days_old=99)
    assert machine.run("database", MEMADMIN_BACKUP_DAYS="7") == 0
    assert {kept, others} < set(machine.folders())
    assert len(machine.folders()) == 3


def test_of_one_day_the_newest_is_left(machine: Machine) -> None:
    old = machine.has_folder("2026-01-01T033000Z", days_old=0.5)
    assert machine.run("database", MEMADMIN_BACKUP_DAYS="1") == 0
    [left] = machine.folders()
    assert left != old


def test_anchor_and_ledger_are_copied_whole(machine: Machine) -> None:
    machine.anchor.write_text("one\n")
    assert machine.run("files") == 0, "before the first erasure there is no ledger"
    machine.anchor.write_text("one\ntwo\n")
    machine.ledger.write_text("erased\n")
    assert machine.run("files") == 0
    assert {path.name: path.read_text() for path in machine.folders()} == {
        "anchor.jsonl": "one\ntwo\n",
        "suppressions.jsonl": "erased\n",
    }
    assert machine.run("files", MEMADMIN_ANCHOR_PATH="none", MEMADMIN_SUPPRESSION_LEDGER="") == 0


def test_a_file_that_is_written_to_is_waited_for(machine: Machine) -> None:
    machine.anchor.write_text("half a li")
    machine.has_program("cp", '#!/bin/sh\nflock --nonblock --exclusive "$1" true && exit 1\nexec /bin/cp "$@"\n')
    assert machine.run("files") == 0, "it is locked while it is copied"
    with machine.anchor.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert machine.run("files") == 0, "two may read"


def test_it_says_what_it_can_do(machine: Machine) -> None:
    assert machine.run("everything") == 2


def test_the_timers_start_what_the_program_knows() -> None:
    timers = sorted(path.stem for path in SYSTEMD.glob("*.timer"))
    assert timers == ["memadmin-backup@database", "memadmin-backup@files"]
    unit = (SYSTEMD / "memadmin-backup@.service").read_text()
    assert "ExecStart=/usr/local/sbin/memadmin-backup %i\n" in unit
    for timer in timers:
        assert f"\n{timer.partition('@')[2]})\n" in SCRIPT.read_text()
