from __future__ import annotations

import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from memadmin.deploy.roles import Roles
from sessions_app.models import SessionStore
from tests import kept_store
from tests.stores.conftest import redis_server, shared_redis  # noqa: F401


@pytest.fixture
def main_store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


@pytest.fixture
def dsn(main_store: SessionStore, kept_in_force: Roles) -> str:
    """Where agents reach the console's database, under the role that they have in production."""
    kept_store.kept_main_store.bring_into_force(kept_in_force)
    return address(kept_in_force["agents"])


def address(role: str = "") -> str:
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password", "dbname") if given.get(name)}
    return make_conninfo(**{**reach, **({"user": role} if role else {})})
