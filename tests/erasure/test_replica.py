"""An erasure is complete when the streaming replica has replayed it, or says that it has not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django import DjangoDbBlocker

from memadmin import replica
from memadmin.erasure import on_replica
from memadmin.erasure.models import SubjectRequest
from memadmin.runs.models import Run
from tests.agents import attach_main_store
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import a_day_later, retry, with_sessions
from tests.standby import Standby, reading_from, running_standby
from tests.waiting import wait_until

pytestmark = [pytest.mark.release, pytest.mark.django_db(transaction=True, databases=["default", "replica"])]

State = SubjectRequest.State


@pytest.fixture(scope="module")
def standby(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Standby]:
    with django_db_blocker.unblock(), running_standby() as running, reading_from(running):
        yield running


@pytest.fixture
def request_of_ada(standby: Standby, agent_tables: None, officer: User, second: User) -> Iterator[SubjectRequest]:
    attach_main_store()
    yield approved(with_sessions("ada", by=officer), by=officer, second=second)
    connections[replica.REPLICA].close()


def until_replayed(standby: Standby) -> None:
    position = replica.position_now()
    wait_until(lambda: replica.state_at(position).has_all)


def at_the_next_turn(request: SubjectRequest) -> Run:
    assert request.run is not None
    retry(request.run)
    return work_off(request)


def after_the_second_scan(request: SubjectRequest) -> Run:
    a_day_later(request)
    return work_off(request)


def places_of(request: SubjectRequest) -> list[tuple[str, str]]:
    return [(row["code"], row["place"]) for row in json.loads(request.receipt)["payload"]["exceptions"]]


def test_it_waits_for_the_replica_before_the_receipt_and_before_the_end(
    standby: Standby, request_of_ada: SubjectRequest
) -> None:
    request = request_of_ada
    with standby.paused():
        run = work_off(request)
        assert (run.state, request.state, request.receipt) == (Run.State.WAITING, State.RUNNING, "")
        assert run.reason == "Erased. The replica does not replay changes at present: it still shows what was erased."
    until_replayed(standby)
    at_the_next_turn(request)
    assert (request.state, places_of(request)) == (State.SCANNING, [])
    # The second scan a day later ends the case, and waits as well.
    with standby.paused():
        run = after_the_second_scan(request)
        assert (run.state, request.state) == (Run.State.WAITING, State.SCANNING)
    until_replayed(standby)
    at_the_next_turn(request)
    assert (request.state, places_of(request)) == (State.COMPLETE, [])


def test_a_replica_that_stays_behind_is_an_exception_until_it_has_caught_up(
    standby: Standby, request_of_ada: SubjectRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of_ada
    with standby.paused(), monkeypatch.context() as patching:
        patching.setattr(on_replica, "PATIENCE", timedelta(0))
        work_off(request)
        assert request.state == State.SCANNING
        assert places_of(request) == [("on_replica", "scan/replica")]
        assert json.loads(request.receipt)["payload"]["outcome"] == SubjectRequest.State.COMPLETE_WITH_EXCEPTIONS
    after_the_second_scan(request)
    until_replayed(standby)
    at_the_next_turn(request)
    assert (request.state, places_of(request)) == (State.COMPLETE, [])


def test_one_that_is_away_is_an_exception_too(
    standby: Standby, request_of_ada: SubjectRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one of this file: nothing starts the replica again."""
    request = request_of_ada
    standby.stop()
    connections[replica.REPLICA].close()
    run = work_off(request)
    assert (request.state, run.reason) == (
        State.RUNNING,
        "Erased. The replica does not respond: it may still show what was erased.",
    )
    monkeypatch.setattr(on_replica, "PATIENCE", timedelta(0))
    at_the_next_turn(request)
    after_the_second_scan(request)
    assert request.state == State.COMPLETE_WITH_EXCEPTIONS
    assert places_of(request) == [("on_replica", "scan/replica")]
