"""Unlocking: one person asks, another decides, about the sessions that the page showed and no others."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.fixtures import Settings

from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.services import AlreadyDecided, NotAllowed, ShownChanged
from memadmin.accounts.content_access.rules import ReadingStopped
from memadmin.accounts.home_parts import approvals as waiting_at_home
from memadmin.accounts.models import Approval
from memadmin.audit.models import AuditEvent
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app.models import SessionRecord, UnlockRequest
from sessions_app.services import unlocking
from sessions_app.services.sessions import mark_sensitive, unmark_sensitive
from sessions_app.services.unlocking import UnlockError
from tests.accounts.factors import let_proof_age
from tests.approvals import expire, shown
from tests.builders import make_session
from tests.people import person, signed_in
from tests.runs.working import work_off

pytestmark = pytest.mark.django_db

ADDRESS = reverse("sessions:unlock")


@pytest.fixture
def first(db: None) -> User:
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    return person("compliance", "reviewer")


def locked_sessions(count: int) -> list[SessionRecord]:
    return [make_session(is_sensitive=True) for _ in range(count)]


def asked(by: User, records: list[SessionRecord]) -> UnlockRequest:
    return unlocking.request_unlocking([record.pk for record in records], reason="mistake", by=by)


def still_locked() -> int:
    return SessionRecord.objects.filter(is_sensitive=True).count()


def approve(request: UnlockRequest, by: User, seen: str = "") -> UnlockRequest:
    return unlocking.approve_unlocking(request, by=by, shown=seen or shown(request))


def test_one_person_asks_and_another_unlocks_what_was_shown(first: User, second: User) -> None:
    wanted, open_one = locked_sessions(2), make_session()
    later = make_session(is_sensitive=True)
    desk, other = signed_in(first), signed_in(second)
    chosen = {"session": [str(record.pk) for record in [*wanted, open_one]], "reason": "case_closed"}
    page = desk.post(ADDRESS, chosen, follow=True)
    assert "Requested to unlock 2 sessions." in page.text
    assert "Withdraw" in page.text
    assert still_locked() == 3, "nothing is unlocked by whom asked"
    request = UnlockRequest.objects.get()
    approval = reverse("sessions:unlock-approve", args=[request.pk])
    assert desk.post(approval, {"shown": shown(request)}).status_code == 403
    assert [each.title for each in waiting_at_home(second).waiting] == ["1 unlocking request to decide"]
    assert not waiting_at_home(first).waiting
    page = other.get(ADDRESS)
    assert "the case is closed" in page.text
    assert all(record.session_id in page.text for record in wanted)
    assert later.session_id not in page.text
    done = other.post(approval, {"shown": shown(request)}, follow=True)
    assert "The sessions are unlocked." in done.text
    assert list(SessionRecord.objects.filter(is_sensitive=True)) == [later]
    (event,) = AuditEvent.objects.filter(type="session.unlocked")
    assert sorted(event.shown) == sorted(record.pk for record in wanted)
    request.refresh_from_db()
    assert (request.unlocked_count, request.approval.decided_by) == (2, second)  # type: ignore[union-attr]
    with pytest.raises(AlreadyDecided):
        approve(request, second)


def test_selection_without_a_reason_is_asked_for_it(first: User) -> None:
    (record,) = locked_sessions(1)
    page = signed_in(first).post(ADDRESS, {"session": str(record.pk)})
    assert (page.status_code, "Choose a reason." in page.text, str(record.pk) in page.text) == (422, True, True)
    page = signed_in(first).post(ADDRESS, {"reason": "legal"})
    assert (page.status_code, "No session is selected." in page.text) == (422, True)
    assert not UnlockRequest.objects.exists()


def test_it_is_hidden_from_others_and_asks_for_a_recent_sign_in(first: User) -> None:
    (record,) = locked_sessions(1)
    chosen = {"session": str(record.pk), "reason": "legal"}
    for other in (person("support"), person()):
        assert signed_in(other).get(ADDRESS).status_code == 403
        assert signed_in(other).post(ADDRESS, chosen).status_code == 403
    long_ago = signed_in(first)
    let_proof_age(long_ago)
    assert "request to unlock sessions" in long_ago.post(ADDRESS, chosen).text
    assert (UnlockRequest.objects.count(), still_locked()) == (0, 1)


def test_a_request_needs_the_purpose_of_reading(first: User, settings: Settings) -> None:
    settings.PURPOSE_REQUIRED = True
    (record,) = locked_sessions(1)
    desk = signed_in(first)
    chosen = {"session": str(record.pk), "reason": "legal"}
    assert "Choose a purpose" in desk.post(ADDRESS, chosen).text
    assert not UnlockRequest.objects.exists()
    stated = {"purpose-again": "yes", "purpose-code": "legal", "purpose-ticket": ""}
    assert desk.post(ADDRESS, chosen | stated).status_code == 302
    assert UnlockRequest.objects.get().purpose == "legal"
    assert AuditEvent.objects.get(type="session.unlock_requested").reason_code == "legal"


def test_all_that_match_are_a_request_and_no_run(first: User, second: User) -> None:
    locked_sessions(3)
    desk = signed_in(first)
    given = {"query": "", "counted": "3", "action": "unlock"}
    address = reverse("sessions:all-matching")
    assert "Choose a reason." in desk.post(address, given).text
    assert desk.post(address, given | {"reason": "mistake"}).status_code == 302
    assert (Run.objects.count(), still_locked()) == (0, 3)
    assert len(UnlockRequest.objects.get().sessions) == 3
    support = signed_in(person("support"))
    assert support.post(address, given | {"reason": "mistake"}).status_code == 403


def test_requests_count_like_opened_sessions(first: User, settings: Settings) -> None:
    settings.READ_LIMIT, settings.READ_NOTICE = 3, 3
    records = locked_sessions(6)
    asked(first, records[:2])
    # Twice the same session counts once.
    asked(first, records[:3])
    with pytest.raises(ReadingStopped, match=r"unlock, 3 sessions within an hour, .* possible in \d+ minutes"):
        asked(first, records[3:4])
    with pytest.raises(
        ReadingStopped, match=r"3 sessions within an hour, .* 2 more. The maximum per person is 3. .* in"
    ):
        asked(first, records[3:5])
    with pytest.raises(ReadingStopped, match=r"These are 6 sessions. The maximum per person is 3") as stopped:
        asked(person("compliance", "auditor"), records)
    assert stopped.value.seconds == 0
    assert UnlockRequest.objects.count() == 2
    page = signed_in(first).post(ADDRESS, {"session": [str(record.pk) for record in records], "reason": "legal"})
    assert (page.status_code, "The maximum per person is 3" in page.text) == (429, True)


def test_what_changed_is_not_unlocked(first: User, second: User) -> None:
    records = locked_sessions(3)
    request, other = asked(first, records[:2]), asked(first, records[1:])
    seen = shown(other)
    SessionRecord.objects.filter(pk=records[0].pk).update(erased_at="2026-01-01T00:00Z")
    approve(request, second)
    request.refresh_from_db()
    assert request.unlocked_count == 1, "an erased one does not stop the others"
    # Its session was unlocked, and is locked anew: nobody has approved to unlock it again.
    mark_sensitive(SessionRecord.objects.filter(pk=records[1].pk), by=first)
    other.refresh_from_db()
    assert other.approval is not None
    assert other.approval.decision == "void"
    with pytest.raises(AlreadyDecided):
        approve(other, second, seen)
    assert still_locked() == 3


def test_another_list_than_the_page_showed_is_refused(first: User, second: User) -> None:
    records = locked_sessions(2)
    request = asked(first, records[:1])
    seen = shown(request)
    UnlockRequest.objects.update(sessions=[record.pk for record in records])
    with pytest.raises(ShownChanged):
        approve(request, second, seen)
    with pytest.raises(approvals.ChangedSinceAsked):
        approve(request, second)
    assert still_locked() == 2


def test_nobody_decides_alone_or_too_late(first: User, second: User) -> None:
    records = locked_sessions(3)
    own = asked(first, records)
    with pytest.raises(NotAllowed):
        approve(own, first)
    with pytest.raises(NotAllowed):
        approve(own, person("support"))
    unlocking.reject_unlocking(own, by=first)
    own.refresh_from_db()
    assert own.approval is not None
    assert own.approval.decision == "withdrawn"
    late = asked(first, records)
    seen = shown(late)
    expire(late)
    with pytest.raises(AlreadyDecided):
        approve(late, second, seen)
    rejected = asked(first, records)
    page = signed_in(second).post(reverse("sessions:unlock-reject", args=[rejected.pk]), follow=True)
    assert "The sessions stay locked." in page.text
    assert still_locked() == 3


def test_without_a_second_person_where_none_is_required(first: User, settings: Settings) -> None:
    settings.GRANT_APPROVAL = False
    (record,) = locked_sessions(1)
    page = signed_in(first).post(ADDRESS, {"session": str(record.pk), "reason": "legal"}, follow=True)
    assert "1 session unlocked." in page.text
    assert still_locked() == 0
    assert AuditEvent.objects.filter(type="session.unlocked").count() == 1


def test_sessions_of_a_locked_store_are_not_unlocked(first: User) -> None:
    record = make_session()
    type(record.store).objects.update(is_sensitive=True)
    with pytest.raises(UnlockError, match="Sessions of a locked store, and encrypted ones, stay locked"):
        asked(first, [record])


def test_unlocking_without_a_request_is_refused_by_the_database(first: User) -> None:
    records = locked_sessions(1)
    with transaction.atomic(), pytest.raises(Exception, match="second person has approved"):
        unmark_sensitive(records, by=first)
    assert connection.needs_rollback is False
    assert still_locked() == 1


def test_an_unlocking_run_of_an_earlier_version_stops_with_a_sentence(first: User) -> None:
    records = locked_sessions(1)
    run = request_run(
        "session_changes", by=first, parameters={"action": "unlock", "label": "", "sessions": [str(records[0].pk)]}
    )
    work_off()
    run.refresh_from_db()
    assert (run.state, run.reason.startswith("Unlocking takes a second person now.")) == ("stopped", True)
    assert still_locked() == 1
    assert "Unlock" in signed_in(first).get(run.get_absolute_url()).text


def test_the_page_takes_as_many_queries_for_many(first: User, second: User) -> None:
    def count(browser: Client) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(ADDRESS).status_code == 200
        return len(queries)

    asked(first, locked_sessions(2))
    desk = signed_in(second)
    count(desk)
    before = count(desk)
    for _ in range(3):
        asked(first, locked_sessions(2))
    assert count(desk) == before
    assert Approval.objects.filter(kind="unlocking").count() == 4
