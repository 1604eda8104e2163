"""The case: who may do what, in which state, and what stays when two people are at it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.accounts.approvals.services import NotAllowed
from memadmin.audit.models import AuditEvent
from memadmin.derived_keys import SecretKeyChanged
from memadmin.erasure import locators, services
from memadmin.erasure.models import RequestNote, SubjectRequest
from memadmin.erasure.services import (
    AlreadyStarted,
    NotLater,
    PreviewNeeded,
    SubjectHeld,
    WrongKey,
    WrongState,
)
from memadmin.runs import engine
from memories_app.models import LearningStop
from sessions_app.models import Subject
from sessions_app.services import subjects
from tests.approvals import shown
from tests.builders import make_subject
from tests.erasure.builders import Kind, approved, awaiting, make_request, work_off
from tests.people import person
from tests.retention.builders import make_hold

State = SubjectRequest.State


@pytest.fixture
def subject(db: None) -> Subject:
    return make_subject("ada-1")


def approve(request: SubjectRequest, by: User, key: str = "ada-1") -> SubjectRequest:
    return services.approve_request(request, by=by, typed=key, shown=shown(request))


def test_a_request_received_again_joins_the_open_one(subject: Subject, officer: User, second: User) -> None:
    first = make_request(subject, by=officer)
    again, is_new = services.open_request(
        Kind.ERASURE, subject, by=second, channel=SubjectRequest.Channel.EMAIL, known_as=["Ada L."]
    )
    assert (again, is_new) == (first, False)
    assert locators.unseal(again.locators) == ["Ada L."]
    assert list(again.notes.values_list("code", flat=True)) == ["joined", "received"]
    other_kind = make_request(subject, by=officer, kind=Kind.ACCESS)
    assert other_kind != first


def test_a_request_about_a_merged_subject_is_about_the_remaining_one(subject: Subject, officer: User) -> None:
    remaining = make_subject("ada-2")
    subjects.merge_subjects(subject, remaining, by=officer)
    assert make_request(subject, by=officer).subject == remaining


def test_nobody_approves_their_own_request(subject: Subject, officer: User, second: User) -> None:
    request = awaiting(subject, by=officer)
    second_account = person("compliance", "support")
    second_account.email = officer.email = "one@example.com"
    for account in (second_account, officer):
        account.save()
    for same in (officer, second_account):
        with pytest.raises(NotAllowed):
            approve(request, same)
    assert AuditEvent.objects.filter(type="approval.decided", outcome="denied").count() == 2
    assert approve(request, second).state == State.APPROVED


def test_the_key_must_be_typed(subject: Subject, officer: User, second: User) -> None:
    request = awaiting(subject, by=officer)
    make_subject("bob-1")
    for wrong in ("", "bob-1", "ada"):
        with pytest.raises(WrongKey):
            approve(request, second, wrong)
    approve(request, second, " ada-1 ")


def test_it_starts_when_the_time_to_cancel_is_over(subject: Subject, officer: User, second: User) -> None:
    request = approve(awaiting(subject, by=officer), second)
    assert request.run is not None
    assert not engine.is_due(request.run)
    assert request.starts_at
    assert request.starts_at - now() > timedelta(hours=3)
    cancelled = services.cancel_request(request, note="wrong person", by=officer)
    assert (cancelled.state, cancelled.locators.tobytes() if isinstance(cancelled.locators, memoryview) else b"") == (
        State.CANCELLED,
        b"",
    )
    make_request(subject, by=officer)  # another one can be opened


def test_an_erasure_that_has_started_is_not_cancelled(transactional_db: None, officer: User, second: User) -> None:
    request = approved(make_subject("ada-1"), by=officer, second=second)
    work_off(request)
    with pytest.raises(AlreadyStarted, match="has started"):
        services.cancel_request(request, note="", by=officer)
    request.refresh_from_db()
    assert request.state == State.SCANNING


def test_a_subject_on_hold_is_not_erased(subject: Subject, officer: User, second: User) -> None:
    request = awaiting(subject, by=officer)
    hold = make_hold(subject, by=officer)
    with pytest.raises(SubjectHeld, match=f"H-{hold.number}"):
        approve(request, second)
    services.reject_request(request, note="a hold", by=second)
    with pytest.raises(SubjectHeld):
        services.request_approval(request, by=officer)


def test_each_step_needs_the_one_before(subject: Subject, officer: User, second: User) -> None:
    request = make_request(subject, by=officer)
    impossible_now: tuple[Callable[[], SubjectRequest], ...] = (
        lambda: services.request_approval(request, by=officer),
        lambda: services.approve_request(request, by=second, typed="ada-1", shown=""),
        lambda: services.reject_request(request, by=second),
    )
    for impossible in impossible_now:
        with pytest.raises(WrongState, match="Nothing was changed"):
            impossible()
    services.check_identity(request, note="passport", by=officer)
    with pytest.raises(PreviewNeeded):
        services.request_approval(request, by=officer)
    services.make_preview(request, by=officer)
    SubjectRequest.objects.update(previewed_at=now() - timedelta(days=2))
    with pytest.raises(PreviewNeeded):
        services.request_approval(request, by=officer)
    with pytest.raises(WrongState):
        services.check_identity(request, note="again", by=officer)


def test_a_refusal_and_an_extension_have_their_reasons(subject: Subject, officer: User) -> None:
    request = make_request(subject, by=officer)
    received = request.received_on
    with pytest.raises(NotLater):
        services.extend_request(request, until=received, note="many stores", by=officer)
    with pytest.raises(NotLater):
        services.extend_request(request, until=date(received.year + 1, 12, 31), note="many stores", by=officer)
    first = request.due_on
    request = services.extend_request(request, until=first + timedelta(days=20), note="many stores", by=officer)
    assert (request.first_due_on, request.due_on) == (first, first + timedelta(days=20))
    with pytest.raises(WrongState):
        services.extend_request(request, until=first + timedelta(days=25), note="again", by=officer)
    request = services.refuse_request(request, reason=SubjectRequest.Refusal.LEGAL_CLAIM, note="court case", by=officer)
    assert request.is_closed
    assert AuditEvent.objects.filter(type="request.refused", reason_code="legal_claim").exists()
    assert RequestNote.objects.filter(code="refused", text="court case").exists()


def test_a_restriction_takes_effect_with_the_identity_check(subject: Subject, officer: User) -> None:
    request = make_request(subject, by=officer, kind=Kind.RESTRICTION)
    request = services.check_identity(request, note="known by voice", by=officer)
    assert request.state == State.COMPLETE
    assert LearningStop.objects.filter(subject=subject).exists()
    subject.refresh_from_db()


def test_locators_are_encrypted() -> None:
    sealed = locators.seal(["ada@example.com", "  ada@example.com", "xy", "Ada"])
    assert b"ada@" not in sealed.lower()  # Base64 has no such sign
    assert locators.unseal(sealed) == ["Ada", "ada@example.com"]
    assert locators.unseal(b"") == []
    with pytest.raises(SecretKeyChanged, match="MEMADMIN_SECRET_KEY"):
        locators.unseal(b"gAAAA")
