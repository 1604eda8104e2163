"""A process under the wrong role, or before `db_roles --apply`, says so before a page or a job fails."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError
from django.test import Client
from psycopg.errors import InsufficientPrivilege

from memadmin import __main__ as program
from memadmin.deploy.roles import Roles
from memadmin.web.health import reasons_not_to_serve
from tests.agents import run_sql
from tests.deploy.connecting import connected_as


def test_each_role_is_enough_for_its_own_process(ours: Roles) -> None:
    for process in ("web", "worker"):
        for kind in (process, "migrator"):
            with connected_as(ours[kind]):
                assert reasons_not_to_serve(process) == []


def test_a_web_server_under_another_role_is_not_ready(ours: Roles, client: Client) -> None:
    with connected_as(ours["worker"]):
        answer = client.get("/readyz")
    assert answer.status_code == 503
    [problem] = answer.json()["problems"]
    assert "lacks rights" in problem
    assert "let DATABASE_URL name the role for a web server" in problem
    assert ours["worker"] not in problem, "Everybody may read it."


def test_new_tables_are_closed_until_the_rights_are_applied(ours: Roles) -> None:
    run_sql(f'REVOKE ALL ON runs_run FROM "{ours["web"]}", "{ours["worker"]}"')
    for process in ("web", "worker"):
        with connected_as(ours[process]):
            [reason] = reasons_not_to_serve(process)
            assert "on 1 of memadmin's tables: run `memadmin db_roles --apply`" in reason


def test_a_worker_under_another_role_does_not_start(ours: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessions_app.management.commands.worker.work_until_asked_to_stop", pytest.fail)
    with connected_as(ours["web"]), pytest.raises(CommandError, match="MEMADMIN_WORKER_DATABASE_URL"):
        call_command("worker")


def test_a_command_under_another_role_ends_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(arguments: list[str]) -> None:
        problem = ProgrammingError("permission denied for table auth_user\nLINE 1: …")
        raise problem from InsufficientPrivilege()

    monkeypatch.setattr("django.core.management.execute_from_command_line", refuse)
    monkeypatch.setattr("sys.argv", ["memadmin", "hold", "list"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert str(ended.value).startswith("memadmin: permission denied for table auth_user, as the role in DATABASE_URL.")
    monkeypatch.setattr("sys.argv", ["memadmin", "hold", "list", "--traceback"])
    with pytest.raises(ProgrammingError):
        program.main()
