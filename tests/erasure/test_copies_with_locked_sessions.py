"""Copies with locked sessions: one person asks, another approves, and what is not approved is named."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from pytest_django.fixtures import Settings

from memadmin import audit
from memadmin.accounts.approvals.services import ChangedSinceAsked, NotAllowed
from memadmin.accounts.content_access import rules
from memadmin.accounts.content_access.rules import ReadingStopped
from memadmin.accounts.home_parts import approvals as waiting_at_home
from memadmin.audit.models import AuditEvent
from memadmin.erasure import services as cases
from memadmin.erasure.access_copy import building, deleting, services
from memadmin.erasure.access_copy.locked import approved_sessions
from memadmin.erasure.models import AccessCopy, SubjectRequest
from memadmin.erasure.services import OwnRequest, WrongState
from memadmin.migrating import sql_text
from memories_app.models import Evidence, Signal
from sessions_app.audit_events import SESSION_VIEWED
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.services.sessions import attach_sessions, mark_sensitive
from sessions_app.services.subjects import merge_subjects
from tests.agents import add_items, attach_main_store, run_sql
from tests.approvals import shown, without_triggers
from tests.builders import make_session, make_subject
from tests.erasure.copies import (
    all_text,
    approved_copy,
    built_copy,
    checked_access,
    finished,
    full_copy,
    json_in,
    opened,
)
from tests.memories.builders import approved as approved_memory
from tests.people import person, signed_in
from tests.sealed import OLD_KEY, add_sealed
from tests.sealed import keys as keys

pytestmark = pytest.mark.usefixtures("copies_folder", "kept_main_store")

SECRET, OPEN = "words behind the lock", "words for everybody"
LEFT_OUT = "These sessions are locked or encrypted, so that staff reads them only with a second person."

State = SubjectRequest.State


def record(session_id: str) -> SessionRecord:
    return SessionRecord.objects.get(session_id=session_id)


@pytest.fixture
def ada(officer: User) -> Subject:
    """Somebody with an open and a locked session."""
    attach_main_store()
    subject = make_subject("ada-1")
    add_items("open", OPEN)
    add_items("locked", SECRET)
    attach_sessions(SessionRecord.objects.all(), subject, by=officer)
    mark_sensitive([record("locked")], by=officer)
    return subject


def reasons(copy: AccessCopy) -> dict[str, int]:
    about = json_in(opened(copy), "about.json")
    return {row["reason"][: len(LEFT_OUT)]: row["count"] for row in about["not_included"]}


def test_one_person_alone_gets_a_copy_that_names_what_it_leaves_out(ada: Subject, officer: User) -> None:
    memory = approved_memory("Likes tea.", subject=ada)
    for name, quote in (("locked", "quoted behind the lock"), ("open", "quoted openly")):
        Evidence.objects.create(memory=memory, quote=quote, record_id=record(name).pk, session_id=name)
    Signal.objects.create(subject=ada, kind="preference", text="noted behind the lock", session_id="locked")
    case = checked_access(ada, by=officer)
    desk = signed_in(officer)
    page = desk.get(case.get_absolute_url())
    assert "Build the copy without them" in page.text
    assert "1 of the person's sessions is locked or encrypted" in " ".join(page.text.split())
    desk.post(reverse("erasure:copy-build", args=[case.id]))
    copy = finished(AccessCopy.objects.select_related("run", "request__subject").get())
    text = all_text(opened(copy))
    assert OPEN in text
    assert "quoted openly" in text
    assert SECRET not in text
    assert "quoted behind the lock" not in text
    assert "noted behind the lock" not in text
    assert text.count("(from a locked session: left out)") == 4
    assert reasons(copy)[LEFT_OUT] == 1
    assert LEFT_OUT in opened(copy).read("index.html").decode()
    assert (copy.locked, copy.run.exceptions) == ([], [["locked", "main", 1]])
    assert "Without locked sessions" in desk.get(case.get_absolute_url()).text


def test_a_second_person_approves_a_copy_with_them(ada: Subject, officer: User, second: User) -> None:
    case = checked_access(ada, by=officer)
    desk, other = signed_in(officer), signed_in(second)
    desk.post(reverse("erasure:copy-ask", args=[case.id]))
    case.refresh_from_db()
    assert case.state == State.AWAITING
    assert not AccessCopy.objects.exists()
    approval = reverse("erasure:copy-approve", args=[case.id])
    assert desk.post(approval, {"shown": shown(case)}).status_code == 403
    assert [each.title for each in waiting_at_home(second).waiting] == ["1 copy request to decide"]
    page = other.get(case.get_absolute_url())
    assert "1 locked session" in page.text
    assert "Approve the copy with them" in page.text
    assert other.post(approval, {"shown": shown(case)}).status_code == 302
    copy = finished(AccessCopy.objects.select_related("run", "request__subject").get())
    assert SECRET in all_text(opened(copy))
    assert (copy.locked, LEFT_OUT in reasons(copy)) == ([record("locked").pk], False)
    services.fetch(copy.request, services.make_link(copy.request, by=officer), by=officer)
    read = AuditEvent.objects.get(type="session.copied")
    assert read.object_ref == record("locked").pk


def test_what_is_locked_or_attached_after_the_approval_is_left_out(ada: Subject, officer: User, second: User) -> None:
    copy = approved_copy(ada, by=officer, second=second)
    mark_sensitive([record("open")], by=officer)
    add_items("late", "words that came late")
    attach_sessions([record("late")], ada, by=officer)
    bob = make_subject("bob-1")
    add_items("bobs", "words of another subject")
    attach_sessions([record("bobs")], bob, by=officer)
    mark_sensitive([record("late"), record("bobs")], by=officer)
    merge_subjects(bob, ada, by=officer)
    text = all_text(opened(finished(copy)))
    assert SECRET in text
    assert OPEN not in text
    assert "words of another subject" not in text
    assert "came late" not in text
    assert reasons(copy)[LEFT_OUT] == 3


def test_what_is_locked_while_the_copy_is_built_is_left_out(
    ada: Subject, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = building.write_parts

    def written_and_locked(*given: Any, **named: Any) -> Any:
        counts = whole(*given, **named)
        mark_sensitive([record("open")], by=officer)
        return counts

    monkeypatch.setattr(building, "write_parts", written_and_locked)
    copy = built_copy(ada, by=officer)
    assert OPEN not in all_text(opened(copy))
    assert reasons(copy)[LEFT_OUT] == 2


def test_what_changed_since_it_was_asked_for_is_not_approved(ada: Subject, officer: User, second: User) -> None:
    case = services.request_full_copy(checked_access(ada, by=officer), by=officer)
    mark_sensitive([record("open")], by=officer)
    with pytest.raises(ChangedSinceAsked):
        services.approve_full_copy(case, by=second, shown=shown(case))
    page = signed_in(second).get(case.get_absolute_url())
    assert "This has changed since the approval was requested." in page.text
    cases.reject_request(case, by=second)
    case.refresh_from_db()
    assert (case.state, AccessCopy.objects.count()) == (State.CHECKED, 0)


def test_an_approval_is_for_one_copy(ada: Subject, officer: User, second: User) -> None:
    copy = full_copy(ada, by=officer, second=second)
    AccessCopy.objects.update(expires_at=now())
    assert deleting.delete_expired() == 1
    again = services.build_access_copy(copy.request, by=officer)
    finished(again)
    assert SECRET not in all_text(opened(again))


def test_the_worker_checks_the_approval_itself(ada: Subject, officer: User, second: User, settings: Settings) -> None:
    """Broken variants of the rows: what was shown is another list, the approval of another kind, or not needed."""
    copy = approved_copy(ada, by=officer, second=second)
    approval = copy.approval
    assert approval is not None
    other = str(make_session(subject=ada, is_sensitive=True).pk)
    case = SubjectRequest.objects.get()
    before, decision = case.preview, approval.decision

    def allowed() -> int:
        found = AccessCopy.objects.select_related("request__approval").get()
        return len(approved_sessions(found))

    assert allowed() == 1
    with without_triggers():
        wider = {**before["locked"], "sessions": [*before["locked"]["sessions"], other]}
        SubjectRequest.objects.update(preview=before | {"locked": wider})
        assert allowed() == 0
        SubjectRequest.objects.update(preview=before)
        for changes in ({"decision": "rejected"}, {"decision": "not_needed"}, {"kind": "erasure"}):
            type(approval).objects.filter(pk=approval.pk).update(**changes)
            assert allowed() == 0, changes
            type(approval).objects.filter(pk=approval.pk).update(decision=decision, kind="access_copy")
        type(approval).objects.filter(pk=approval.pk).update(decision="not_needed")
        settings.GRANT_APPROVAL = False
        assert allowed() == 1
        AccessCopy.objects.update(approval=None)
        assert allowed() == 0


def test_encrypted_sessions_take_a_second_person_too(officer: User, second: User, keys: Any) -> None:
    attach_main_store()
    SessionStore.objects.update(encryption_key="old")
    ada = make_subject("ada-1")
    add_sealed("sealed", "my sealed words", key=OLD_KEY)
    attach_sessions(SessionRecord.objects.all(), ada, by=officer)
    # Before an inspection nobody knows that the session is encrypted: then its items stay closed.
    copy = built_copy(ada, by=officer)
    assert "my sealed words" not in all_text(opened(copy))
    assert ["stay_encrypted", "", 1] in copy.run.exceptions
    inspect_quiet_sessions(quiet=timedelta(0))
    AccessCopy.objects.update(expires_at=now())
    deleting.delete_expired()
    without = finished(services.build_access_copy(copy.request, by=officer))
    assert "my sealed words" not in all_text(opened(without))
    assert reasons(without)[LEFT_OUT] == 1
    AccessCopy.objects.update(expires_at=now())
    deleting.delete_expired()
    request = services.request_full_copy(without.request, by=officer)
    approved = services.approve_full_copy(request, by=second, shown=shown(request))
    assert "my sealed words" in all_text(opened(finished(approved)))


def test_who_asks_and_who_downloads_states_a_purpose(
    ada: Subject, officer: User, second: User, settings: Settings
) -> None:
    settings.PURPOSE_REQUIRED = True
    stated = {"purpose-again": "yes", "purpose-code": "subject_request", "purpose-ticket": ""}
    case = checked_access(ada, by=officer)
    desk, other = signed_in(officer), signed_in(second)
    asked = reverse("erasure:copy-ask", args=[case.id])
    assert "Choose a purpose" in desk.post(asked).text
    case.refresh_from_db()
    assert case.state == State.CHECKED
    assert desk.post(asked, stated).status_code == 302
    page = other.get(case.get_absolute_url())
    assert "data-subject request (access or erasure)" in page.text
    other.post(reverse("erasure:copy-approve", args=[case.id]), {"shown": shown(case)})
    finished(AccessCopy.objects.select_related("run", "request__subject").get())
    link = reverse("erasure:copy-link", args=[case.id])
    assert "Choose a purpose" in other.post(link).text
    address = other.post(link, stated)["Location"]
    # Another browser of the same person has stated none.
    assert signed_in(second).get(address)["Location"].startswith("/accounts/purpose/")
    assert other.get(address).status_code == 200
    assert AuditEvent.objects.get(type="session.copied").reason_code == "subject_request"


def downloaded(copy: AccessCopy, browser: Client) -> Any:
    return browser.get(browser.post(reverse("erasure:copy-link", args=[copy.request.id]))["Location"])


def test_its_locked_sessions_count_as_opened_by_who_downloads_it(
    ada: Subject, officer: User, second: User, settings: Settings
) -> None:
    settings.READ_LIMIT = settings.READ_NOTICE = 2
    mark_sensitive([record("open")], by=officer)
    copy = full_copy(ada, by=officer, second=second)
    other = make_session()
    rules.check_reading_limit(second, [other.pk])
    audit.record_alone(SESSION_VIEWED, by=second, target=other)
    page = downloaded(copy, signed_in(second))
    assert (page.status_code, "1 session within an hour, and these are 2 more" in page.text) == (429, True)
    assert int(page["Retry-After"]) > 3000
    copy.refresh_from_db()
    assert copy.fetched_at is None
    assert copy.token_digest, "the link stays unused"
    assert downloaded(copy, signed_in(officer)).status_code == 200
    with pytest.raises(ReadingStopped):
        rules.check_reading_limit(officer, [other.pk])
    assert downloaded(copy, signed_in(officer)).status_code == 200, "the same sessions count once"


def test_a_copy_above_the_whole_limit_stays_possible(
    ada: Subject, officer: User, second: User, settings: Settings
) -> None:
    settings.READ_LIMIT = settings.READ_NOTICE = 1
    mark_sensitive([record("open")], by=officer)
    case = services.request_full_copy(checked_access(ada, by=officer), by=officer)
    page = " ".join(signed_in(second).get(case.get_absolute_url()).text.split())
    assert "These are more than the reading limit of 1 session within an hour" in page
    copy = finished(services.approve_full_copy(case, by=second, shown=shown(case)))
    assert downloaded(copy, signed_in(officer)).status_code == 200
    assert AuditEvent.objects.filter(type="session.copied").count() == 2


def test_without_a_second_person_where_none_is_required(ada: Subject, officer: User, settings: Settings) -> None:
    settings.GRANT_APPROVAL = False
    case = checked_access(ada, by=officer)
    assert signed_in(officer).post(reverse("erasure:copy-ask", args=[case.id])).status_code == 302
    copy = finished(AccessCopy.objects.select_related("run", "request__subject").get())
    assert SECRET in all_text(opened(copy))


def test_only_who_may_decides_and_only_about_such_a_request(ada: Subject, officer: User, second: User) -> None:
    case = services.request_full_copy(checked_access(ada, by=officer), by=officer)
    for user in (officer, person("support")):
        with pytest.raises(NotAllowed):
            services.approve_full_copy(case, by=user, shown=shown(case))
    with pytest.raises(WrongState):
        cases.approve_request(case, by=second, typed="ada-1", shown=shown(case))
    assert not AccessCopy.objects.exists()
    ada.aliases.update(key=second.username)
    with pytest.raises(NotAllowed, match="about yourself"):
        services.approve_full_copy(case, by=second, shown=shown(case))
    cases.reject_request(case, by=officer)
    with pytest.raises(OwnRequest):
        services.request_full_copy(case, by=second)
    nobody = checked_access(make_subject("bob-1"), by=officer)
    with pytest.raises(services.NothingLocked):
        services.request_full_copy(nobody, by=officer)


def test_copies_of_an_earlier_version_expire_with_a_sentence(ada: Subject, officer: User, second: User) -> None:
    copy = full_copy(ada, by=officer, second=second)
    bob = make_subject("bob-1")
    others = built_copy(bob, by=officer)
    run_sql(sql_text("erasure", "locked_copies.sql"))
    assert deleting.delete_expired() == 1
    copy.refresh_from_db()
    others.refresh_from_db()
    assert (copy.state, others.state) == (AccessCopy.State.DELETED, AccessCopy.State.READY)
    page = signed_in(officer).get(copy.request.get_absolute_url()).text
    assert "This copy was begun before locked sessions took a second person, and is deleted." in page
    assert "Build the copy without them" in page
