from __future__ import annotations

from collections.abc import Iterator

import pytest

from memadmin.deploy.roles import Roles
from tests.agents import run_sql
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
