"""`memadmin demo` as a newcomer meets it: a real program, started, used, interrupted and started again."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
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


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def demo(data_dir: Path, port: int) -> Iterator[Demo]:
    demo = Demo(data_dir, port)
    yield demo
    if demo.process.poll() is None:
        demo.stop()


def test_people_sign_in_and_everything_ends_with_ctrl_c(demo: Demo, data_dir: Path) -> None:
    said = demo.wait_until_it_greets()
    assert demo.address in said
    assert PASSWORD in said
    for role in ("support", "reviewer", "compliance", "auditor", "administrator"):
        assert f"  {role}\n" in said
        sign_in(demo, role)
    programs = [*demo.programs(), psutil.Process(server_for(data_dir).ensure_running().pid)]
    server_for(data_dir).leave()
    assert len(programs) >= 4
    assert demo.stop(signal.SIGINT) == 0
    assert still_running(programs) == []


def test_a_second_start_duplicates_nothing(data_dir: Path, port: int) -> None:
    first = Demo(data_dir, port)
    first.wait_until_it_greets()
    before = rows(data_dir)
    assert first.stop() == 0
    second = Demo(data_dir, port)
    assert "conversations" not in second.wait_until_it_greets()
    after = rows(data_dir)
    assert second.stop(signal.SIGTERM) == 0
    assert second.complaint() == ""
    assert after == before
    assert before["auth_user"] == 5
    # On record are those in files as well.
    assert 5 < before["agent_sessions"] < before["sessions_app_sessionrecord"]


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


def test_each_part_works_under_a_database_role_of_its_own(data_dir: Path, port: int) -> None:
    """Also on the database of an older demo, which had no roles."""
    first = Demo(data_dir, port)
    first.wait_until_it_greets()
    assert first.stop() == 0
    with as_administrator(data_dir) as connection:
        for name in Roles().names.values():
            connection.execute(f"REASSIGN OWNED BY {name} TO postgres; DROP OWNED BY {name}; DROP ROLE {name}")
        connection.execute("UPDATE sessions_app_sessionstore SET agent_roles = '{}'")
    second = Demo(data_dir, port)
    second.wait_until_it_greets()
    sign_in(second, "support")
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
    assert second.stop() == 0
    assert second.complaint() == ""


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


def test_a_killed_database_comes_back_with_the_next_request(demo: Demo, data_dir: Path) -> None:
    demo.wait_until_it_greets()
    sign_in(demo, "support")
    kill(server_for(data_dir).ensure_running().pid)
    sign_in(demo, "support")
    assert demo.process.poll() is None
    server_for(data_dir).leave()


@pytest.mark.parametrize("name", ["worker", "granian"])
def test_a_program_that_dies_stops_the_demo(demo: Demo, name: str) -> None:
    demo.wait_until_it_greets()
    programs = demo.programs()
    next(program for program in programs[1:] if name in called(program)).kill()
    assert demo.process.wait(60) == 1
    assert "stopped unexpectedly" in demo.complaint()
    assert still_running(programs) == []


def test_a_demo_that_was_killed_is_in_nobodys_way(data_dir: Path, port: int) -> None:
    """It cannot stop what it started any more; the next one does, and leaves alone what belongs to a third."""
    killed, third = Demo(data_dir, port), Demo(data_dir, free_port())
    killed.wait_until_it_greets()
    third.wait_until_it_greets()
    left = [process for process in killed.programs()[1:] if called(process) and "postgres" not in called(process)[0]]
    killed.process.kill()
    killed.process.wait()
    left = still_running(left)
    assert {"granian", "worker"} <= {word for process in left for word in called(process)}
    late = Demo(data_dir, port)
    assert "Stopped the remaining processes" in late.wait_until_it_greets()
    assert still_running(left) == []
    assert late.stop() == 0
    assert third.process.poll() is None
    assert third.stop() == 0


def is_web_server(program: psutil.Process) -> bool:
    try:
        return "granian" in called(program) and bool(program.children())
    except psutil.NoSuchProcess:
        # One of those that run for a moment.
        return False


def test_a_killed_process_of_the_web_server_is_replaced(demo: Demo) -> None:
    demo.wait_until_it_greets()
    (server,) = filter(is_web_server, demo.programs()[1:])
    (serving,) = server.children()
    serving.kill()
    psutil.wait_procs([serving], 10)
    running.wait_until_ready(int(demo.address.rpartition(":")[2]), [])
    assert demo.process.poll() is None


def test_a_taken_port_is_one_sentence(data_dir: Path, port: int) -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", port))
        somebody.listen()
        demo = Demo(data_dir, port)
        assert demo.process.wait(60) == 1
    assert demo.complaint() == (
        f"CommandError: Port {port} cannot be used (Address already in use)."
        " Free it, or choose another one with MEMADMIN_PORT.\n"
    )


def test_a_database_of_others_gets_no_well_known_password(data_dir: Path, port: int) -> None:
    demo = Demo(data_dir, port, DATABASE_URL="postgres://127.0.0.1:1/agents", MEMADMIN_DEMO_PASSWORD="")
    assert demo.process.wait(60) == 1
    assert "MEMADMIN_DEMO_PASSWORD" in demo.complaint()


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
def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a disk that only says that it is full; tests/embedded fills a real one."""

    def fail(password: str) -> None:
        raise OSError("could not extend file")

    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0}))
    monkeypatch.setattr(preparing, "prepare", fail)
    with pytest.raises(CommandError, match=r"^The disk that holds .* is full\.$"):
        call_command("demo")
