"""Where no fence keeps an agent from writing to an erased session, it is erased again; what is left is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_app import registry
from sessions_app.services import re_erasure
from sessions_app.services.discovery import discover, discover_sessions
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import user
from tests.stores.sqlite_files import SqliteAgent


@pytest.fixture
def agent(transactional_db: None, tmp_path: Path) -> SqliteAgent:
    """Its session was erased while it was running, and it wrote once more."""
    agent = SqliteAgent(tmp_path)
    agent.add("a", user("one"))
    discover(agent.store)
    SqliteBackend(agent.store).erase_session("a")
    agent.add("a", user("two"))
    return agent


def codes(agent: SqliteAgent) -> set[str]:
    agent.store.refresh_from_db()
    return {problem.code for problem in registry.health(agent.store).problems}


def test_the_job_sweeps(agent: SqliteAgent) -> None:
    discover_sessions()
    assert agent.read("a") == []
    assert "returned" not in codes(agent)


def test_without_the_sweep_it_stays(agent: SqliteAgent) -> None:
    """What the sweep is worth."""
    discover(agent.store)
    assert agent.read("a") == [user("two")]
    assert "returned" in codes(agent)


def test_what_could_not_be_erased_is_said_and_taken_up_again(
    agent: SqliteAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*given: Any) -> int:
        raise StoreUnavailable("It is away.")

    with monkeypatch.context() as broken:
        broken.setattr(re_erasure, "erase_again", away)
        discover_sessions()
    assert agent.read("a") == [user("two")]
    assert "returned" in codes(agent)
    discover_sessions()
    assert agent.read("a") == [], "nothing was written since, and it is looked for all the same"
    assert "returned" not in codes(agent)
