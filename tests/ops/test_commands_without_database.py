"""Commands on a database that does not answer, and on one that was never migrated: one sentence, not a traceback."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from django.conf import settings
from django.core.management import get_commands
from django.db import DEFAULT_DB_ALIAS, connections

from memadmin.__main__ import main
from memadmin.embedded.server import server_for
from sessions_app.management.commands import worker
from tests.forks import PROCESSES, use_database

pytestmark = pytest.mark.slow

OURS = ("memadmin", "sessions_app", "memories_app")

ARGUMENTS = {
    "attach_store": "main",
    "audit_events": "",
    "begin_epoch": "--reason restored_backup",
    "changepassword": "one",
    "check_deploy": "",
    "check_stores": "",
    "check_stores --json": "",
    "check_vectors": "",
    "clearsessions": "",
    "consolidate": "",
    "db_roles": "--print",
    "demo_run": "support",
    "distil": "",
    "erase_batch": "FOLDER/people.csv --reason consent --requested-by one --approved-by two",
    "erase_subject": "4711 --preview",
    "export_audit": "FOLDER/log",
    "export_memories": "",
    "grant_role": "one support --reason new",
    "hold": "list",
    "import_memories": "FOLDER/memories.json",
    "import_transcripts": "FOLDER/transcripts.json --store main",
    "purge_expired": "main --yes",
    "redact_text": "--subject 4711 --preview",
    "register_sessions": "main one",
    "reopen_subject": "4711 --by one",
    "replay_suppressions": "",
    "requests": "",
    "reset_second_factor": "one",
    "retention_policies": "export",
    "rotate_key": "main --from old --to new",
    "run_retention": "--preview",
    "search_index": "main --create",
    "sequence_audit": "--once",
    "store_key": "main --key new",
    "subject_keys": "",
    "verify_audit": "",
    "verify_receipt": "FOLDER/receipt.json",
    "worker": "",
}

NOT_TRIED = {
    "demo": "starts a database of its own",
    "migrate": "is for a database without tables; test_environment.py has it without a database",
    "serve": "begins without a database, as a web server must; /readyz reports it",
}

WITHOUT_DATABASE = {"audit_events", "replay_suppressions", "subject_keys"}
"""Commands that need none: the last two read files, and `replay_suppressions` has no ledger here."""

CANNOT_TELL = {"verify_audit": 2, "verify_receipt": 2}
"""Exit status of commands whose 1 means that something was changed."""

REPORTS = {"check_deploy", "check_stores", "check_stores --json"}
"""Commands that report an unusable database among other findings."""

FILES = {
    "people.csv": "4711\n",
    "memories.json": '[{"memory": "Prefers tea"}]',
    "transcripts.json": '{"messages": [{"role": "user", "content": "Hello"}]}',
    "receipt.json": "{}",
}


def test_every_command_is_tried() -> None:
    ours = {name for name, app in get_commands().items() if str(app).partition(".")[0] in OURS}
    of_django = {"changepassword", "clearsessions"}
    assert ours == ({name.split()[0] for name in ARGUMENTS} - of_django) | NOT_TRIED.keys()


@pytest.mark.parametrize(
    ("database", "reasons"),
    [
        pytest.param("", ("Connection refused", "The database is not responding."), id="no database"),
        pytest.param(
            "unmigrated",
            ("run `memadmin migrate`", "not in this database yet. Run migrate."),
            id="not migrated",
            marks=pytest.mark.release,
        ),
    ],
)
def test_every_command_ends_with_a_sentence(database: str, reasons: tuple[str, ...], tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    process = PROCESSES.Process(target=run_all, args=(database, tmp_path))
    process.start()
    process.join()
    ends = {name: End(*end) for name, end in json.loads((tmp_path / "ends").read_text()).items()}
    assert ends.keys() == ARGUMENTS.keys()
    wrong = {name: end for name, end in ends.items() if not ends_well(name, end, reasons)}
    assert not wrong


def ends_well(name: str, end: End, reasons: tuple[str, ...]) -> bool:
    if name in WITHOUT_DATABASE:
        return end.status == 0
    sentences = end.output if name in REPORTS else end.errors
    has_one = name in REPORTS or sentences.count("\n") == 1
    return has_one and end.status == CANNOT_TELL.get(name, 1) and any(reason in sentences for reason in reasons)


class End(NamedTuple):
    status: int | str
    """The exit status, or an exception: a traceback."""
    output: str
    errors: str


def run_all(database: str, folder: Path) -> None:
    """Runs each command in this process, and writes how it ended."""
    if database:
        use_database(database, folder / "postgres")
        server_for(folder / "postgres").ensure_running()
    else:
        address = {"HOST": "127.0.0.1", "PORT": "1", "USER": "role", "PASSWORD": "secret", "NAME": "name"}
        settings.DATABASES[DEFAULT_DB_ALIAS] |= {"ENGINE": "django.db.backends.postgresql", **address}
        del connections[DEFAULT_DB_ALIAS]  # it was made for the embedded server
    settings.SUBJECT_KEYS_DIR, settings.VECTOR_INDEX = folder, "qdrant::memory:"
    # The worker tries again for a minute.
    with mock.patch.object(worker, "PAUSES_SECONDS", ()):
        ends = {
            name: run(f"{name} {words.replace('FOLDER', str(folder))}".split()) for name, words in ARGUMENTS.items()
        }
    (folder / "ends").write_text(json.dumps(ends))
    connections.close_all()
    if database:
        server_for(folder / "postgres").leave()


def run(arguments: list[str]) -> End:
    output, errors = StringIO(), StringIO()
    with mock.patch.object(sys, "argv", ["memadmin", *arguments]), redirect_stdout(output), redirect_stderr(errors):
        try:
            main()
            status: int | str = 0
        except SystemExit as end:
            # Python prints a text, and exits with 1.
            status = end.code if isinstance(end.code, int) else 1
            errors.write("" if isinstance(end.code, int) else f"{end.code}\n")
        except Exception as problem:
            status = f"{type(problem).__name__}: {problem}"
    return End(status, output.getvalue(), errors.getvalue())
