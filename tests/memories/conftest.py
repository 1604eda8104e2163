from __future__ import annotations

from collections.abc import Iterator

import pytest

from memadmin.deploy.roles import Roles
from tests.agents import run_sql
from tests.deploy.connecting import AGENTS_TABLES, bring_into_force, connected_as, our_roles


@pytest.fixture
def agents_role(db: None) -> Roles:
    """All roles of the database in force, until the end of the test's transaction."""
    names = our_roles()
    run_sql(AGENTS_TABLES)
    bring_into_force(names)
    return names


@pytest.fixture
def as_agent(agents_role: Roles) -> Iterator[None]:
    """The test's connection is an agent's. What is to be there was made by fixtures named before this one."""
    with connected_as(agents_role["agents"]):
        yield
