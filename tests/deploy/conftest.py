from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils.timezone import now
from pytest_django.fixtures import Settings

from memadmin.audit.models import AuditEvent
from memadmin.deploy.roles import Roles
from tests.agents import run_sql, value_of
from tests.audit.conftest import empty_log  # noqa: F401
from tests.deploy.connecting import AGENTS_TABLES, bring_into_force, keep_to_ourselves, our_roles, take_away


@pytest.fixture
def ours(db: None) -> Roles:
    """All roles in force, with tables of agents, until the end of the test's transaction."""
    names = our_roles()
    run_sql(AGENTS_TABLES)
    bring_into_force(names)
    return names


@pytest.fixture
def in_force(agent_tables: None) -> Iterator[Roles]:
    """The names of roles that a test brings into force for all connections."""
    keep_to_ourselves()
    names = our_roles()
    yield names
    take_away(names)


@pytest.fixture
def later(empty_log: None) -> Callable[[timedelta], None]:  # noqa: F811
    """Lets all events be older by so much; their times are the database's word, so the owner has to say it."""

    def make_older(by: timedelta) -> None:
        run_sql("ALTER TABLE audit_event DISABLE TRIGGER USER")
        try:
            AuditEvent.objects.update(at=now() - by)
        finally:
            run_sql("ALTER TABLE audit_event ENABLE TRIGGER USER")
            guard = value_of(
                "SELECT tgname FROM pg_trigger WHERE tgrelid = 'audit_event'::regclass AND tgname ~ 'guard'"
            )
            run_sql(f"ALTER TABLE audit_event ENABLE ALWAYS TRIGGER {guard}")

    return make_older


@pytest.fixture
def anchored(settings: Settings, tmp_path: Path) -> None:
    settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
