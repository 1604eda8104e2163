"""What is due in a store that is no longer attached: nothing goes, and the ledger says so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin.retention.models import SweepResult, UnfinishedExpiry
from memadmin.retention.sweep import work
from memadmin.retention.sweep.starting import request_sweep
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items, attach_main_store, value_of
from tests.builders import make_session, make_store
from tests.retention.policies import age, in_force, swept

pytestmark = pytest.mark.django_db

OLD = timedelta(days=40)


@pytest.fixture
def detached() -> SessionStore:
    """With two sessions that are due, and a young one."""
    store = make_store("archive")
    SessionStore.objects.filter(pk=store.pk).update(attached_at=None)
    for name in ("one", "two"):
        make_session(name, store=store, registered_at=now() - OLD, last_activity_at=now() - OLD)
    make_session("young", store=store)
    return store


def test_the_ledger_says_what_is_due_and_why_it_stays(detached: SessionStore, compliance: Client) -> None:
    in_force("Chats", days=30)
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    result = SweepResult.objects.get()
    assert (result.place, result.state, result.taken, result.backlog) == ("archive", "skipped", 0, 2)
    assert result.left == {"detached": 2}
    assert result.behind_since is not None
    assert now() - OLD + timedelta(days=29) < result.behind_since < now() - OLD + timedelta(days=31)
    assert run.exceptions == [["detached", "archive", 2]]
    assert SessionRecord.objects.count() == 3
    page = compliance.get(reverse("sweeps:run", args=[run.number])).content.decode()
    assert "archive: The store is not attached any more." in page
    assert "archive skipped" in compliance.get(reverse("sweeps:list")).content.decode()


def test_of_items_it_is_not_known_what_is_due(detached: SessionStore) -> None:
    in_force("Items", days=30, target="items", clock="written")
    swept()
    result = SweepResult.objects.get()
    assert (result.state, result.backlog, result.left) == ("skipped", 0, {"detached": 2})


@pytest.mark.parametrize("columns", [{"days": 50}, {"store": "other"}])
def test_nothing_is_said_where_nothing_is_due(detached: SessionStore, columns: dict[str, object]) -> None:
    in_force("Chats", **columns)  # type: ignore[arg-type]
    swept()
    assert not SweepResult.objects.exists()


def test_a_store_that_is_detached_during_the_run_is_skipped(
    agent_tables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = attach_main_store()
    add_items("old", "text")
    age("old", OLD)
    in_force("Chats", days=30)
    prepare = work.prepare

    def detach(*args: object) -> None:
        SessionStore.objects.filter(pk=store.pk).update(attached_at=None)
        prepare(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "prepare", detach)
    run = carry_on(request_sweep())
    assert run.state == Run.State.COMPLETE_WITH_EXCEPTIONS
    assert value_of("SELECT count(*) FROM agent_messages") == 1
    result = SweepResult.objects.get()
    assert (result.state, result.taken) == ("skipped", 0)
    assert "not attached any more" in result.reason


def test_a_session_that_has_begun_to_go_is_named_once(detached: SessionStore) -> None:
    version = in_force("Chats", days=30)
    SessionRecord.objects.filter(session_id="one").update(erased_at=now())
    UnfinishedExpiry.objects.create(record_id=SessionRecord.objects.get(session_id="one").pk, version=version)
    run = swept()
    assert run.state == Run.State.COMPLETE_WITH_EXCEPTIONS
    result = SweepResult.objects.get()
    assert (result.state, result.taken) == ("skipped", 0)
