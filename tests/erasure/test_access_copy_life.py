"""Life of a copy: who starts it, one download for each link, hand-over, expiry, and the erasure of its subject."""

from __future__ import annotations

import io
import os
import time
from datetime import timedelta
from typing import Any
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin.accounts.reauth import CONFIRMED_AT
from memadmin.audit.models import AuditEvent
from memadmin.deploy.roles import Roles
from memadmin.derived_keys import SecretKeyChanged
from memadmin.erasure.access_copy import deleting, files, jobs, services
from memadmin.erasure.access_copy.keys import unwrapped
from memadmin.erasure.models import AccessCopy, ErasureStep, SubjectRequest
from memadmin.erasure.services import RequestError, WrongState
from memadmin.runs import engine
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, Subject
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store, value_of
from tests.builders import make_subject
from tests.deploy.connecting import bring_into_force, logged_in_as
from tests.erasure.builders import approved, make_request, work_off
from tests.erasure.copies import built_copy, checked_access, files_in_folder, opened, started_copy
from tests.memories.builders import approved as approved_memory
from tests.people import person, signed_in_by_password

pytestmark = pytest.mark.usefixtures("copies_folder", "agent_tables")

State = SubjectRequest.State


@pytest.fixture
def ada(officer: User) -> Subject:
    attach_main_store()
    subject = make_subject("ada-1")
    add_items("a1", "words of Ada")
    attach_sessions(SessionRecord.objects.filter(session_id="a1"), subject, by=officer)
    return subject


def count_events(name: str) -> int:
    return AuditEvent.objects.filter(type=name).count()


def body(response: HttpResponseBase) -> bytes:
    return b"".join(response.streaming_content)  # type: ignore[attr-defined]


def address(copy: AccessCopy, name: str, *args: str) -> str:
    return reverse(f"erasure:copy-{name}", args=[copy.request.id, *args])


def link_to(copy: AccessCopy, browser: Client) -> str:
    response = browser.post(address(copy, "link"))
    assert response.status_code == 302
    return str(response["Location"])


# --- start ------------------------------------------------------------------------------------------------------------


def test_only_a_checked_access_request_is_copied(ada: Subject, officer: User) -> None:
    received = make_request(ada, by=officer, kind=SubjectRequest.Kind.ACCESS)
    with pytest.raises(WrongState):
        services.build_access_copy(received, by=officer)
    erasure = make_request(ada, by=officer)
    SubjectRequest.objects.filter(pk=erasure.pk).update(state=State.CHECKED)
    with pytest.raises(WrongState):
        services.build_access_copy(erasure, by=officer)
    assert not AccessCopy.objects.exists()


def test_a_copy_is_built_once_at_a_time(ada: Subject, officer: User) -> None:
    request = checked_access(ada, by=officer)
    services.build_access_copy(request, by=officer)
    with pytest.raises(WrongState):
        services.build_access_copy(request, by=officer)
    request.refresh_from_db()
    assert request.state == State.RUNNING
    assert request.due_on > request.received_on


def test_the_roles_of_web_server_and_worker_are_enough(ada: Subject, officer: User, kept_in_force: Roles) -> None:
    memory = approved_memory("likes tea", subject=ada)
    bring_into_force(kept_in_force)
    with logged_in_as(kept_in_force["web"]):
        copy = started_copy(ada, by=officer)
    with logged_in_as(kept_in_force["worker"]):
        assert value_of("SELECT current_user") == kept_in_force["worker"]
        run = engine.carry_on(copy.run)
        assert run.state == Run.State.COMPLETE, run.reason
    with logged_in_as(kept_in_force["web"]):
        content = b"".join(services.fetch(copy.request, services.make_link(copy.request, by=officer), by=officer)[1])
        services.hand_over(copy.request, note="by post", by=officer)
    assert memory.statement in ZipFile(io.BytesIO(content)).read("memories.html").decode()
    with logged_in_as(kept_in_force["worker"]):
        AccessCopy.objects.update(expires_at=now())
        assert deleting.delete_expired() == 1


# --- download ---------------------------------------------------------------------------------------------------------


def test_a_link_is_for_one_download(ada: Subject, officer: User) -> None:
    copy, browser = built_copy(ada, by=officer), signed_in_by_password(officer)
    link = link_to(copy, browser)
    assert browser.head(link).status_code == 200
    response = browser.get(link)
    content = body(response)
    assert (response.status_code, response["Content-Type"]) == (200, "application/zip")
    assert response["Content-Length"] == str(len(content))
    assert "no-store" in response["Cache-Control"]
    assert "words of Ada" in ZipFile(io.BytesIO(content)).read("sessions/1.html").decode()
    again = browser.get(link)
    assert again.status_code == 410
    assert "This link was used already" in again.content.decode()
    assert count_events("access.copy_fetched") == 1
    copy.refresh_from_db()
    assert copy.fetched_by == officer

    second = link_to(copy, browser)
    assert second != link
    assert count_events("access.link_made") == 2
    assert body(browser.get(second)) == content


def test_a_new_link_ends_the_one_before(ada: Subject, officer: User) -> None:
    copy, browser = built_copy(ada, by=officer), signed_in_by_password(officer)
    first, second = link_to(copy, browser), link_to(copy, browser)
    assert browser.get(first).status_code == 410
    assert browser.get(second).status_code == 200


def test_a_link_expires(ada: Subject, officer: User) -> None:
    copy, browser = built_copy(ada, by=officer), signed_in_by_password(officer)
    link = link_to(copy, browser)
    AccessCopy.objects.update(token_until=now() - timedelta(seconds=1))
    assert browser.get(link).status_code == 410
    assert count_events("access.copy_fetched") == 0


def test_a_guessed_link_is_none(ada: Subject, officer: User) -> None:
    copy, browser = built_copy(ada, by=officer), signed_in_by_password(officer)
    assert browser.get(address(copy, "fetch", "guessed")).status_code == 410
    link_to(copy, browser)
    assert browser.get(address(copy, "fetch", "guessed")).status_code == 410


def test_the_token_is_not_stored(ada: Subject, officer: User) -> None:
    copy = built_copy(ada, by=officer)
    token = services.make_link(copy.request, by=officer)
    assert token not in str(list(AccessCopy.objects.values()))
    assert not AuditEvent.objects.filter(detail__details__contains=token).exists()


def test_it_needs_the_permission_and_a_recent_sign_in(ada: Subject, officer: User) -> None:
    copy = built_copy(ada, by=officer)
    link = link_to(copy, signed_in_by_password(officer))
    for name in ("support", "auditor", "administrator", "reviewer"):
        other = signed_in_by_password(person(name))
        assert other.get(link).status_code == 403
        for verb in ("build", "link", "hand-over", "leave-out"):
            assert other.post(address(copy, verb)).status_code == 403
    not_lately = signed_in_by_password(officer)
    session = not_lately.session
    session[CONFIRMED_AT] -= 301
    session.save()
    assert not_lately.get(link).status_code == 302
    assert not_lately.post(address(copy, "link")).status_code == 422
    assert Client().get(link).status_code == 302
    assert count_events("access.copy_fetched") == 0


def test_of_another_machine_the_file_is_missed_and_the_link_stays(ada: Subject, officer: User) -> None:
    copy, browser = built_copy(ada, by=officer), signed_in_by_password(officer)
    link = link_to(copy, browser)
    content = files.file_of(copy).read_bytes()
    files.file_of(copy).unlink()
    response = browser.get(link)
    assert (response.status_code, "MEMADMIN_DATA_DIR" in response.content.decode()) == (409, True)
    files.file_of(copy).write_bytes(content)
    assert browser.get(link).status_code == 200


def test_a_new_secret_key_leaves_a_sentence(ada: Subject, officer: User, settings: Any) -> None:
    copy = built_copy(ada, by=officer)
    before, settings.SECRET_KEY = settings.SECRET_KEY, "another" * 10
    with pytest.raises(SecretKeyChanged):
        unwrapped(copy.key)
    settings.SECRET_KEY_FALLBACKS = [before]
    assert opened(copy).testzip() is None


# --- hand-over --------------------------------------------------------------------------------------------------------


def test_the_case_is_complete_when_the_copy_was_handed_over(ada: Subject, officer: User) -> None:
    copy, browser = built_copy(ada, by=officer), signed_in_by_password(officer)
    early = browser.post(address(copy, "hand-over"), {"note": "by post"})
    assert early.status_code == 409
    body(browser.get(link_to(copy, browser)))
    copy.request.refresh_from_db()
    assert copy.request.state == State.RUNNING
    assert browser.post(address(copy, "hand-over"), {"note": ""}).status_code == 422
    assert browser.post(address(copy, "hand-over"), {"note": "by post"}).status_code == 302
    copy.request.refresh_from_db()
    assert (copy.request.state, copy.request.is_closed) == (State.COMPLETE, True)
    assert count_events("access.copy_handed_over") == 1
    assert files.file_of(copy).exists()


def test_the_page_offers_what_is_possible(ada: Subject, officer: User) -> None:
    browser = signed_in_by_password(officer)
    request = checked_access(ada, by=officer)
    page = browser.get(request.get_absolute_url()).content.decode()
    assert "Build the copy" in page
    assert "Download" not in page
    assert browser.post(reverse("erasure:copy-build", args=[request.id])).status_code == 302
    page = browser.get(request.get_absolute_url()).content.decode()
    assert "being built" in page
    copy = AccessCopy.objects.get()
    AccessCopy.objects.update(waits_for=["elsewhere"])
    assert "Build without it" in browser.get(request.get_absolute_url()).content.decode()
    engine.carry_on(copy.run)
    page = browser.get(request.get_absolute_url()).content.decode()
    assert "Download with a one-time link" in page
    assert "The person has received it" not in page
    body(browser.get(link_to(copy, browser)))
    page = browser.get(request.get_absolute_url()).content.decode()
    assert "Download again with a new link" in page
    assert "The person has received it" in page


# --- end --------------------------------------------------------------------------------------------------------------


def test_an_expired_copy_is_deleted_with_its_key(ada: Subject, officer: User) -> None:
    copy, kept = built_copy(ada, by=officer), built_copy(make_subject("bob-1"), by=officer)
    AccessCopy.objects.filter(pk=copy.pk).update(expires_at=now() - timedelta(seconds=1))
    with pytest.raises(RequestError):
        services.make_link(copy.request, by=officer)
    jobs.delete_access_copies(int(time.time()))
    copy.refresh_from_db()
    copy.request.refresh_from_db()
    assert (copy.state, bytes(copy.key), copy.file_name) == (AccessCopy.State.DELETED, b"", "")
    assert copy.request.state == State.CHECKED
    assert files_in_folder() == [files.file_of(kept)]
    assert AuditEvent.objects.get(type="access.copy_deleted").reason_code == "expired"
    assert opened(built_again(copy, officer)).testzip() is None


def built_again(copy: AccessCopy, officer: User) -> AccessCopy:
    again = services.build_access_copy(copy.request, by=officer)
    engine.carry_on(again.run)
    again.refresh_from_db()
    return again


def test_a_copy_that_was_never_finished_expires(ada: Subject, officer: User) -> None:
    copy = started_copy(ada, by=officer)
    files.make_parts_folder(copy)
    AccessCopy.objects.update(expires_at=now() - timedelta(seconds=1))
    assert deleting.delete_expired() == 1
    copy.refresh_from_db()
    assert copy.state == AccessCopy.State.DELETED
    assert files_in_folder() == []
    assert deleting.delete_expired() == 0


def test_files_of_no_copy_are_deleted_when_they_are_old(ada: Subject, officer: User) -> None:
    copy, begun = built_copy(ada, by=officer), started_copy(make_subject("bob-1"), by=officer)
    files.make_parts_folder(begun)
    old, fresh, folder = (files.folder() / name for name in ("old", "fresh", "old.parts"))
    old.write_bytes(b"x")
    fresh.write_bytes(b"x")
    folder.mkdir()
    (folder / "part").write_bytes(b"x")
    past = time.time() - 2 * files.ORPHAN_SECONDS
    for path in (old, folder, files.file_of(copy), files.parts_of(begun)):
        os.utime(path, (past, past))
    assert files.delete_orphans() == 2
    assert set(files_in_folder()) == {fresh, files.file_of(copy), files.parts_of(begun)}


def test_an_erasure_deletes_the_copies_of_the_person(ada: Subject, officer: User, second: User) -> None:
    finished = built_copy(ada, by=officer)
    SubjectRequest.objects.filter(pk=finished.request_id).update(state=State.COMPLETE, closed_at=now())
    begun = started_copy(ada, by=officer)
    files.make_parts_folder(begun)
    kept = built_copy(make_subject("bob-1"), by=officer)
    erasure = approved(ada, by=officer, second=second)
    assert erasure.run is not None
    run = work_off(erasure)
    assert erasure.state == State.SCANNING, run.reason
    step = ErasureStep.objects.get(request=erasure, name="access_copies")
    assert (step.expected, step.erased, step.state) == (2, 2, ErasureStep.State.DONE)
    assert files_in_folder() == [files.file_of(kept)]
    assert list(AccessCopy.objects.filter(request__subject=ada).values_list("state", "key")) == [("deleted", b"")] * 2
    begun.run.refresh_from_db()
    assert begun.run.is_finished
    identity = ErasureStep.objects.get(request=erasure, name="identity")
    assert step.position < identity.position


def test_a_copy_that_cannot_be_deleted_stops_no_other(
    ada: Subject, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = built_copy(ada, by=officer), built_copy(make_subject("bob-1"), by=officer)
    AccessCopy.objects.update(expires_at=now() - timedelta(seconds=1))
    delete_all = files.delete_all

    def refused_once(copy: AccessCopy) -> None:
        if copy.pk == first.pk:
            raise PermissionError
        delete_all(copy)

    monkeypatch.setattr(files, "delete_all", refused_once)
    assert deleting.delete_expired() == 1
    assert AccessCopy.objects.get(state=AccessCopy.State.READY) == first
    monkeypatch.undo()
    assert deleting.delete_expired() == 1
