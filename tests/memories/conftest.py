from __future__ import annotations

from collections.abc import Iterator

import pytest

from memadmin.deploy.roles import Roles
from tests.agents import run_sql
from tests.deploy.connecting import AGENTS_TABLES, connected_as


@pytest.fixture
def new_vector_index(db: None) -> None:
    """Vectors that former tests wrote and undid stay in the index until it is vacuumed, and a search may find no other
    than these.
    """
    run_sql("REINDEX INDEX memory_shared_vectors")


@pytest.fixture
def agents_role(db: None, kept_in_force: Roles) -> Roles:
    """All roles of the database in force, with tables of agents until the end of the test's transaction."""
    run_sql(AGENTS_TABLES)
    return kept_in_force


@pytest.fixture
def as_agent(agents_role: Roles) -> Iterator[None]:
    """The test's connection is an agent's. What is to be there was made by fixtures named before this one."""
    with connected_as(agents_role["agents"]):
        yield
