"""Forged runs: a worker decides in the name of who requested one, so the database wants a proof of that."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from memadmin import audit
from memadmin.deploy.roles import Roles
from memadmin.runs import services as runs
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memories_app.models import Memory, Review
from memories_app.review import queue_changes
from memories_app.review.queue_changes import QueueAction
from tests.agents import run_sql
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.memories.queue import a_reviewer, waiting
from tests.people import forget_proof, proven

pytestmark = pytest.mark.django_db

NOT_PROVEN = "not proven to be requested by its requester"

BELIEVING = """
CREATE OR REPLACE FUNCTION memadmin_requester_is_proven() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RETURN NEW; END $$
"""
"""The broken variant: believes the id of the requester."""


@pytest.fixture
def reviewer(db: None) -> User:
    return a_reviewer("first")


def reject(memory: Memory, by: User | None) -> str:
    """The statement that requests a rejection by this person."""
    parameters = f'{{"action": "reject", "said": "wrong", "memories": ["{memory.pk}"]}}'
    return (
        "INSERT INTO runs_run (kind, requested_by_id, parameters, total)"
        f" VALUES ('queue_changes', {by.pk if by else 'NULL'}, '{parameters}', 1)"
    )


def test_run_of_a_person_is_requested_by_this_person(ours: Roles, reviewer: User) -> None:
    memory, other = waiting(), a_reviewer("second")
    with connected_as(ours["web"]), in_a_command():
        assert NOT_PROVEN in refusal(reject(memory, reviewer))
        with proven(other):
            assert NOT_PROVEN in refusal(reject(memory, reviewer))
            assert refusal(reject(memory, other)) == refusal(reject(memory, None)) == ""
        run = queue_changes.begin([memory.pk], QueueAction.SNOOZE, by=other, said="day")
        forget_proof()
        for change in (f"requested_by_id = {reviewer.pk}", 'parameters = parameters || \'{"action": "reject"}\''):
            assert refusal(f"UPDATE runs_run SET {change} WHERE number = {run.pk}"), change
    assert not Review.objects.exists()


def test_broken_variant_without_the_check_the_worker_rejects_for_somebody(ours: Roles, reviewer: User) -> None:
    memory = waiting()
    run_sql(BELIEVING)
    with connected_as(ours["web"]), in_a_command():
        run_sql(reject(memory, reviewer))
    with connected_as(ours["worker"]), audit.acting(audit.Actor("job", "work")):
        carry_on(Run.objects.get())
    assert Review.objects.get().reviewer == reviewer


def test_run_that_has_ended_does_not_go_on_by_itself(ours: Roles, reviewer: User) -> None:
    """It would decide again, about what was proposed since."""
    memory = waiting()
    with connected_as(ours["web"]):
        run = queue_changes.begin([memory.pk], QueueAction.REJECT, by=reviewer, said="wrong")
    with connected_as(ours["worker"]), audit.acting(audit.Actor("job", "work")):
        carry_on(run)
    with connected_as(ours["web"]):
        assert "the actor is not proven" in refusal("UPDATE runs_run SET state = 'waiting', ended_at = NULL")
    assert Review.objects.get().reviewer == reviewer


def test_people_still_request_pause_and_cancel_as_the_web_server(ours: Roles, reviewer: User) -> None:
    memory = waiting()
    with connected_as(ours["web"]):
        run = queue_changes.begin([memory.pk], QueueAction.REJECT, by=reviewer, said="wrong")
        runs.pause_run(run, by=reviewer)
        runs.resume_run(run, by=reviewer)
        assert runs.cancel_run(run, by=reviewer).state == Run.State.CANCELLED
