"""The progress line of a case, and the line about it in the list."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from datetime import timezone as zones

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from memadmin.erasure import services
from memadmin.erasure.forms import NewRequestForm
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.view_models import CaseView, views_of
from memadmin.runs.models import Run
from sessions_app.models import Subject
from tests.builders import make_subject
from tests.erasure.builders import Kind, approved, awaiting, make_request

State = SubjectRequest.State


@pytest.fixture
def subject(db: None) -> Subject:
    return make_subject("cust_1")


def view_of(case: SubjectRequest, viewer: User) -> CaseView:
    (view,) = views_of([case], viewer)
    return view


def past(view: CaseView) -> list[str]:
    """Titles of the stages that are shown as done, and the last one, if the case has ended without being complete."""
    return [stage.title for stage in view.stages if stage.look in ("past", "exception")]


def test_a_refused_case_shows_what_was_done_and_nothing_else(subject: Subject, officer: User) -> None:
    case = make_request(subject, by=officer)
    case = services.refuse_request(case, reason=SubjectRequest.Refusal.LEGAL_CLAIM, note="claim", by=officer)
    assert past(view_of(case, officer)) == ["Received", "Refused"]
    case = awaiting(subject, by=officer)
    case = services.refuse_request(case, reason=SubjectRequest.Refusal.LEGAL_CLAIM, note="claim", by=officer)
    assert past(view_of(case, officer)) == ["Received", "Identity checked", "Preview", "Refused"]


def test_a_case_that_was_cancelled_after_its_approval_was_never_running(
    agent_tables: None, subject: Subject, officer: User, second: User
) -> None:
    case = services.cancel_request(approved(subject, by=officer, second=second), note="withdrawn", by=officer)
    stages = ["Received", "Identity checked", "Preview", "Second person", "Cancelled"]
    assert past(view_of(case, officer)) == stages


def test_an_access_request_shows_its_copy(subject: Subject, officer: User) -> None:
    case = services.check_identity(make_request(subject, by=officer, kind=Kind.ACCESS), note="passport", by=officer)
    assert view_of(case, officer).progress == "to be answered"
    run = Run.objects.create(kind="access_copy", state=Run.State.WAITING, reason="The store x does not respond.")
    case.state, case.run = State.RUNNING, run
    view = view_of(case, officer)
    assert view.progress == "The store x does not respond."
    assert [stage.note for stage in view.stages if stage.title == "Copy built"] == ["being built"]
    run.state, run.reason, run.ended_at = Run.State.COMPLETE, "", timezone.now()
    view = view_of(case, officer)
    assert (view.progress, past(view)) == ("copy is ready", ["Received", "Identity checked", "Copy built"])


def test_a_request_that_joins_leaves_no_gap_in_the_numbers(subject: Subject, officer: User) -> None:
    first = make_request(subject, by=officer)
    assert make_request(subject, by=officer) == first
    assert make_request(make_subject("cust_2"), by=officer).number == first.number + 1


@pytest.mark.parametrize(
    ("hours", "day"), [(13, date(2026, 11, 27)), (0, date(2026, 11, 26)), (-11, date(2026, 11, 26))]
)
def test_today_is_the_persons(hours: int, day: date, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 18:30 UTC it is tomorrow already where people east of Delhi work."""
    instant = datetime(2026, 11, 26, 18, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: instant)
    values = {"kind": "restriction", "subject_kind": "user", "key": "cust_1", "channel": "letter", "note": ""}
    with timezone.override(zones(timedelta(hours=hours))):
        assert NewRequestForm().initial["received_on"] == day
        assert NewRequestForm({**values, "received_on": day}).is_valid()
        assert not NewRequestForm({**values, "received_on": day + timedelta(days=1)}).is_valid()
