"""The demo bots that keep their sessions in files leave real ones behind, and a branch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils.timezone import now

from memadmin.demo import files
from sessions_app import registry
from sessions_app.models import SessionRecord
from sessions_app.services.discovery import discover_sessions
from sessions_app.stores import backend_for
from sessions_app.stores.kinds import branching


@pytest.fixture
def told(db: None, settings: Any, tmp_path: Path) -> int:
    settings.DATA_DIR = tmp_path
    files.connect()
    return files.tell()


def test_each_talk_is_had_once_and_both_stores_are_healthy(told: int) -> None:
    assert told == len(files.TALKS)
    assert files.tell() == 0
    assert len(files.connect()) == 2
    for name in files.KINDS:
        assert registry.health(registry.known_store(name)).state == "ok"


def test_what_was_said_is_found_with_times_of_some_days_ago(told: int) -> None:
    discover_sessions()
    record = SessionRecord.objects.get(session_id="counter:cust_48213")
    assert now() - timedelta(days=4) < record.last_activity_at < now() - timedelta(days=1)
    preview = backend_for(record.store).previews([record.session_id])[record.session_id]
    assert preview.first_user_text.startswith("I am in the shop right now.")
    assert SessionRecord.objects.count() == len(files.TALKS)


def test_the_planner_went_another_way_and_noted_what_each_turn_took(told: int) -> None:
    store = registry.known_store(files.PLANNER)
    backend = branching(store)
    assert backend
    main, other = backend.branches("planner:cust_48213")
    assert (main.name, main.item_count, other.name, other.item_count) == ("main", 6, "35 euros at most", 6)
    assert [turn.total_tokens for turn in backend.usage("planner:cust_48213", main)] == [252, 362, 431]
    assert len(backend.usage("planner:cust_48213", other)) >= 2


def test_what_was_erased_is_not_said_again(told: int) -> None:
    store = registry.known_store(files.COUNTER)
    backend_for(store).erase_session("counter:cust_50977")
    assert files.tell() == 0
    assert backend_for(store).count("counter:cust_50977") == 0
