"""What a run decides before its first chunk: its speed, and which stores it can reach."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memadmin.retention.models import SweepResult
from memadmin.retention.sweep import starting
from memadmin.retention.sweep.starting import SMALL_RUN, speed_for
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.discovery import discover
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import add_items, user, value_of
from tests.retention.policies import age, in_force, swept
from tests.stores.sqlite_files import SqliteAgent


def test_a_large_run_is_slowed_down_and_a_small_one_is_not(settings: Any) -> None:
    settings.RETENTION_WINDOW = timedelta(hours=4)
    assert speed_for(SMALL_RUN - 1) is None
    # In half of the night.
    assert speed_for(7_200_000) == 1_000


def test_the_limit_of_a_large_run_lasts_as_long_as_the_run(
    kept_main_store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_items("old", *(user("tea") for _ in range(5)))
    age("old", timedelta(days=40))
    in_force("Chats", days=30)
    monkeypatch.setattr(starting, "SMALL_RUN", 1)
    monkeypatch.setattr(starting, "SLOWEST", 5_000)
    run = swept()
    assert (run.state, run.done) == (Run.State.COMPLETE, 6)
    assert Run.objects.get(pk=run.pk).rows_per_second == 5_000


@pytest.mark.django_db(transaction=True)
def test_a_store_that_goes_away_in_the_middle_is_named_and_stops_no_other(
    kept_main_store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = SqliteAgent(tmp_path)
    for number in range(3):
        agent.add(f"file {number}", user("cake"))
        add_items(f"main {number}", "tea")
        age(f"main {number}", timedelta(days=40))
    discover(agent.store)
    SessionRecord.objects.filter(store=agent.store).update(last_activity_at="2026-01-01T00:00Z")
    deleted = SqliteBackend.delete_some
    answered = iter([True])

    def once(self: SqliteBackend, session_id: str, *, at_most: int) -> Any:
        if next(answered, False):
            return deleted(self, session_id, at_most=at_most)
        raise StoreUnavailable("The disk is gone.")

    monkeypatch.setattr(SqliteBackend, "delete_some", once)
    monkeypatch.setattr("memadmin.retention.targets.sessions.refuse_unseen_activity", lambda *_: None)
    in_force("Chats", days=30)
    run = swept()
    assert run.state == Run.State.COMPLETE_WITH_EXCEPTIONS, run.reason
    assert value_of("SELECT count(*) FROM agent_messages") == 0
    results = {result.place: result for result in SweepResult.objects.all()}
    away = results[agent.store.name]
    assert (away.state, away.taken, away.backlog) == ("skipped", 1, 2)
    assert "did not respond" in away.reason
    assert results["main"].taken == 3
    monkeypatch.setattr(SqliteBackend, "delete_some", deleted)
    assert swept().state == Run.State.COMPLETE
    assert not SessionRecord.objects.exists()
