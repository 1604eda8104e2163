"""`memadmin demo` as a newcomer meets it: installed from the wheel, away from the checkout, started, used, killed,
started again and interrupted; then what the command refuses, in this process.

A start takes long, so that the tests hand running demos on to each other. None needs another one to have run before.
"""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path, PurePosixPath

import psutil
import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from memadmin.demo import agents, preparing, running
from memadmin.deploy.roles import Roles
from memadmin.embedded.server import server_for
from memadmin.web import serving
from tests.ops.demos import PASSWORD, Demo, sign_in
from tests.ops.environments import built_wheel, linked_environment
from tests.people import person
from tests.ports import free_port
from tests.processes import called, kill, still_running
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CARRIED = {
    **{package: PurePosixPath(package) for package in ("memadmin", "sessions_app", "memories_app")},
    **{assets: PurePosixPath("memadmin/assets", assets) for assets in ("templates", "static")},
}
"""Where in the wheel the files of a folder of the checkout are."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`memadmin`, installed by pip in a virtual environment with what requirements.txt names and nothing else: no
    tools, no extras, no checkout.

    The packages are links to those that are installed here, for a test downloads nothing.
    """
    folder = tmp_path_factory.mktemp("clean")
    pip = linked_environment(folder)
    # Without an index pip refuses the wheel if it needs anything that requirements.txt does not name.
    subprocess.run([*pip, "install", "--no-index", f"{wheel}[console]"], check=True, cwd=folder)
    subprocess.run([*pip, "check"], check=True, cwd=folder)
    return folder / "bin" / "memadmin"


@pytest.mark.release
def test_every_file_is_in_the_wheel(wheel: Path) -> None:
    carried = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        (place / file.relative_to(settings.CHECKOUT_DIR / folder)).as_posix()
        for folder, place in CARRIED.items()
        for file in (settings.CHECKOUT_DIR / folder).rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }
    assert len(wanted) > 300
    assert wanted - carried == set()


class Demos:
    """The demos of one user, each with a port of its own."""

    def __init__(self, installed: Path, home: Path) -> None:
        self.installed, self.home = installed, home
        self.data_dir = home / "data-of-the-user" / "memadmin"
        """Where the demo makes it, which was told of none."""
        self.greeting_of: dict[Demo, str] = {}

    def start(self) -> Demo:
        demo = Demo(
            Path(),
            free_port(),
            command=[str(self.installed)],
            folder=self.home,
            HOME=str(self.home),
            XDG_DATA_HOME=str(self.data_dir.parent),
            MEMADMIN_DATA_DIR="",
        )
        self.greeting_of[demo] = demo.wait_until_it_greets()
        return demo

    def running(self) -> list[Demo]:
        return [demo for demo in self.greeting_of if demo.process.poll() is None]

    def any(self) -> Demo:
        """One that runs, started if there is none."""
        return next(iter(self.running()), None) or self.start()


@pytest.fixture(scope="module")
def demos(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demos]:
    """The first start makes a database, and the others find it."""
    demos = Demos(installed, tmp_path_factory.mktemp("home"))
    yield demos
    for demo in demos.running():
        demo.stop()


@pytest.fixture
def demo(demos: Demos) -> Demo:
    """A running one. Tests may end it."""
    return demos.any()


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """What the command sets, in the process of the tests, is put back."""
    asked_to_end = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(each) for each in asked_to_end]
    yield
    for each, handler in zip(asked_to_end, before, strict=True):
        signal.signal(each, handler)


@pytest.mark.release
def test_people_sign_in(demo: Demo, demos: Demos) -> None:
    said = demos.greeting_of[demo]
    assert demo.address in said
    assert str(demos.data_dir) in said
    assert PASSWORD in said
    for role in ("support", "reviewer", "compliance", "auditor", "administrator"):
        assert f"  {role}\n" in said
        sign_in(demo, role)


@pytest.mark.release
def test_installed_with_pip_it_has_its_templates_and_static_files(demo: Demo) -> None:
    browser = sign_in(demo, "support")

    def read(address: str) -> str:
        return str(browser.open(demo.address + address).read().decode())

    session = re.search(r"/sessions/[0-9a-f-]{36}/", read("/sessions/"))
    assert session
    timeline = read(session[0])
    assert 'class="tl-item' in timeline
    vendored = {
        *re.findall(r'(?:href|src)="(/static/[^"#]+)', timeline),
        *re.findall(r'href="(/static/[^"]+\.svg)#', timeline),
    }
    assert {PurePosixPath(each).suffix for each in vendored} == {".css", ".js", ".svg"}
    for each in vendored:
        assert read(each)


@pytest.mark.release
def test_a_killed_demo_is_in_nobodys_way_and_a_second_start_duplicates_nothing(
    demos: Demos, usual_signals: None
) -> None:
    """A killed demo cannot stop what it started any more. The next one does, and leaves alone what a third started.

    The second start meets the database of an older demo, which had no roles.
    """
    killed = demos.any()
    before = rows(demos.data_dir)
    assert before["auth_user"] == 6
    # On record are those in files as well.
    assert 5 < before["agent_sessions"] < before["sessions_app_sessionrecord"]
    check_roles(killed, demos.data_dir)

    left = [process for process in killed.programs()[1:] if called(process) and "postgres" not in called(process)[0]]
    killed.process.kill()
    killed.process.wait()
    left = still_running(left)
    assert {"granian", "worker"} <= {word for process in left for word in called(process)}
    # This process stands for a third demo.
    with running.programs(worker=["sleep", "1000"]) as (third,):
        # Suspended, they are in nobody's way while the roles go under which they work.
        for process in left:
            process.suspend()
        forget_roles(demos.data_dir)
        late = demos.start()
        assert "Stopped the remaining processes" in demos.greeting_of[late]
        assert still_running(left) == []
        assert third.process.poll() is None
    complaint = killed.complaint()
    assert "ERROR" not in complaint
    assert "Traceback" not in complaint

    assert "conversations" not in demos.greeting_of[late]
    after = rows(demos.data_dir)
    # The worker erases one customer, whose session goes, within the first seconds.
    assert 0 <= before.pop("agent_sessions") - after.pop("agent_sessions") <= 1
    assert after == before
    check_roles(late, demos.data_dir)


def forget_roles(data_dir: Path) -> None:
    with as_administrator(data_dir) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        while connected(connection):
            time.sleep(0.01)
        for name in Roles().names.values():
            connection.execute(f"REASSIGN OWNED BY {name} TO postgres; DROP OWNED BY {name}; DROP ROLE {name}")
        connection.execute("UPDATE sessions_app_sessionstore SET agent_roles = '{}'")


def rows(data_dir: Path) -> dict[str, int]:
    """How many rows the tables hold that a second start could fill again; the agent that talks on adds to no other."""
    tables = [
        *("auth_user", "auth_user_groups", "agent_sessions"),
        *("sessions_app_sessionstore", "sessions_app_sessionrecord", "sessions_app_sessionidpattern"),
    ]
    with as_administrator(data_dir) as connection:
        counted = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables)
        counts: dict[str, int] = dict(connection.execute(counted).fetchall())
    return counts


def check_roles(demo: Demo, data_dir: Path) -> None:
    """Each part of the demo works under a database role of its own."""
    sign_in(demo, "support")
    with as_administrator(data_dir) as connection:
        everybody = {"memadmin_web", "memadmin_worker", "memadmin_agents"}
        wait_until(lambda: connected(connection) == everybody, "each part has its role")
        signed_in = connection.execute(
            "SELECT role.label FROM audit_event JOIN audit_actor AS role ON role.ref = role_ref"
            " WHERE type = 'person.signed_in' ORDER BY number DESC LIMIT 1"
        ).fetchone()
        assert signed_in == ("memadmin_web",)


@contextmanager
def as_administrator(data_dir: Path) -> Iterator[psycopg.Connection]:
    server = server_for(data_dir)
    host = server.ensure_running().socket_dir
    with psycopg.connect(host=host, user="postgres", dbname="memadmin", autocommit=True) as connection:
        yield connection
    server.leave()


def connected(connection: psycopg.Connection) -> set[str]:
    """Under which roles, beside us."""
    others = "SELECT usename FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return {str(name) for (name,) in connection.execute(others).fetchall()}


@pytest.mark.release
def test_a_killed_database_comes_back_with_the_next_request(demo: Demo, demos: Demos) -> None:
    sign_in(demo, "support")
    kill(server_for(demos.data_dir).ensure_running().pid)
    server_for(demos.data_dir).leave()
    sign_in(demo, "support")
    assert demo.process.poll() is None


def is_web_server(program: psutil.Process) -> bool:
    try:
        return "granian" in called(program) and bool(program.children())
    except psutil.NoSuchProcess:
        # One of those that run for a moment.
        return False


@pytest.mark.release
def test_a_killed_process_of_the_web_server_is_replaced(demo: Demo) -> None:
    (server,) = filter(is_web_server, demo.programs()[1:])
    (serving,) = server.children()
    serving.kill()
    psutil.wait_procs([serving], 10)
    running.wait_until_ready(int(demo.address.rpartition(":")[2]), [])
    assert demo.process.poll() is None


@pytest.mark.release
def test_everything_ends_with_ctrl_c(demos: Demos) -> None:
    demos.any()
    programs = [psutil.Process(server_for(demos.data_dir).ensure_running().pid)]
    server_for(demos.data_dir).leave()
    for demo in demos.running():
        started = demo.programs()
        assert len(started) >= 3
        programs += started
        assert demo.stop(signal.SIGINT) == 0
        # It lost its database and a process of the web server, and said so; its end is no error.
        assert "Traceback" not in demo.complaint()
    assert still_running(programs) == []


# --- the command in this process --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["worker", "web server"])
def test_a_program_that_dies_stops_the_demo(usual_signals: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With programs that do nothing, each with a child."""
    runs = ["sh", "-c", "sleep 1000 & wait"]
    started: list[psutil.Process] = []

    def kill_one(port: int, programs: Sequence[running.Program]) -> None:
        for program in programs:
            process = psutil.Process(program.process.pid)
            while not process.children():
                time.sleep(0.01)
            started.extend([process, *process.children()])
        next(program for program in programs if program.name == name).process.kill()

    async def talk(**_: object) -> None:
        await asyncio.Event().wait()

    for variable in ("MEMADMIN_SECOND_FACTOR", "MEMADMIN_PURPOSE", "MEMADMIN_IDLE_MINUTES"):
        monkeypatch.setenv(variable, "put back afterwards")
    monkeypatch.setattr(settings, "PORT", free_port())
    monkeypatch.setattr(preparing, "wait_for_turn", lambda: None)
    monkeypatch.setattr(preparing, "prepare", lambda password, step: [])
    monkeypatch.setattr(preparing, "tell_stories", lambda step: 0)
    monkeypatch.setattr(running, "worker_command", lambda: runs)
    monkeypatch.setattr(serving, "web_command", lambda port: runs)
    monkeypatch.setattr(running, "wait_until_ready", kill_one)
    monkeypatch.setattr(agents, "chat_on", talk)
    with pytest.raises(CommandError, match=f"The {name} stopped unexpectedly with exit code -9"):
        call_command("demo", stdout=StringIO())
    assert len(started) == 4
    assert still_running(started) == []


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_are_as_ctrl_c(
    usual_signals: None, monkeypatch: pytest.MonkeyPatch, asked: signal.Signals
) -> None:
    monkeypatch.setattr(running, "refuse_a_taken_port", lambda port: signal.raise_signal(asked))
    said = StringIO()
    call_command("demo", stdout=said)
    assert said.getvalue() == "\nStopped.\n"


def test_a_taken_port_is_one_sentence(usual_signals: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        monkeypatch.setattr(settings, "PORT", somebody.getsockname()[1])
        with pytest.raises(CommandError) as refused:
            call_command("demo")
    assert str(refused.value) == (
        f"Port {settings.PORT} cannot be used (Address already in use)."
        " Free it, or choose another one with MEMADMIN_PORT."
    )


def test_a_database_of_others_gets_no_well_known_password(usual_signals: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    monkeypatch.setattr(settings, "DEMO_PASSWORD", "")
    with pytest.raises(CommandError, match="MEMADMIN_DEMO_PASSWORD"):
        call_command("demo")


@pytest.mark.django_db
def test_a_person_of_that_name_keeps_their_password() -> None:
    person("support")
    with pytest.raises(preparing.NameTaken, match="A user named support already exists"):
        preparing.make_logins(PASSWORD)
    assert User.objects.get(username="support").check_password("support")


@pytest.mark.django_db
def test_a_new_password_is_everybodys() -> None:
    preparing.make_logins("old")
    assert preparing.make_logins("new") == sorted([*Group.objects.values_list("name", flat=True), "compliance-2"])
    assert all(user.check_password("new") for user in User.objects.all())


@pytest.mark.django_db
def test_a_full_disk_is_one_sentence(usual_signals: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a disk that only says that it is full; tests/embedded fills a real one."""

    def fail(password: str, step: preparing.Step) -> None:
        raise OSError("could not extend file")

    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0}))
    monkeypatch.setattr(preparing, "prepare", fail)
    with pytest.raises(CommandError, match=r"^The disk that holds .* is full\.$"):
        call_command("demo")
