"""Large redactions are confirmed by typing, and larger ones by a second person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.db import DatabaseError, transaction
from django.urls import reverse
from django.utils.timezone import now

from memadmin.accounts.approvals.services import AlreadyDecided, NotAllowed
from memadmin.accounts.models import Approval
from memadmin.audit.models import AuditEvent
from memadmin.runs.models import Run
from memadmin.runs.services import resume_run
from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord, SessionStore
from sessions_app.redaction import TextToRedact, services
from sessions_app.redaction.previews import TYPED_ABOVE, find_places
from sessions_app.redaction.services import ConfirmationMismatch, RedactionRequest
from tests.agents import add_items, in_sdk, user
from tests.approvals import expire, shown
from tests.builders import make_subject
from tests.people import person, signed_in
from tests.runs.working import report_of, work_off

SECRET = "sk-live-4711"
GIVEN = {"text": SECRET, "reason": "leaked_secret"}
LIMIT = 12


@pytest.fixture
def record(kept_main_store: SessionStore, settings: Any) -> SessionRecord:
    settings.REDACT_ALONE_PLACES = LIMIT
    return session_with(LIMIT + 1)


@pytest.fixture
def officer(record: SessionRecord) -> User:
    return person("compliance")


@pytest.fixture
def second(record: SessionRecord) -> User:
    return person("compliance", "support")


def session_with(places: int, session_id: str = "s") -> SessionRecord:
    add_items(session_id, *(user(f"{number}: {SECRET}") for number in range(places)))
    SessionRecord.objects.filter(session_id=session_id).update(subject=make_subject(f"customer of {session_id}"))
    return SessionRecord.objects.select_related("subject", "store").get(session_id=session_id)


def left_in(session_id: str = "s") -> int:
    """Number of items that still have the text."""
    return sum(SECRET in str(item) for item in in_sdk(lambda tables: tables.session(session_id).get_items()))


def ask(record: SessionRecord, officer: User, typed: str = f"redact {LIMIT + 1}") -> Redaction:
    preview = find_places([record], TextToRedact.parse(SECRET), by=officer, granted=())
    request = RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=officer, preview=preview, typed=typed)
    return services.redact_in_session(record, request)


def approve(asked: Redaction, *, by: User, typed: str = f"redact {LIMIT + 1}") -> None:
    services.approve_redaction(asked, by=by, typed=typed, shown=shown(asked))


def test_up_to_ten_places_need_no_typing_and_more_need_their_number(officer: User) -> None:
    few, more = session_with(TYPED_ABOVE, "few"), session_with(TYPED_ABOVE + 1, "more")
    ask(few, officer, typed="")
    for typed in ("", "redact", f"redact {TYPED_ABOVE}"):
        with pytest.raises(ConfirmationMismatch, match=f"Type “redact {TYPED_ABOVE + 1}”"):
            ask(more, officer, typed)
    assert not ask(more, officer, f"  Redact  {TYPED_ABOVE + 1} ").approval
    work_off()
    assert (left_in("few"), left_in("more")) == (0, 0)


def test_page_asks_for_the_number_and_keeps_the_preview_if_it_is_wrong(officer: User) -> None:
    record = session_with(TYPED_ABOVE + 1, "more")
    console, address = signed_in(officer), reverse("sessions:redact-session", args=[record.pk])
    page = console.post(address, GIVEN)
    assert f'Type <span class="mono">redact {TYPED_ABOVE + 1}</span> to confirm' in page.text
    form = {**GIVEN, "looked": page.context["token"], "redact": "yes"}
    page = console.post(address, form)
    assert page.status_code == 422
    assert f"Type “redact {TYPED_ABOVE + 1}” to confirm." in page.text
    assert page.text.count("<del>") == TYPED_ABOVE + 1
    assert not Redaction.objects.exists()
    assert console.post(address, {**form, "typed": f"redact {TYPED_ABOVE + 1}"}).status_code == 302


def test_beyond_the_limit_nothing_happens_before_a_second_person_approves(
    record: SessionRecord, officer: User, second: User
) -> None:
    asked = ask(record, officer)
    assert asked.is_awaiting
    assert work_off() == 0
    # A resumed run waits again.
    resume_run(asked.run, by=second)
    assert work_off() == 0
    assert left_in() == LIMIT + 1
    with pytest.raises(ConfirmationMismatch):
        approve(asked, by=second, typed="redact")
    assert work_off() == 0
    approve(asked, by=second)
    assert work_off() == 1
    assert left_in() == 0
    asked.refresh_from_db()
    assert asked.approval
    assert (asked.approval.decided_by, asked.text, asked.shown) == (second, "", {})
    assert AuditEvent.objects.get(type="approval.decided").reason_code == "approved"
    with pytest.raises(AlreadyDecided):
        approve(asked, by=second)


def test_approval_stays_with_what_was_shown(record: SessionRecord, officer: User, second: User) -> None:
    asked = ask(record, officer)
    with pytest.raises(DatabaseError, match="keeps it"), transaction.atomic():
        Redaction.objects.filter(pk=asked.pk).update(approval=None)
    approve(asked, by=second)
    # By hand, in the database: the run redacts only what was approved.
    Redaction.objects.filter(pk=asked.pk).update(text="4711")
    work_off()
    assert left_in() == LIMIT + 1
    assert [reason[0] for reason in report_of(asked)["reasons"]] == ["not_approved"]


def test_requester_approves_with_no_account(record: SessionRecord, officer: User, second: User) -> None:
    asked = ask(record, officer)
    EmailAddress.objects.create(user=officer, email="Kim@example.com", verified=True)
    User.objects.filter(pk=second.pk).update(email="kim@Example.com")
    second.refresh_from_db()
    for account in (officer, second):
        with pytest.raises(NotAllowed):
            approve(asked, by=account)
    assert AuditEvent.objects.filter(type="approval.decided", outcome="denied").count() == 2
    work_off()
    assert left_in() == LIMIT + 1
    page = signed_in(second).get(asked.get_absolute_url())
    assert "You requested this yourself. Another person has to decide." in page.text
    assert "Approve redaction" not in page.text


def test_approval_is_impossible_when_the_requester_is_not_known_any_more(
    record: SessionRecord, officer: User, second: User
) -> None:
    asked = ask(record, officer)
    Approval.objects.update(asked_by=None)
    with pytest.raises(NotAllowed):
        approve(asked, by=second)


def test_second_person_sees_the_places_and_what_changed_since(
    record: SessionRecord, officer: User, second: User
) -> None:
    asked = ask(record, officer)
    add_items("s", user(f"later: {SECRET}"))
    console = signed_in(second)
    page = console.get(asked.get_absolute_url())
    told = " ".join(page.text.split())
    assert f"compliance asks to redact <strong>{LIMIT + 1} places</strong>" in told
    assert "1 item with the text is new or changed since then, and is not redacted" in told
    assert page.text.count("<del>") == LIMIT + 1
    assert "later:" not in page.text
    # A refresh of the progress searches nothing, and shows nothing.
    events = AuditEvent.objects.filter(type="redaction.previewed")
    before = events.count()
    part = console.get(asked.get_absolute_url(), headers={"HX-Request": "true"})
    assert SECRET not in part.text
    assert events.count() == before
    form = {"typed": f"redact {LIMIT + 1}", "shown": shown(asked)}
    answer = console.post(reverse("sessions:redaction-approve", args=[asked.pk]), form)
    assert answer["Location"] == asked.get_absolute_url()
    work_off()
    assert left_in() == 1
    assert [reason[0] for reason in report_of(asked)["reasons"]] == ["not_shown"]
    assert "approved" in console.get(asked.get_absolute_url()).text


def test_wrong_number_and_late_approval_are_told_on_the_page(
    record: SessionRecord, officer: User, second: User
) -> None:
    asked, console = ask(record, officer), signed_in(second)
    address = reverse("sessions:redaction-approve", args=[asked.pk])
    page = console.post(address, {"typed": "yes", "shown": shown(asked)})
    assert (page.status_code, f"Type “redact {LIMIT + 1}” to confirm." in page.text) == (422, True)
    assert console.post(address, {}).status_code == 422
    services.decline_redaction(asked, by=officer)
    page = console.post(address, {"typed": f"redact {LIMIT + 1}", "shown": "x"})
    assert (page.status_code, "already decided on this request" in page.text) == (409, True)


@pytest.mark.parametrize("by_requester", [True, False])
def test_declined_redaction_ends_and_forgets_its_text(
    record: SessionRecord, officer: User, second: User, *, by_requester: bool
) -> None:
    asked, console = ask(record, officer), signed_in(officer if by_requester else second)
    assert ("Withdraw" if by_requester else "Decline") in console.get(asked.get_absolute_url()).text
    console.post(reverse("sessions:redaction-decline", args=[asked.pk]))
    asked.refresh_from_db()
    assert (asked.text, asked.shown, asked.run.state) == ("", {}, Run.State.CANCELLED)
    assert (
        AuditEvent.objects.filter(
            type="approval.decided", reason_code="withdrawn" if by_requester else "rejected"
        ).count()
        == 1
    )
    page = console.post(reverse("sessions:redaction-decline", args=[asked.pk]))
    assert page.status_code == 409
    assert work_off() == 0
    assert left_in() == LIMIT + 1


def test_redaction_that_nobody_approves_in_time_ends_and_forgets_its_text(
    record: SessionRecord, officer: User, second: User
) -> None:
    asked = ask(record, officer)
    Redaction.objects.filter(pk=asked.pk).update(expires_at=now() - timedelta(seconds=1))
    expire(asked)
    with pytest.raises(AlreadyDecided):
        approve(asked, by=second)
    # The run itself is due at that time.
    assert asked.run.retry_at == asked.expires_at
    Run.objects.filter(pk=asked.run_id).update(retry_at=now())
    assert work_off() == 1
    asked.refresh_from_db()
    assert asked.text == ""
    assert [reason[0] for reason in report_of(asked)["reasons"]] == ["not_approved"]
    assert left_in() == LIMIT + 1


def test_people_who_may_approve_are_sent_a_mail_without_the_text(
    record: SessionRecord,
    officer: User,
    settings: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.NOTICES_TO, settings.MAIL_SERVER = ["compliance@example.com"], "mail"
    with django_capture_on_commit_callbacks(execute=True):
        asked = ask(record, officer)
    (sent,) = mail.outbox
    assert asked.get_absolute_url() in sent.body
    assert SECRET not in f"{sent.subject} {sent.body}"


def test_preview_that_ran_out_of_time_needs_a_second_person(officer: User) -> None:
    record = session_with(1, "few")
    preview = find_places([record], TextToRedact.parse(SECRET), by=officer, granted=(), seconds=-1)
    given: dict[str, Any] = {"takes_compactions": False}
    assert preview.is_cut_short
    assert services.must_be_typed(preview, **given)
    assert services.needs_second_person(preview, **given)
