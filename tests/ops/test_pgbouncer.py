"""The console and agents behind pgbouncer in transaction mode: each transaction is on another session than the last.

The worker and commands connect without it (docs/install.md).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from memadmin.embedded import cluster
from memadmin.embedded.server import server_for
from tests.stores.servers import without
from tests.template_database import copy_to
from tests.waiting import wait_until

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
PORT = 6432
SESSIONS = 3

# Every transaction goes to the server session that was used least recently: what one leaves on its session is found by
# somebody else, and missed by its own client. `options` are those of the tests' settings, which production has not.
CONFIGURATION = """
[databases]
* = host={server} port={server_port}

[pgbouncer]
pool_mode = transaction
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
auth_user = postgres
admin_users = postgres
auth_query = SELECT usename, coalesce(passwd, '') FROM pg_shadow WHERE usename = $1
max_client_conn = 200
default_pool_size = 20
server_round_robin = 1
ignore_startup_parameters = options
"""

CHOSEN = [
    # Pages, files and searches, each with its event in a transaction of its own.
    "tests/audit/test_reads.py",
    "tests/sessions/test_reveal.py",
    # Agents that recall, propose, give signals and write by the SDK's own sessions. A call of the client is a pipeline.
    "tests/client/test_memories.py",
    "tests/client/test_listing.py",
    "tests/client/test_synchronous.py",
    # Sessions and subjects that register themselves.
    "tests/client/test_sessions.py",
]

LEFT_OUT = [
    # Gives the planner options in its address, which pgbouncer drops.
    "tests/client/test_memories.py::test_what_is_meant_for_others_does_not_crowd_out_what_is_meant_for_it",
    # Ends sessions of the server by the name of their client, and may be on one of them.
    "tests/client/test_sessions.py::test_connections_that_the_server_ended_are_replaced",
    # Looks for a session of the server by the number that its client knows, which is one of pgbouncer.
    "tests/client/test_synchronous.py::test_closing_ends_the_calls_of_other_threads",
]

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def pooler(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The folder of its socket. Behind it is a server of its own, with all tables in `test_memadmin`."""
    if not PROGRAM:
        without("pgbouncer", "pgbouncer")
    server = server_for(tmp_path_factory.mktemp("pooled"))
    with django_db_blocker.unblock():
        copy_to(server, "test_memadmin")
    account = cluster._account(server.cluster)
    # A socket's path is short, so the folder is not pytest's.
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder:
        if account:
            os.chown(folder, account["user"], account["group"])
        Path(folder, "users").write_text('"postgres" ""\n')
        configuration = Path(folder, "pgbouncer.ini")
        configuration.write_text(
            CONFIGURATION.format(
                server=server.ensure_running().socket_dir, server_port=cluster.PORT, port=PORT, folder=folder
            )
        )
        process = subprocess.Popen(
            [PROGRAM, "--quiet", configuration], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **account
        )
        try:
            wait_until_it_answers(folder, process)
            yield folder
        finally:
            process.kill()
            process.wait()
            server.leave()


def wait_until_it_answers(folder: str, process: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: process.poll() is not None or answers(folder), "pgbouncer answers")
    assert process.poll() is None, process.stderr and process.stderr.read()


def answers(folder: str) -> bool:
    try:
        connect(folder).close()
    except psycopg.OperationalError:
        return False
    return True


def connect(folder: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host=folder, port=PORT, user="postgres", dbname="test_memadmin", autocommit=True)


@pytest.fixture(autouse=True)
def several_sessions(pooler: str) -> None:
    """As many transactions at once take as many sessions of the server, which stay for those that come."""
    with ExitStack() as stack:
        for _ in range(SESSIONS):
            connection = stack.enter_context(connect(pooler))
            stack.enter_context(connection.transaction())
            connection.execute("SELECT 1")


def environment(pooler: str, data_dir: Path, query: str = "", **more: str) -> dict[str, str]:
    ours = ("MEMADMIN_", "PYTEST_", "RECORD_OF", "DJANGO_SETTINGS_MODULE")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "DATABASE_URL": f"postgres://postgres@/test_memadmin?host={pooler}&port={PORT}{query}",
        "MEMADMIN_DATA_DIR": str(data_dir),
        "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
        **more,
    }


def test_a_setting_of_the_session_is_missed_by_who_made_it(pooler: str) -> None:
    """Otherwise the test below would show nothing."""
    with connect(pooler) as connection:
        connection.execute("SET lock_timeout = '17s'")
        found = [connection.execute("SHOW lock_timeout").fetchone() for _ in range(SESSIONS)]
        assert found == [*[("0",)] * (SESSIONS - 1), ("17s",)]
        for _ in range(SESSIONS):
            connection.execute("RESET lock_timeout")


def test_pages_and_agents_work(pooler: str, tmp_path: Path) -> None:
    deselected = [f"--deselect={name}" for name in LEFT_OUT]
    pytest_here = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "--reuse-db"]
    ended = subprocess.run(
        [*pytest_here, "-p", "tests.through_pooler", *deselected, *CHOSEN],
        cwd=settings.CHECKOUT_DIR,
        env=environment(pooler, tmp_path, "&DISABLE_SERVER_SIDE_CURSORS=True"),
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-2000:]


READ_IN_PIECES = "from django.contrib.auth.models import Permission; sum(1 for _ in Permission.objects.iterator(10))"


@pytest.mark.parametrize(("query", "is_read"), [("", False), ("&DISABLE_SERVER_SIDE_CURSORS=True", True)])
def test_lists_that_are_read_in_pieces_need_the_setting(pooler: str, tmp_path: Path, query: str, is_read: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "--command", READ_IN_PIECES],
        cwd=settings.CHECKOUT_DIR,
        env=environment(pooler, tmp_path, query),
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode == 0) == is_read, ended.stderr
    assert ("InvalidCursorName" in ended.stderr) == (not is_read), ended.stderr


def findings(pooler: str, data_dir: Path, query: str = "", **more: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, "manage.py", "check_deploy"],
        cwd=settings.CHECKOUT_DIR,
        env=environment(pooler, data_dir, query, **more),
        check=False,
        capture_output=True,
        text=True,
    )
    return [line for line in (ended.stdout + ended.stderr).splitlines() if "through a pooler" in line]


def test_what_has_to_be_set_is_said_until_it_is(pooler: str, tmp_path: Path) -> None:
    cursors, workers = findings(pooler, tmp_path)
    assert "DISABLE_SERVER_SIDE_CURSORS=True" in cursors
    assert "MEMADMIN_WORKER_DATABASE_URL" in workers
    direct = "postgres://worker@/test_memadmin?host=/nowhere"
    query = "&DISABLE_SERVER_SIDE_CURSORS=True"
    assert findings(pooler, tmp_path, query, MEMADMIN_WORKER_DATABASE_URL=direct) == []
