"""The migrated database that the tests' own are copied from: whole, made once, and gone when nobody needs it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memadmin.settings import CHECKOUT_DIR
from tests import template_database as templates


@pytest.fixture
def calls(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The databases that were migrated, which here are not; templates are apart from those of the suite."""
    migrated: list[str] = []
    monkeypatch.setattr(templates, "PREFIX", f"test_tried_{connection.settings_dict['NAME']}_")
    monkeypatch.setattr(templates, "migrate", migrated.append)
    yield migrated
    with templates.connect_to("postgres") as server:
        for name in templates.templates_on(server):
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def names() -> list[str]:
    with templates.connect_to("postgres") as server:
        return templates.templates_on(server)


@pytest.mark.django_db
def test_tests_have_every_migration() -> None:
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_it_depends_on_migrations_and_on_what_they_call() -> None:
    files = {file.relative_to(CHECKOUT_DIR).as_posix() for file in templates.files_behind_the_schema()}
    assert {"memadmin/accounts/roles.py", "memadmin/audit/migrations/__init__.py", "memadmin/audit/models.py"} <= files
    assert {"memadmin/accounts/audited_proxies.py", "memories_app/models/evidence.py"} <= files
    assert "memadmin/urls.py" not in files


def test_it_is_made_once_for_a_schema(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "fingerprint", lambda: "first")
    for _ in range(2):
        with templates.template_database() as name:
            assert names() == [name]
    assert calls == [f"{name}_unfinished"]


def test_those_of_other_schemas_go_unless_somebody_uses_them(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "fingerprint", iter(["first", "second", "third"]).__next__)
    with templates.template_database() as first:
        with templates.template_database() as second:
            assert set(names()) == {first, second}
        with templates.template_database() as third:
            assert set(names()) == {first, third}


def test_one_that_was_not_finished_is_made_anew(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise psycopg.OperationalError(name)

    monkeypatch.setattr(templates, "fingerprint", lambda: "first")
    with monkeypatch.context() as failing:
        failing.setattr(templates, "migrate", fail)
        with pytest.raises(psycopg.OperationalError), templates.template_database():
            pytest.fail("It is used although it was not finished.")
    with templates.template_database() as name:
        assert names() == [name]
