"""Several processes, one embedded server: who starts it, who stops it, what survives which accident.

Everything here runs real processes on a data directory of its own, as whoever runs the tests; as root also under an
ordinary user.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil
import psycopg
import pytest

from memadmin.embedded import cluster
from memadmin.embedded.cluster import RunAs
from tests.processes import kill

pytestmark = pytest.mark.release

USES_IT = """
import sys
import psycopg
from memadmin.embedded.cluster import CannotStart
from memadmin.embedded.server import server_for

server = server_for(sys.argv[1])
for line in sys.stdin:  # ends when the test closes it, and then this process leaves as any other does
    try:
        running = server.ensure_running()
    except CannotStart as problem:
        print(problem, flush=True)
        continue
    with psycopg.connect(host=running.socket_dir, user="postgres", dbname="postgres") as connection:
        connection.execute(line)
    print(running.pid, flush=True)
"""


class UserProcess:
    """A process that uses the embedded server of `data_dir` whenever the test asks it to."""

    def __init__(self, data_dir: Path, run_as: RunAs | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USES_IT, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            **(run_as or {}),
        )

    def ask(self, statement: str = "SELECT 1") -> None:
        assert self.process.stdin
        print(statement, file=self.process.stdin, flush=True)

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def use(self) -> int:
        """Connects; the answer is the process id of the server."""
        self.ask()
        answer = self.answer()
        assert answer.isdigit(), answer
        return int(answer)

    def leave(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def ordinary_user() -> RunAs:
    """Arguments of `subprocess` for an ordinary user that can run this Python."""
    if os.geteuid() != 0:
        pytest.skip("these tests already run as an ordinary user")
    nobody = pwd.getpwnam("nobody")
    run_as: RunAs = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    if not nobody_can_run_this_python():
        pytest.skip(f"the user nobody cannot run {sys.executable}: it is in a folder that is closed to others")
    return run_as


@cache
def nobody_can_run_this_python() -> bool:
    nobody = pwd.getpwnam("nobody")
    run_as: RunAs = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", "import psycopg"], check=True, cwd="/", **run_as)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder with a short name that an ordinary user can reach; pytest's own `tmp_path` is neither."""
    folder = Path(tempfile.mkdtemp(prefix="mem-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    for process in psutil.process_iter(["cwd", "name"]):
        if process.info["name"] == "postgres" and str(process.info["cwd"]).startswith(f"{folder}/"):
            process.kill()
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(10)
    shutil.rmtree(folder)


class Users:
    """Processes that use the server of one data directory, all as the same user. They end with the test."""

    def __init__(self, data_dir: Path, run_as: RunAs) -> None:
        self.data_dir, self._run_as = data_dir, run_as
        self._entered: list[UserProcess] = []

    def enter(self) -> UserProcess:
        self._entered.append(UserProcess(self.data_dir, self._run_as))
        return self._entered[-1]

    def end(self) -> None:
        for process in self._entered:
            process.kill()


def make_data_dir(folder: Path, run_as: RunAs) -> Path:
    data_dir = folder / "data"
    data_dir.mkdir()
    if run_as:
        os.chown(data_dir, run_as["user"], run_as["group"])
    return data_dir


@pytest.fixture(params=["as we are", "as an ordinary user"], scope="module")
def run_as(request: pytest.FixtureRequest) -> RunAs:
    return ordinary_user() if request.param == "as an ordinary user" else {}


@pytest.fixture
def first_users(run_as: RunAs, scratch: Path) -> Iterator[Users]:
    """Of `scratch/data`, where there is nothing yet."""
    users = Users(make_data_dir(scratch, run_as), run_as)
    yield users
    users.end()


@pytest.fixture(scope="module")
def made_data_dir(run_as: RunAs) -> Iterator[Path]:
    """With a cluster, for all tests in which one is there: making one takes longer than most tests."""
    with tempfile.TemporaryDirectory(prefix="mem-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        data_dir = make_data_dir(Path(folder), run_as)
        first = UserProcess(data_dir, run_as)
        first.use()
        first.leave()
        yield data_dir


@pytest.fixture
def users(run_as: RunAs, made_data_dir: Path) -> Iterator[Users]:
    """Of a cluster that has been made, and whose server does not run."""
    users = Users(made_data_dir, run_as)
    yield users
    users.end()
    cluster.stop(made_data_dir / "postgres")


def test_the_last_one_to_leave_stops_the_server(users: Users) -> None:
    first, second = users.enter(), users.enter()
    server = first.use()
    assert second.use() == server
    assert psutil.Process(server).net_connections("inet") == [], "it listens on the network"
    first.leave()
    assert second.use() == server
    second.leave()
    assert not psutil.pid_exists(server)


def test_processes_that_start_at_once_share_one_server(first_users: Users) -> None:
    crowd = [first_users.enter() for _ in range(4)]
    for process in crowd:
        process.ask()
    assert len({process.answer() for process in crowd}) == 1


def test_a_killed_server_is_started_again_at_the_next_use_with_its_data(users: Users) -> None:
    process = users.enter()
    process.ask("CREATE TABLE kept AS SELECT 42 AS answer")
    server = int(process.answer())
    kill(server)
    process.ask("SELECT 1 / (answer - 41) FROM kept")
    answer = process.answer()
    assert answer.isdigit(), answer
    assert int(answer) != server


def test_a_server_that_stops_politely_is_started_again(users: Users) -> None:
    """As after a plain `kill`: while anybody is connected it goes on, and refuses everybody else."""
    process, guest = users.enter(), users.enter()
    server = process.use()
    guest.ask("SELECT pg_sleep(1000)")
    the_backend_that_computes(server)
    psutil.Process(server).terminate()
    while not cluster.is_stopping(users.data_dir / "postgres"):
        time.sleep(0.01)
    assert process.use() != server


def test_a_server_that_recovers_from_a_crash_is_waited_for(users: Users) -> None:
    """A backend that was killed makes PostgreSQL begin anew, by itself; somebody new comes in the middle of it."""
    process = users.enter()
    server = process.use()
    lock_file = users.data_dir / "postgres" / "postmaster.pid"
    lines = lock_file.read_text().splitlines()
    assert lines[7].strip() == "ready"
    lock_file.write_text("\n".join([*lines[:7], "starting", ""]))
    late = users.enter()
    late.ask()
    while not any(opened.path.endswith("postgres.start") for opened in psutil.Process(late.process.pid).open_files()):
        time.sleep(0.01)
    lock_file.write_text("\n".join([*lines[:7], "ready   ", ""]))
    assert late.answer() == str(server)


def test_a_busy_orphan_of_a_killed_server_does_not_stop_the_next(users: Users) -> None:
    """PostgreSQL refuses to start beside a backend that still runs; one deep in a query notices nothing by itself."""
    process, busy = users.enter(), users.enter()
    server = process.use()
    busy.ask("SELECT count(*) FROM generate_series(1, 1000000000000)")
    backend = the_backend_that_computes(server)
    kill(server)
    assert process.use() != server
    assert not psutil.pid_exists(backend)


def the_backend_that_computes(server: int) -> int:
    while True:
        for child in psutil.Process(server).children():
            with contextlib.suppress(psutil.Error):  # short-lived ones come and go
                if "SELECT" in " ".join(child.cmdline()):
                    return child.pid
        time.sleep(0.01)


def test_a_killed_process_leaves_nobody_blocked(users: Users) -> None:
    killed, other = users.enter(), users.enter()
    server = killed.use()
    assert other.use() == server
    killed.kill()
    assert other.use() == server
    other.leave()
    assert not psutil.pid_exists(server)


def test_a_server_left_by_a_killed_process_is_found_and_then_stopped(users: Users) -> None:
    killed = users.enter()
    server = killed.use()
    killed.kill()
    assert psutil.pid_exists(server)
    found = users.enter()
    assert found.use() == server
    found.leave()
    assert not psutil.pid_exists(server)


def test_stale_lock_files_recover(users: Users) -> None:
    """As after a power cut: they name a process that is somebody else's now, or were half written."""
    process = users.enter()
    for content in ("{stranger}\n", "{stranger}", "", "\0\0garbage"):
        server = process.use()
        kill(server)
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            lock_file = users.data_dir / "postgres" / name
            rest = lock_file.read_text().split("\n", 1)[1] if content.endswith("\n") else ""
            lock_file.write_text(content.format(stranger=process.process.pid) + rest)
        assert process.use() != server, content


def test_an_interrupted_first_start_begins_again(first_users: Users, scratch: Path) -> None:
    unfinished = scratch / "data" / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    for path in [unfinished, unfinished / "PG_VERSION"]:
        os.chown(path, unfinished.parent.stat().st_uid, unfinished.parent.stat().st_gid)
    first_users.enter().use()
    assert not unfinished.exists()


@pytest.mark.parametrize("name", ["deep/" * 30 + "wide-" * 30, "a'quote $HOME `id`, a comma, and 名前"])
def test_any_path_will_do(first_users: Users, scratch: Path, name: str) -> None:
    data = (scratch / "data").rename(scratch / "moved")
    (data / name).mkdir(parents=True)
    (scratch / "data").symlink_to(data / name)
    if os.geteuid() == 0:
        for path in [data, *data.rglob("*")]:
            os.chown(path, data.stat().st_uid, data.stat().st_gid)
    process = first_users.enter()
    server = process.use()
    running = cluster.find_running(data / name / "postgres")
    assert running
    socket_dir = Path(running.socket_dir)
    assert socket_dir.stat().st_mode & 0o077 == 0, "other local users could connect as the database's superuser"
    process.leave()
    assert not psutil.pid_exists(server)
    assert socket_dir == data / name / "postgres" or not socket_dir.exists()


def test_a_failed_statement_is_not_in_the_log(users: Users) -> None:
    process = users.enter()
    process.ask("CREATE TABLE unique_words (word text PRIMARY KEY)")
    process.answer()
    running = cluster.find_running(users.data_dir / "postgres")
    assert running
    with (
        psycopg.connect(host=running.socket_dir, user="postgres", dbname="postgres") as connection,
        pytest.raises(psycopg.errors.UniqueViolation),
    ):
        connection.execute("INSERT INTO unique_words VALUES ('my card'), ('my card')")
    log = (users.data_dir / "postgres.log").read_text()
    assert "duplicate key" in log
    assert "my card" not in log


def test_a_folder_that_may_not_be_written_is_one_sentence(scratch: Path) -> None:
    run_as: RunAs = ordinary_user() if os.geteuid() == 0 else {}
    scratch.chmod(0o555)
    process = UserProcess(scratch / "data", run_as)
    process.ask()
    assert process.answer() == f"The embedded PostgreSQL cannot use {scratch / 'data'}: Permission denied."
    process.leave()


@pytest.fixture
def small_disk(scratch: Path) -> Iterator[Path]:
    folder = scratch / "small"
    folder.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=240m", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("mounting a small disk takes root")
    folder.chmod(0o755)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_one_sentence(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(100 * 1024**2))
    process = UserProcess(small_disk / "data")
    process.ask()
    said = f"The embedded PostgreSQL in {small_disk / 'data'} cannot be used: the disk is full: less than {{}} MB free."
    assert process.answer() == said.format(200)
    (small_disk / "ballast").unlink()
    server = process.use()
    process.leave()
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(bytes(free - 8 * 1024**2))
    late = UserProcess(small_disk / "data")
    late.ask()
    assert late.answer() == said.format(32)
    late.leave()
    assert not psutil.pid_exists(server)


def test_root_lets_others_walk_through_but_not_look_and_shares_no_socket_folder(scratch: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has to run the server as somebody else, and makes a folder of somebody else")
    private = scratch / "private"
    private.mkdir(mode=0o700)
    # So long a path that the socket is in a folder under /tmp.
    data_dir = private / ("x" * 120) / "data"
    process = UserProcess(data_dir)
    server = process.use()
    assert private.stat().st_mode & 0o777 == 0o701
    assert psutil.Process(server).uids().real != 0
    assert 0 not in psutil.Process(server).gids()
    running = cluster.find_running(data_dir / "postgres")
    assert running
    process.leave()

    # Somebody who guesses the name of the folder first must not become the server's doorkeeper.
    taken = Path(running.socket_dir)
    taken.mkdir(mode=0o700)
    nobody = pwd.getpwnam("nobody")
    os.chown(taken, nobody.pw_uid, nobody.pw_gid)
    late = UserProcess(data_dir)
    late.ask()
    assert "belongs to another user" in late.answer()
    late.leave()
    taken.rmdir()
