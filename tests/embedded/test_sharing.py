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
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import psutil
import psycopg
import pytest

from memadmin.embedded import cluster
from memadmin.embedded.cluster import RunAs
from tests.processes import kill

pytestmark = pytest.mark.slow

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


Enter = Callable[[], UserProcess]


@pytest.fixture(params=["as we are", "as an ordinary user"])
def enter_first(request: pytest.FixtureRequest, scratch: Path) -> Iterator[Enter]:
    """Starts another process that uses the server in `scratch/data`, where there is nothing yet."""
    run_as: RunAs = ordinary_user() if request.param == "as an ordinary user" else {}
    data_dir = scratch / "data"
    data_dir.mkdir()
    if run_as:
        os.chown(data_dir, run_as["user"], run_as["group"])
    entered: list[UserProcess] = []

    def enter_one() -> UserProcess:
        entered.append(UserProcess(data_dir, run_as))
        return entered[-1]

    yield enter_one
    for process in entered:
        process.kill()


@pytest.fixture(scope="module")
def made_clusters() -> Iterator[Path]:
    """A folder for clusters, by the user who made them: making one takes longer than most tests."""
    with tempfile.TemporaryDirectory(prefix="mem-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def enter(request: pytest.FixtureRequest, enter_first: Enter, scratch: Path, made_clusters: Path) -> Enter:
    """Starts another process that uses the server in `scratch/data`, where a cluster has been made."""
    cluster = scratch / "data" / "postgres"
    made = made_clusters / str(cluster.parent.stat().st_uid)
    if made.exists():
        subprocess.run(["cp", "-a", made, cluster], check=True)
    else:
        first = enter_first()
        first.use()
        first.leave()
        subprocess.run(["cp", "-a", cluster, made], check=True)
    return enter_first


def test_the_last_one_to_leave_stops_the_server(enter: Enter) -> None:
    first, second = enter(), enter()
    server = first.use()
    assert second.use() == server
    assert psutil.Process(server).net_connections("inet") == [], "it listens on the network"
    first.leave()
    assert second.use() == server
    second.leave()
    assert not psutil.pid_exists(server)


def test_processes_that_start_at_once_share_one_server(enter_first: Enter) -> None:
    crowd = [enter_first() for _ in range(4)]
    for process in crowd:
        process.ask()
    assert len({process.answer() for process in crowd}) == 1


def test_a_killed_server_is_started_again_at_the_next_use_with_its_data(enter: Enter) -> None:
    process = enter()
    process.ask("CREATE TABLE kept AS SELECT 42 AS answer")
    server = int(process.answer())
    kill(server)
    process.ask("SELECT 1 / (answer - 41) FROM kept")
    answer = process.answer()
    assert answer.isdigit(), answer
    assert int(answer) != server


def test_a_server_that_stops_politely_is_started_again(enter: Enter, scratch: Path) -> None:
    """As after a plain `kill`: while anybody is connected it goes on, and refuses everybody else."""
    process, guest = enter(), enter()
    server = process.use()
    guest.ask("SELECT pg_sleep(1000)")
    the_backend_that_computes(server)
    psutil.Process(server).terminate()
    while not cluster.is_stopping(scratch / "data" / "postgres"):
        time.sleep(0.01)
    assert process.use() != server


def test_a_server_that_recovers_from_a_crash_is_waited_for(enter: Enter, scratch: Path) -> None:
    """A backend that was killed makes PostgreSQL begin anew, by itself; somebody new comes in the middle of it."""
    process = enter()
    server = process.use()
    lock_file = scratch / "data" / "postgres" / "postmaster.pid"
    lines = lock_file.read_text().splitlines()
    assert lines[7].strip() == "ready"
    lock_file.write_text("\n".join([*lines[:7], "starting", ""]))
    late = enter()
    late.ask()
    while not any(opened.path.endswith("postgres.start") for opened in psutil.Process(late.process.pid).open_files()):
        time.sleep(0.01)
    lock_file.write_text("\n".join([*lines[:7], "ready   ", ""]))
    assert late.answer() == str(server)


def test_a_busy_orphan_of_a_killed_server_does_not_stop_the_next(enter: Enter) -> None:
    """PostgreSQL refuses to start beside a backend that still runs; one deep in a query notices nothing by itself."""
    process, busy = enter(), enter()
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


def test_a_killed_process_leaves_nobody_blocked(enter: Enter) -> None:
    killed, other = enter(), enter()
    server = killed.use()
    assert other.use() == server
    killed.kill()
    assert other.use() == server
    other.leave()
    assert not psutil.pid_exists(server)


def test_a_server_left_by_a_killed_process_is_found_and_then_stopped(enter: Enter) -> None:
    killed = enter()
    server = killed.use()
    killed.kill()
    assert psutil.pid_exists(server)
    found = enter()
    assert found.use() == server
    found.leave()
    assert not psutil.pid_exists(server)


def test_stale_lock_files_recover(enter: Enter, scratch: Path) -> None:
    """As after a power cut: they name a process that is somebody else's now, or were half written."""
    process = enter()
    for content in ("{stranger}\n", "{stranger}", "", "\0\0garbage"):
        server = process.use()
        kill(server)
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            lock_file = scratch / "data" / "postgres" / name
            rest = lock_file.read_text().split("\n", 1)[1] if content.endswith("\n") else ""
            lock_file.write_text(content.format(stranger=process.process.pid) + rest)
        assert process.use() != server, content


def test_an_interrupted_first_start_begins_again(enter_first: Enter, scratch: Path) -> None:
    unfinished = scratch / "data" / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    for path in [unfinished, unfinished / "PG_VERSION"]:
        os.chown(path, unfinished.parent.stat().st_uid, unfinished.parent.stat().st_gid)
    enter_first().use()
    assert not unfinished.exists()


@pytest.mark.parametrize("name", ["deep/" * 30, "wide-" * 30, "a'quote $HOME `id`, and a comma", "Ünïcode 名前"])
def test_any_path_will_do(enter_first: Enter, scratch: Path, name: str) -> None:
    data = (scratch / "data").rename(scratch / "moved")
    (data / name).mkdir(parents=True)
    (scratch / "data").symlink_to(data / name)
    if os.geteuid() == 0:
        for path in [data, *data.rglob("*")]:
            os.chown(path, data.stat().st_uid, data.stat().st_gid)
    process = enter_first()
    server = process.use()
    running = cluster.find_running(data / name / "postgres")
    assert running
    socket_dir = Path(running.socket_dir)
    assert socket_dir.stat().st_mode & 0o077 == 0, "other local users could connect as the database's superuser"
    process.leave()
    assert not psutil.pid_exists(server)
    assert socket_dir == data / name / "postgres" or not socket_dir.exists()


def test_a_failed_statement_is_not_in_the_log(enter: Enter, scratch: Path) -> None:
    process = enter()
    process.ask("CREATE TABLE unique_words (word text PRIMARY KEY)")
    process.answer()
    running = cluster.find_running(scratch / "data" / "postgres")
    assert running
    with (
        psycopg.connect(host=running.socket_dir, user="postgres", dbname="postgres") as connection,
        pytest.raises(psycopg.errors.UniqueViolation),
    ):
        connection.execute("INSERT INTO unique_words VALUES ('my card'), ('my card')")
    log = (scratch / "data" / "postgres.log").read_text()
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


def test_root_lets_others_walk_through_but_not_look(scratch: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has to run the server as somebody else")
    private = scratch / "private"
    private.mkdir(mode=0o700)
    process = UserProcess(private / "data")
    server = process.use()
    assert private.stat().st_mode & 0o777 == 0o701
    assert psutil.Process(server).uids().real != 0
    assert 0 not in psutil.Process(server).gids()
    process.leave()


def test_a_socket_folder_of_somebody_else_is_refused(scratch: Path) -> None:
    """Somebody who guesses the name of the folder under /tmp first must not become the server's doorkeeper."""
    long = scratch / ("x" * 120) / "data"
    if os.geteuid() != 0:
        pytest.skip("making a folder of somebody else takes root")
    process = UserProcess(long)
    process.use()
    running = cluster.find_running(long / "postgres")
    assert running
    process.leave()
    taken = Path(running.socket_dir)
    taken.mkdir(mode=0o700)
    nobody = pwd.getpwnam("nobody")
    os.chown(taken, nobody.pw_uid, nobody.pw_gid)
    late = UserProcess(long)
    late.ask()
    assert "belongs to another user" in late.answer()
    late.leave()
    taken.rmdir()
