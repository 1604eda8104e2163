"""What older versions of the SDK write, by themselves: read, changed and erased as what the newest one writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability
from sessions_app.stores.kinds import branching
from tests.stores.conftest import redis_server, shared_redis
from tests.stores.old_layouts import rows_of
from tests.stores.servers import RedisServer

__all__ = ["redis_server", "shared_redis"]

pytestmark = [pytest.mark.django_db, pytest.mark.release]

FOLDER = Path(sys.prefix) / "older-sdks"
"""A folder for each version; tools/install-older-sdks.sh."""

VERSIONS = re.findall(
    r"^openai-agents==([\d.]+)", (settings.CHECKOUT_DIR / "requirements-older-sdks.txt").read_text(), re.M
)

KINDS = {"sqlite", "async", "advanced_sqlite", "remote_sql", "redis"}
"""Sessions whose places the tests have; those on MongoDB, Dapr and at OpenAI need stand-ins in the agents' process."""

KINDS_OF = {"0.2.11": {"sqlite", "remote_sql"}}

WRITES = """
import asyncio, json, sys
import agents.extensions.memory as memory
from agents import SQLiteSession

folder, address = sys.argv[1:]
MAKES = {
    "sqlite": lambda name: SQLiteSession(name, f"{folder}/sqlite"),
    "async": lambda name: memory.AsyncSQLiteSession(name, f"{folder}/async"),
    "advanced_sqlite": lambda name: memory.AdvancedSQLiteSession(
        session_id=name, db_path=f"{folder}/advanced_sqlite", create_tables=True
    ),
    "remote_sql": lambda name: memory.SQLAlchemySession.from_url(
        name, url=f"sqlite+aiosqlite:///{folder}/remote_sql", create_tables=True
    ),
    "redis": lambda name: memory.RedisSession.from_url(name, url=address),
}


async def write(make):
    for name in ("gone", "kept"):
        session = make(name)
        for text in ("one", "two"):
            item = {"role": "user", "content": f"{text} of {name}"}
            await session.add_items([item, {"role": "assistant", "content": text}])
        if hasattr(session, "create_branch_from_turn"):
            await session.create_branch_from_turn(2, "other way")
            await session.add_items([{"role": "user", "content": "two, the other way"}])


async def main():
    written = []
    for kind, make in MAKES.items():
        try:
            make("gone")
        except AttributeError:
            continue
        await write(make)
        written.append(kind)
    print(json.dumps(written))


asyncio.run(main())
"""


def written_by(version: str, folder: Path, address: str) -> set[str]:
    """Lets a version of the SDK write two sessions of each kind that it has; returns these kinds."""
    if not (FOLDER / version).is_dir():
        pytest.skip(f"NO SDK {version}: what it writes was not tried. tools/install-older-sdks.sh brings it.")
    environment = {**os.environ, "PYTHONPATH": str(FOLDER / version), "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    command = [sys.executable, "-c", WRITES, str(folder), address]
    ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout))


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_every_kind_are_read_changed_and_erased(
    version: str, tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = written_by(version, tmp_path, redis_server.address)
    assert kinds == KINDS_OF.get(version, KINDS)
    monkeypatch.setenv("CACHE_URL", redis_server.address)
    monkeypatch.setenv("TABLES_URL", f"sqlite:///{tmp_path}/remote_sql")
    failures = {}
    for kind in sorted(kinds):
        options = {"redis": {"url_env": "CACHE_URL"}, "remote_sql": {"url_env": "TABLES_URL"}}
        given: Any = options.get(kind, {"path": str(tmp_path / kind)})
        store = declare_store(kind, kind="sqlite" if kind == "async" else kind, options=given)
        try:
            attach_store(store)
            read_change_and_erase(store, "gone")
            if kind != "redis":
                left = set(rows_of(tmp_path / kind, "gone"))
                assert left <= {"session_clear_generations"}, left
            else:
                assert redis_server.leftovers("gone") == []
        except Exception as failure:
            failures[kind] = f"{type(failure).__name__}: {failure}"
    assert failures == {}


def read_change_and_erase(store: SessionStore, session: str) -> None:
    backend, health = backend_for(store), registry.health(store)
    assert not [problem for problem in health.problems if problem.is_fatal], health.problems
    assert health.layout
    assert {found.session_id for found in backend.enumerate_sessions(limit=10).sessions} == {session, "kept"}
    assert backend.previews([session])[session].first_user_text == f"one of {session}"
    with_branches = branching(store)
    items = list(backend.every_item(session))
    assert len(items) == backend.count(session) == (5 if with_branches else 4)
    if with_branches:
        assert [branch.name for branch in with_branches.branches(session)] == ["main", "other way"]
    less = '{"role": "user", "content": "less"}'
    backend.replace_item(session, items[0].id, less, expected=items[0].raw)
    assert backend.first_page(session, 5).items[0].raw == less
    if Capability.ERASE_ITEMS in backend.capabilities:
        assert backend.delete_items(session, [backend.item(session, items[1].id)]) == 1
    assert backend.erase_session(session) == len(items) - 1
    assert {found.session_id for found in backend.enumerate_sessions(limit=10).sessions} == {"kept"}
    assert backend.count("kept") == len(items)
