"""An erasure under the roles of production: people handle it as the web server, and the worker carries it out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.deploy.roles import Roles
from memadmin.erasure.batches import services
from memadmin.erasure.models import SubjectRequest
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memories_app.models import Memory
from sessions_app.models import SessionRecord
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store, value_of
from tests.approvals import shown
from tests.builders import make_subject
from tests.deploy.connecting import bring_into_force, logged_in_as
from tests.erasure.batches import csv_of, make_subjects, work_off_batch
from tests.erasure.builders import approved
from tests.memories.builders import approved as approved_memory
from tests.people import person
from tests.retention.builders import make_hold, released

State = SubjectRequest.State


@pytest.mark.django_db(transaction=True)
def test_the_web_server_approves_and_the_worker_erases(agent_tables: None, in_force: Roles) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    attach_main_store(agent_roles=[in_force["agents"]])
    subject = make_subject("ada-1")
    add_items("a1", "one", "two")
    attach_sessions(SessionRecord.objects.filter(session_id="a1"), subject, by=officer)
    approved_memory("likes tea", subject=subject)
    hold = make_hold(SessionRecord.objects.get(session_id="a1"), by=officer)
    released(hold, by=officer, second=second)
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        request = approved(subject, by=officer, second=second)
    with logged_in_as(in_force["worker"]):
        run = Run.objects.get(subject_request=request)
        run = carry_on(run)
        assert run.cursor.get("event"), run.reason
        Sequencer().step(is_last=True)
        Run.objects.filter(pk=run.pk).update(retry_at=None)
        run = carry_on(run)
    request.refresh_from_db()
    assert (request.state, run.attempts) == (State.SCANNING, 0), run.reason
    assert value_of("SELECT count(*) FROM agent_messages") == 0
    assert not Memory.objects.exists()
    assert request.receipt
    assert request.scans[0]["found"] == 0


@pytest.mark.django_db(transaction=True)
def test_the_worker_counts_a_batch(agent_tables: None, in_force: Roles) -> None:
    officer = person("compliance")
    make_subjects(["ada", "bob"])
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        batch = services.upload(csv_of("ada", "bob"), name="list.csv", ground="consent", note="", by=officer)
    assert batch.preview_run
    with logged_in_as(in_force["worker"]):
        assert carry_on(batch.preview_run).state == Run.State.COMPLETE
    batch.refresh_from_db()
    assert batch.previewed_at


@pytest.mark.django_db(transaction=True)
def test_the_worker_carries_out_a_batch(agent_tables: None, in_force: Roles) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    make_subjects(["ada", "bob"])
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        batch = services.upload(csv_of("ada", "bob"), name="list.csv", ground="consent", note="", by=officer)
    with logged_in_as(in_force["worker"]):
        assert batch.preview_run
        carry_on(batch.preview_run)
    with logged_in_as(in_force["web"]):
        batch = services.request_approval(batch, by=officer)
        batch = services.approve(batch, by=second, typed="erase 2", shown=shown(batch), window=timedelta(0))
    with logged_in_as(in_force["worker"]):
        work_off_batch(batch)
    assert {request.state for request in SubjectRequest.objects.all()} == {State.SCANNING}
    assert SubjectRequest.objects.count() == 2
