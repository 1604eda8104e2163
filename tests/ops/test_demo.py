"""`memadmin demo` as a newcomer meets it: a real program, started, used, interrupted and started again.

A start takes long, so that the tests hand running demos on to each other. None needs another one to have run before.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import psutil
import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from memadmin.demo import preparing, running
from memadmin.deploy.roles import Roles
from memadmin.embedded.server import server_for
from tests.ops.demos import PASSWORD, Demo, sign_in
from tests.people import person
from tests.ports import free_port
from tests.processes import called, kill, still_running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: the first start makes a database, and the others find it."""
    return tmp_path_factory.mktemp("demo") / "data"


class Demos:
    """The demos of one data directory, each with a port of its own."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.greeting_of: dict[Demo, str] = {}

    def start(self) -> Demo:
        demo = Demo(self.data_dir, free_port())
        self.greeting_of[demo] = demo.wait_until_it_greets()
        return demo

    def running(self) -> list[Demo]:
        return [demo for demo in self.greeting_of if demo.process.poll() is None]

    def any(self) -> Demo:
        """One that runs, started if there is none."""
        return next(iter(self.running()), None) or self.start()


@pytest.fixture(scope="module")
def demos(data_dir: Path) -> Iterator[Demos]:
    demos = Demos(data_dir)
    yield demos
    for demo in demos.running():
        demo.stop()


@pytest.fixture
def demo(demos: Demos) -> Demo:
    """A running one. Tests may end it."""
    return demos.any()


def test_people_sign_in(demo: Demo, demos: Demos) -> None:
    said = demos.greeting_of[demo]
    assert demo.address in said
    assert PASSWORD in said
    for role in ("support", "reviewer", "compliance", "auditor", "administrator"):
        assert f"  {role}\n" in said
        sign_in(demo, role)


def test_a_killed_database_comes_back_with_the_next_request(demo: Demo, data_dir: Path) -> None:
    sign_in(demo, "support")
    kill(server_for(data_dir).ensure_running().pid)
    server_for(data_dir).leave()
    sign_in(demo, "support")
    assert demo.process.poll() is None


def is_web_server(program: psutil.Process) -> bool:
    try:
        return "granian" in called(program) and bool(program.children())
    except psutil.NoSuchProcess:
        # One of those that run for a moment.
        return False


def test_a_killed_process_of_the_web_server_is_replaced(demo: Demo) -> None:
    (server,) = filter(is_web_server, demo.programs()[1:])
    (serving,) = server.children()
    serving.kill()
    psutil.wait_procs([serving], 10)
    running.wait_until_ready(int(demo.address.rpartition(":")[2]), [])
    assert demo.process.poll() is None


def test_everything_ends_with_ctrl_c_and_a_second_start_duplicates_nothing(demos: Demos, data_dir: Path) -> None:
    """The second start meets the database of an older demo, which had no roles."""
    demos.any()
    before = rows(data_dir)
    assert before["auth_user"] == 5
    # On record are those in files as well.
    assert 5 < before["agent_sessions"] < before["sessions_app_sessionrecord"]

    programs = [psutil.Process(server_for(data_dir).ensure_running().pid)]
    server_for(data_dir).leave()
    for demo in demos.running():
        started = demo.programs()
        assert len(started) >= 3
        programs += started
        assert demo.stop(signal.SIGINT) == 0
        # It lost its database and a process of the web server, and said so; its end is no error.
        assert "Traceback" not in demo.complaint()
    assert still_running(programs) == []

    with as_administrator(data_dir) as connection:
        for name in Roles().names.values():
            connection.execute(f"REASSIGN OWNED BY {name} TO postgres; DROP OWNED BY {name}; DROP ROLE {name}")
        connection.execute("UPDATE sessions_app_sessionstore SET agent_roles = '{}'")

    second = demos.start()
    assert "conversations" not in demos.greeting_of[second]
    assert rows(data_dir) == before
    check_roles(second, data_dir)


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
        deadline = time.monotonic() + 90
        while connected(connection) != {"memadmin_web", "memadmin_worker", "memadmin_agents"}:
            assert time.monotonic() < deadline, connected(connection)
            time.sleep(0.2)
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


def test_a_demo_that_was_killed_is_in_nobodys_way(demos: Demos) -> None:
    """It cannot stop what it started any more; the next one does, and leaves alone what belongs to a third."""
    third, killed = demos.any(), demos.start()
    left = [process for process in killed.programs()[1:] if called(process) and "postgres" not in called(process)[0]]
    killed.process.kill()
    killed.process.wait()
    left = still_running(left)
    assert {"granian", "worker"} <= {word for process in left for word in called(process)}
    late = demos.start()
    assert "Stopped the remaining processes" in demos.greeting_of[late]
    assert still_running(left) == []
    assert killed.complaint() == "", "it started, and had nothing to complain of"
    assert third.process.poll() is None
    sign_in(third, "support")


@pytest.mark.parametrize("name", ["worker", "granian"])
def test_a_program_that_dies_stops_the_demo(demo: Demo, name: str) -> None:
    # The database stays for another demo, if there is one.
    programs = [each for each in demo.programs() if "postgres" not in called(each)[0]]
    next(program for program in programs[1:] if name in called(program)).kill()
    assert demo.process.wait(60) == 1
    assert "stopped unexpectedly" in demo.complaint()
    assert still_running(programs) == []


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """What the command sets, in the process of the tests, is put back."""
    asked_to_end = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(each) for each in asked_to_end]
    yield
    for each, handler in zip(asked_to_end, before, strict=True):
        signal.signal(each, handler)


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
    assert preparing.make_logins("new") == [role.name for role in Group.objects.order_by("name")]
    assert all(user.check_password("new") for user in User.objects.all())


@pytest.mark.django_db
def test_a_full_disk_is_one_sentence(usual_signals: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a disk that only says that it is full; tests/embedded fills a real one."""

    def fail(password: str) -> None:
        raise OSError("could not extend file")

    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0}))
    monkeypatch.setattr(preparing, "prepare", fail)
    with pytest.raises(CommandError, match=r"^The disk that holds .* is full\.$"):
        call_command("demo")
