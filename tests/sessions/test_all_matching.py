"""Actions on all sessions that match: a run with the usual checks. `tests/web/test_all_matching.py` has the page."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord
from sessions_app.services import session_changes
from sessions_app.services.erasing_subjects import fence_subject
from tests.accounts.factors import let_proof_age
from tests.builders import make_session, make_subject
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.runs.working import work_off

ADDRESS = reverse("sessions:all-matching")


@pytest.fixture
def keeper(db: None) -> User:
    return person("compliance")


@pytest.fixture
def desk(keeper: User) -> Client:
    return signed_in(keeper)


def make_sessions(count: int, **columns: Any) -> None:
    for number in range(count):
        make_session(f"{columns.get('agent', 'any')}-{number}", **columns)


def labelled() -> int:
    return SessionRecord.objects.filter(labels=["spring"]).count()


def test_after_confirmation_a_run_changes_exactly_these(desk: Client, keeper: User) -> None:
    make_sessions(120, agent="Refunds")
    make_sessions(2, agent="Bookings")
    given = {"query": "agent=Refunds", "counted": "120", "action": "label", "label": "spring"}
    shown = desk.post(ADDRESS, given, follow=True)
    # Its number is not known to roles that view no other runs, hence they are led to it.
    assert shown.redirect_chain == [(Run.objects.get().get_absolute_url(), 302)]
    assert "Change of sessions" in shown.text
    # One that begins to match after the confirmation is not touched.
    make_session("late", agent="Refunds")
    assert work_off() == 1
    assert labelled() == 120
    run = Run.objects.get()
    assert (run.state, run.done, run.counters) == ("complete", 120, {"changed": 120, "unchanged": 0})
    events = AuditEvent.objects.filter(type="session.labelled")
    assert sum(len(event.shown) for event in events) >= 120
    assert {event.actor_kind for event in events} == {"person"}


def test_a_label_needs_a_name(desk: Client) -> None:
    make_sessions(1)
    page = desk.post(ADDRESS, {"query": "", "counted": "1", "action": "label"})
    assert (page.status_code, "A label needs a name." in page.text) == (422, True)
    assert not Run.objects.exists()


def test_all_are_attached_to_a_known_subject(desk: Client) -> None:
    make_sessions(3)
    subject = make_subject("customer_1")
    given = {"query": "", "counted": "3", "action": "attach", "kind": "user", "key": "customer_1"}
    assert desk.post(ADDRESS, given).status_code == 302
    work_off()
    assert SessionRecord.objects.filter(subject=subject).count() == 3
    assert "customer_1" not in str(Run.objects.get().parameters)


def test_an_unknown_subject_is_not_created_for_many(desk: Client) -> None:
    make_sessions(3)
    given = {"query": "", "counted": "3", "action": "attach", "kind": "user"}
    for key, sentence in (("custmer_1", "There is no subject with this ID."), ("", "Enter an ID.")):
        page = desk.post(ADDRESS, given | {"key": key})
        assert (page.status_code, sentence in page.text, f'value="{key}"' in page.text) == (422, True, True)
    assert not Run.objects.exists()


def test_a_subject_that_was_erased_meanwhile_gets_no_session(desk: Client) -> None:
    make_sessions(2)
    subject = make_subject("customer_1")
    desk.post(ADDRESS, {"query": "", "counted": "2", "action": "attach", "kind": "user", "key": "customer_1"})
    fence_subject(subject)
    work_off()
    assert Run.objects.get().exceptions == [["refused", "", 2]]
    assert not SessionRecord.objects.filter(subject=subject).exists()


def test_unlocking_asks_for_a_recent_sign_in(desk: Client, keeper: User) -> None:
    make_sessions(1, is_sensitive=True)
    long_ago = signed_in(keeper)
    let_proof_age(long_ago)
    answer = long_ago.post(ADDRESS, {"query": "", "counted": "1", "action": "unlock", "reason": "legal"})
    assert "unlock sessions" in answer.text
    assert not Run.objects.exists()


def test_locking_takes_its_own_permission(db: None) -> None:
    make_sessions(1)
    support = signed_in(person("support"))
    assert 'value="lock"' not in support.get(ADDRESS).text
    answer = support.post(ADDRESS, {"query": "", "counted": "1", "action": "lock"})
    assert answer.status_code == 403
    assert not Run.objects.exists()


def test_a_run_of_somebody_without_the_right_stops(desk: Client, keeper: User) -> None:
    make_sessions(1)
    desk.post(ADDRESS, {"query": "", "counted": "1", "action": "label", "label": "spring"})
    keeper.groups.clear()
    work_off()
    assert (labelled(), Run.objects.get().state) == (0, "stopped")


def test_one_that_is_held_does_not_keep_the_others(desk: Client, keeper: User) -> None:
    subject = make_subject("customer_1")
    for number in range(3):
        make_session(f"session-{number}", subject=subject)
    make_hold(subject, by=keeper)
    other = make_session("free", subject=make_subject("customer_2"))
    run = session_changes.begin(
        list(SessionRecord.objects.values_list("pk", flat=True)), session_changes.SessionAction.DETACH, by=keeper
    )
    work_off()
    run.refresh_from_db()
    assert run.exceptions == [["refused", "", 3]]
    assert run.counters["changed"] == 1
    other.refresh_from_db()
    assert other.subject is None
