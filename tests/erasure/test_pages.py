"""The pages of requests: list, form, one case, and each action on it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.erasure import locators, services
from memadmin.erasure.data_map.services import change_record
from memadmin.erasure.holder_view_models import scan_lines
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.services import OwnRequest
from memadmin.runs import engine
from memadmin.runs.models import Run
from memories_app.models import LearningStop
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.sessions import attach_sessions
from sessions_app.services.subjects import merge_subjects
from tests.accounts.factors import let_proof_age
from tests.agents import add_items, attach_main_store
from tests.approvals import shown
from tests.builders import make_subject
from tests.erasure.builders import Kind, approved, awaiting, make_request, work_off
from tests.erasure.test_data_map_pages import HEAD
from tests.people import person, signed_in
from tests.retention.builders import make_hold

pytestmark = pytest.mark.django_db

State = SubjectRequest.State


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def colleague() -> User:
    return person("compliance", "reviewer")


@pytest.fixture
def first(officer: User) -> Client:
    return signed_in(officer)


@pytest.fixture
def second(colleague: User) -> Client:
    return signed_in(colleague)


@pytest.fixture
def subject() -> Subject:
    return make_subject("cust_1")


def values(**changed: str) -> dict[str, str]:
    return {
        "kind": "erasure",
        "subject_kind": "user",
        "key": "cust_1",
        "channel": "letter",
        "received_on": str(now().date()),
        "ground": "consent",
        "known_as": "",
        "note": "",
        **changed,
    }


def erased(subject: Subject, officer: User, colleague: User) -> SubjectRequest:
    """A request about a subject with two sessions in a real store, after the first scan."""
    attach_main_store()
    for name in ("a1", "a2"):
        add_items(name, "tea", "coffee")
    attach_sessions(SessionRecord.objects.filter(session_id__startswith="a"), subject, by=officer)
    request = approved(subject, by=officer, second=colleague)
    run = work_off(request)
    assert request.state == State.SCANNING, run.reason
    return request


def finish(request: SubjectRequest, settings: Any) -> SubjectRequest:
    """The request after its second scan."""
    settings.RESCAN_AFTER = timedelta(0)
    Run.objects.filter(subject_request=request).update(retry_at=None)
    request.refresh_from_db()
    run = work_off(request)
    assert request.is_closed, run.reason
    return request


# --- list -------------------------------------------------------------------------------------------------------------


def test_the_first_visit_says_what_requests_are_for(first: Client) -> None:
    page = text(first.get("/requests/"))
    assert "No requests yet" in page
    assert "needs a second person, and ends with a signed receipt" in " ".join(page.split())


def test_open_requests_come_first_by_due_date_then_closed_ones(first: Client, officer: User) -> None:
    today = now().date()
    late = make_request(make_subject("late_1"), by=officer, received_on=today - timedelta(days=60))
    soon = make_request(make_subject("soon_1"), by=officer, received_on=today - timedelta(days=28))
    new = make_request(make_subject("new_1"), by=officer, kind=Kind.ACCESS)
    closed = services.cancel_request(make_request(make_subject("gone_1"), by=officer), note="", by=officer)
    page = text(first.get("/requests/"))
    places = [page.index(str(case)) for case in (late, soon, new, closed)]
    assert places == sorted(places)
    for words in ("days overdue", "ink-red", "left", "new_1", "cancelled", "closed "):
        assert words in page
    for query, listed in (
        ("kind=access", {new}),
        ("state=closed", {closed}),
        (f"number={new}", {new}),
        (f"number={closed.number}", {closed}),
        ("state=mine", {late, soon, new}),
    ):
        page = text(first.get(f"/requests/?{query}"))
        assert {case for case in (late, soon, new, closed) if case.get_absolute_url() in page} == listed, query


@pytest.mark.parametrize("query", ["kind=odd", "state=odd", "number=odd", "cursor=odd"])
def test_a_wrong_filter_gets_a_sentence_and_no_rows(query: str, first: Client, officer: User, subject: Subject) -> None:
    case = make_request(subject, by=officer)
    answer = first.get(f"/requests/?{query}")
    assert answer.status_code == 400
    assert case.get_absolute_url() not in text(answer)
    assert "No requests yet" not in text(answer)


def test_what_needs_me_is_what_another_person_asked_for(
    first: Client, second: Client, officer: User, subject: Subject
) -> None:
    case = awaiting(subject, by=officer)
    assert case.get_absolute_url() not in text(first.get("/requests/?state=mine"))
    assert case.get_absolute_url() in text(second.get("/requests/?state=mine"))
    assert "waiting for you" in text(second.get(case.get_absolute_url()))
    assert "waiting for you" not in text(first.get(case.get_absolute_url()))


def test_pages_of_many_requests(first: Client, officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [make_request(make_subject(), by=officer) for _ in range(53)]
    closed = services.cancel_request(make_request(make_subject(), by=officer), note="", by=officer)
    page = first.get("/requests/")
    assert closed.get_absolute_url() not in text(page)
    older = page.context["page"].older
    rest = text(first.get("/requests/", {"cursor": older}))
    assert sum(case.get_absolute_url() in rest for case in cases) == 3
    assert closed.get_absolute_url() in rest


# --- new request ------------------------------------------------------------------------------------------------------


def test_a_request_is_opened_listed_and_recorded(first: Client, subject: Subject) -> None:
    answer = first.post("/requests/new/", values(known_as="Ada Example\n\nada@example.invalid", note="by letter"))
    case = SubjectRequest.objects.get()
    assert answer.url == case.get_absolute_url()  # type: ignore[attr-defined]
    assert locators.unseal(case.locators) == ["Ada Example", "ada@example.invalid"]
    page = text(first.get(case.get_absolute_url()))
    for words in (str(case), "cust_1", "by letter", "Check the identity", "received by letter"):
        assert words in page
    assert "Ada Example" not in page
    assert "cust_1" in text(first.get("/requests/"))
    event = AuditEvent.objects.get(type="request.opened")
    assert (event.subject_ref, event.object_ref) == (subject.pk, case.id)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"key": "nobody"}, "There is no subject with the user ID nobody."),
        ({"key": " "}, "Enter the ID of the subject."),
        ({"key": "a\0b"}, "Null characters are not allowed."),
        ({"kind": "odd"}, "A request is for erasure, access or restriction."),
        ({"subject_kind": "label"}, "A request is about a user, project or tenant."),
        ({"channel": "command"}, "Choose how the request was received."),
        ({"ground": ""}, "Choose the ground of the erasure."),
        ({"received_on": "soon"}, "Enter a date"),
        ({"received_on": timedelta(days=1)}, "and not in the future"),
        ({"received_on": timedelta(days=-366)}, "within the last year"),
        ({"known_as": "ok\nno way"}, "Each line has 3 to 200 characters"),
        ({"known_as": "\n".join(f"name {number}" for number in range(51))}, "At most 50 lines."),
    ],
)
def test_wrong_input_gets_a_sentence_and_stays(
    changed: dict[str, str | timedelta], sentence: str, first: Client, subject: Subject
) -> None:
    """A length of time is a day that far from the day of the test."""
    given = {name: str(now().date() + it) if isinstance(it, timedelta) else it for name, it in changed.items()}
    answer = first.post("/requests/new/", values(**given))
    assert answer.status_code == 422
    assert sentence in text(answer)
    assert 'value="cust_1"' in text(answer) or "key" in changed
    assert not SubjectRequest.objects.exists()


def test_a_merged_id_is_about_the_remaining_subject(first: Client, officer: User, subject: Subject) -> None:
    merge_subjects(make_subject("old_1"), subject, by=officer)
    answer = first.post("/requests/new/", values(key="old_1"), follow=True)
    assert "The request is about the remaining subject." in text(answer)
    assert SubjectRequest.objects.get().subject == subject


def test_the_page_names_what_is_erased_with_a_merged_subject(first: Client, officer: User) -> None:
    subject, other = make_subject("cust_1"), make_subject("cust_2")
    request = make_request(subject, by=officer)
    words = "Several subjects were merged into this one"
    assert words not in text(first.get(request.get_absolute_url()))
    merge_subjects(other, subject, by=officer)
    page = text(first.get(request.get_absolute_url()))
    assert words in page
    assert "cust_2" in page


def test_from_the_list_the_batches_are_one_step_away(first: Client) -> None:
    assert 'href="/requests/batches/"' in first.get("/requests/").content.decode()


def test_a_second_request_joins_the_open_one(first: Client, subject: Subject) -> None:
    first.post("/requests/new/", values())
    answer = first.post("/requests/new/", values(note="again"), follow=True)
    case = SubjectRequest.objects.get()
    assert f"The new one joined {case}." in text(answer)
    assert "The same request was received again" in text(answer)


def test_a_ground_is_asked_for_erasures_alone(first: Client, subject: Subject) -> None:
    first.post("/requests/new/", values(kind="access", ground="consent"))
    assert SubjectRequest.objects.get().ground == ""


def test_the_page_of_a_subject_leads_to_the_form_and_to_its_requests(
    first: Client, officer: User, subject: Subject
) -> None:
    assert f"/requests/new/?subject={subject.pk}" in text(first.get(subject.get_absolute_url()))
    assert 'value="cust_1"' in text(first.get(f"/requests/new/?subject={subject.pk}"))
    assert first.get("/requests/new/?subject=nonsense").status_code == 200
    case = make_request(subject, by=officer)
    page = text(first.get(subject.get_absolute_url()))
    assert str(case) in page
    assert case.get_absolute_url() in page


# --- a case until its approval ----------------------------------------------------------------------------------------


def test_a_case_from_its_receipt_to_its_approval(
    first: Client, second: Client, officer: User, subject: Subject
) -> None:
    case = make_request(subject, by=officer)
    own = case.get_absolute_url()
    assert first.post(f"{own}check/", {"note": ""}).status_code == 422
    assert first.post(f"{own}ask/").status_code == 409
    assert first.post(f"{own}check/", {"note": "called back"}).status_code == 302
    assert first.post(f"{own}check/", {"note": "again"}).status_code == 409
    assert "approval needs a preview of the last 24 hours" in text(first.get(own))
    refused = first.post(f"{own}ask/")
    assert (refused.status_code, "Count first what would be erased" in text(refused)) == (409, True)
    assert first.post(f"{own}count/").status_code == 302
    page = text(first.get(own))
    for words in ("What would be erased", "IDs of the person and of the sessions", "Count again", "called back"):
        assert words in page
    assert first.post(f"{own}ask/").status_code == 302
    assert "Another person than the requester has to approve it." in text(first.get(own))
    page = text(second.get(own))
    for words in (
        "Approve as the second person",
        "What would be erased",
        "compliance asks to erase",
        "cancel window of 4 h",
    ):
        assert words in page, words
    case.refresh_from_db()
    confirmed = {"is_read": "on", "typed": "cust_1", "shown": shown(case)}
    for wrong, sentence in (
        ({"is_read": ""}, "Read the preview first"),
        ({"typed": ""}, "Type the confirmation."),
        ({"typed": "cust_2"}, "This is not an ID of the subject."),
    ):
        answer = second.post(f"{own}approve/", {**confirmed, **wrong})
        assert (answer.status_code, sentence in text(answer)) == (422, True), sentence
    refused = first.post(f"{own}approve/", confirmed)
    assert (refused.status_code, "Another person has to decide." in text(refused)) == (403, True)
    assert second.post(f"{own}approve/", confirmed).status_code == 302
    assert second.post(f"{own}approve/", confirmed).status_code == 409
    case.refresh_from_db()
    assert case.state == State.APPROVED
    page = text(first.get(own)).partition("<main")[2]
    for words in ("Until then it can be cancelled", "hx-get", "compliance-reviewer"):
        assert words in page
    assert first.post(f"{own}cancel/", {"note": ""}).status_code == 422
    assert first.post(f"{own}cancel/", {"note": "withdrawn"}).status_code == 302
    page = text(first.get(own))
    assert "cancelled" in page
    assert "hx-get" not in page.partition("<main")[2]
    assert first.post(f"{own}refuse/", {"reason": "identity", "note": "no"}).status_code == 409


def test_an_approval_needs_a_fresh_sign_in(second: Client, officer: User, subject: Subject) -> None:
    case = awaiting(subject, by=officer)
    let_proof_age(second)
    confirmed = {"is_read": "on", "typed": "cust_1", "shown": shown(case)}
    answer = second.post(f"{case.get_absolute_url()}approve/", confirmed)
    assert answer.status_code == 422
    case.refresh_from_db()
    assert case.state == State.AWAITING


def test_a_request_is_sent_back_refused_and_extended(
    first: Client, second: Client, officer: User, subject: Subject
) -> None:
    case = awaiting(subject, by=officer)
    own = case.get_absolute_url()
    assert second.post(f"{own}reject/", {"note": "too broad"}).status_code == 302
    assert second.post(f"{own}reject/", {"note": "again"}).status_code == 409
    page = text(first.get(own))
    assert "too broad" in page
    assert "Ask for approval" in page
    for until, sentence in (("soon", "Enter a date"), (str(case.due_on), "must be after the due date")):
        answer = first.post(f"{own}extend/", {"until": until, "note": "many stores"})
        assert (answer.status_code, sentence in text(answer)) == (422, True)
    later = str(case.due_on + timedelta(days=10))
    assert first.post(f"{own}extend/", {"until": later, "note": "many stores"}).status_code == 302
    assert "extended from" in text(first.get(own))
    assert first.post(f"{own}extend/", {"until": later, "note": "again"}).status_code == 409
    assert first.post(f"{own}comment/", {"note": ""}).status_code == 422
    assert first.post(f"{own}comment/", {"note": "asked legal"}).status_code == 302
    assert "Choose a reason" in text(first.get(own))
    for reason in ("odd", ""):
        assert first.post(f"{own}refuse/", {"reason": reason, "note": "no"}).status_code == 422
    assert first.post(f"{own}refuse/", {"reason": "legal_claim", "note": "claim pending"}).status_code == 302
    page = text(first.get(own))
    assert "Recipients to tell" not in page
    for words in ("Legal claims, article 17(3)(e)", "claim pending", "asked legal", "refused"):
        assert words in page
    assert "refuse/" not in page
    assert first.post(f"{own}comment/", {"note": "told the person"}).status_code == 302


def test_an_erasure_names_the_recipients_to_tell(
    agent_tables: None, first: Client, officer: User, colleague: User, subject: Subject
) -> None:
    case = approved(subject, by=officer, second=colleague)
    assert "Recipients to tell" not in text(first.get(case.get_absolute_url())), "before it started"
    work_off(case)
    assert "names none yet" in text(first.get(case.get_absolute_url()))
    change_record({**HEAD, "recipients": "the parcel service"}, by=officer, seen=None)
    page = text(first.get(case.get_absolute_url())).partition("Recipients to tell")[2]
    assert "the parcel service" in page


def test_a_hold_on_the_subject_is_shown_and_stops_the_approval(
    first: Client, second: Client, officer: User, subject: Subject
) -> None:
    case = awaiting(subject, by=officer)
    hold = make_hold(subject, by=officer)
    own = case.get_absolute_url()
    page = text(second.get(own))
    for words in ("Hold in the way", str(hold), hold.get_absolute_url(), "Nothing can be erased until it is released"):
        assert words in page
    assert "Approve erasure" not in page
    answer = second.post(f"{own}approve/", {"is_read": "on", "typed": "cust_1", "shown": shown(case)})
    assert (answer.status_code, str(hold) in text(answer)) == (409, True)


def test_a_hold_on_one_session_makes_exceptions(
    kept_main_store: SessionStore, first: Client, officer: User, subject: Subject
) -> None:
    add_items("a1", "tea", "coffee")
    attach_sessions(SessionRecord.objects.filter(session_id="a1"), subject, by=officer)
    hold = make_hold(SessionRecord.objects.get(session_id="a1"), by=officer)
    page = text(first.get(awaiting(subject, by=officer).get_absolute_url()))
    for words in (str(hold), "one session.", "Kept until the hold is released.", "complete with exceptions"):
        assert words in page


def test_restriction_and_access_have_no_parts_of_an_erasure(first: Client, officer: User, subject: Subject) -> None:
    for kind in (Kind.ACCESS, Kind.RESTRICTION):
        case = make_request(subject, by=officer, kind=kind)
        own = case.get_absolute_url()
        page = text(first.get(own))
        assert "What would be erased" not in page
        assert "Second person" not in page
        assert ("Copy of the data" in page) == (kind == Kind.ACCESS)
        assert first.post(f"{own}count/").status_code == 409
        assert first.post(f"{own}check/", {"note": "called back"}).status_code == 302
        assert first.get(own).status_code == 200
    assert LearningStop.objects.filter(subject=subject).exists()
    assert SubjectRequest.objects.get(kind=Kind.RESTRICTION).state == State.COMPLETE


# --- requests about an operator ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["compliance-reviewer", "COMPLIANCE-reviewer", "me@example.invalid"])
def test_nobody_handles_a_request_about_themselves(known: str, second: Client, officer: User, colleague: User) -> None:
    User.objects.filter(pk=colleague.pk).update(email="Me@example.invalid")
    subject = make_subject(known)
    case = awaiting(subject, by=officer)
    own = case.get_absolute_url()
    assert "This request is about yourself." in text(second.get(own))
    for verb, sent in (
        ("approve", {"is_read": "on", "typed": known}),
        ("reject", {"note": "no"}),
        ("refuse", {"reason": "identity", "note": "no"}),
        ("cancel", {"note": "no"}),
        ("extend", {"until": str(case.due_on + timedelta(days=2)), "note": "no"}),
        ("count", {}),
    ):
        answer = second.post(f"{own}{verb}/", sent)
        assert (answer.status_code, "This request is about yourself." in text(answer)) == (403, True), verb
    case.refresh_from_db()
    assert case.state == State.AWAITING
    assert AuditEvent.objects.get(type="approval.decided").outcome == "denied"


def test_a_further_name_of_the_case_can_be_the_operators(officer: User, colleague: User, subject: Subject) -> None:
    User.objects.filter(pk=colleague.pk).update(email="me@example.invalid")
    colleague.refresh_from_db()
    case = make_request(subject, by=officer, known_as=["me@example.invalid"])
    with pytest.raises(OwnRequest):
        services.check_identity(case, note="it is me", by=colleague)
    services.check_identity(case, note="called back", by=officer)


def test_whoever_opens_a_request_about_themselves_is_told(second: Client) -> None:
    make_subject("compliance-reviewer")
    answer = second.post("/requests/new/", values(key="compliance-reviewer"), follow=True)
    assert "is about yourself. Another person has to handle it." in text(answer)


# --- running and complete ---------------------------------------------------------------------------------------------


def test_a_running_erasure_shows_its_steps_and_is_paused_and_resumed(
    first: Client, officer: User, colleague: User, subject: Subject
) -> None:
    case = approved(subject, by=officer, second=colleague)
    assert case.run
    SubjectRequest.objects.filter(pk=case.pk).update(state=State.RUNNING, started_at=now())
    for position, (name, place, columns) in enumerate(
        [
            ("sessions", "support", {"state": "done", "expected": 60, "erased": 61}),
            ("sessions", "claims", {"state": "waiting", "expected": 5, "reason": "The store claims does not respond."}),
            ("memories", "", {"state": "running", "expected": 10, "erased": 4}),
            ("signals", "", {}),
        ]
    ):
        ErasureStep.objects.create(request=case, name=name, place=place, position=position, **columns)
    Run.objects.filter(pk=case.run.pk).update(state="running", done=65, total=75, worked_ms=5_000)
    own = case.get_absolute_url()
    page = text(first.get(own))
    for words in (
        *("1 of 4 steps: Memories and proposals", "65 of about 75 rows", "13 rows/s", "86 %"),
        *("1 more than counted", "The store claims does not respond.", "End without it", "Nothing in: Signals."),
        *('hx-trigger="every 2s"', "If something stops"),
    ):
        assert words in page, words
    fragment = text(first.get(own, headers={"HX-Request": "true"}))
    assert 'id="case"' in fragment
    assert "<html" not in fragment
    answer = first.post(f"{own}cancel/", {"note": "too late"})
    assert (answer.status_code, "has started and cannot be stopped any more" in text(answer)) == (409, True)
    assert first.post(f"{own}pause/").status_code == 302
    assert "Paused by compliance" in text(first.get(own))
    assert ">paused<" in " ".join(text(first.get("/requests/")).split())
    assert first.post(f"{own}pause/").status_code == 409
    assert first.post(f"{own}resume/").status_code == 302
    case.run.refresh_from_db()
    assert case.run.state == Run.State.WAITING


def test_no_erasure_starts_before_the_time_to_cancel_is_over(
    first: Client, second: Client, officer: User, subject: Subject
) -> None:
    case = awaiting(subject, by=officer)
    own = case.get_absolute_url()
    second.post(f"{own}approve/", {"is_read": "on", "typed": "cust_1", "shown": shown(case)})
    case.refresh_from_db()
    assert case.run
    assert "resume/" not in text(first.get(own))
    assert first.post(f"{own}resume/").status_code == 302
    engine.carry_on(case.run)
    case.refresh_from_db()
    assert (case.state, case.run.reason) == (State.APPROVED, "The time to cancel is not over.")
    assert case.run.retry_at
    assert first.post(f"{own}cancel/", {"note": "withdrawn"}).status_code == 302


def test_an_erasure_that_a_hold_stopped_is_resumed(
    first: Client, officer: User, colleague: User, subject: Subject
) -> None:
    case = approved(subject, by=officer, second=colleague)
    hold = make_hold(subject, by=officer)
    assert case.run
    engine.carry_on(case.run)
    page = text(first.get(case.get_absolute_url()))
    for words in (">stopped<", f"under the legal hold {hold}", "resume/", hold.get_absolute_url()):
        assert words in page.replace("\n", "").replace("  ", ""), words
    assert first.post(f"{case.get_absolute_url()}resume/").status_code == 302


def test_a_second_account_of_the_requester_approves_nothing(second: Client, officer: User, subject: Subject) -> None:
    case = awaiting(subject, by=officer)
    User.objects.update(email="same@example.invalid")
    answer = second.post(f"{case.get_absolute_url()}approve/", {"is_read": "on", "typed": "cust_1"})
    assert answer.status_code == 403
    page = text(second.get(case.get_absolute_url()))
    assert "You requested this yourself. Another person has to decide." in page
    assert "Approve erasure" not in page
    case.refresh_from_db()
    assert case.state == State.AWAITING


def test_a_waiting_step_is_left_out_with_a_note(
    first: Client, officer: User, colleague: User, subject: Subject
) -> None:
    case = approved(subject, by=officer, second=colleague)
    SubjectRequest.objects.filter(pk=case.pk).update(state=State.RUNNING, started_at=now())
    step = ErasureStep.objects.create(
        request=case, name="sessions", place="claims", position=0, state="waiting", expected=5, reason="It is away."
    )
    address = f"{case.get_absolute_url()}steps/{step.pk}/leave-out/"
    assert "It is away." in text(first.get(address))
    assert first.post(address, {"note": ""}).status_code == 422
    assert first.post(address, {"note": "sold"}).status_code == 302
    assert first.post(address, {"note": "again"}).status_code == 409
    step.refresh_from_db()
    assert step.state == ErasureStep.State.LEFT_OUT
    assert first.get(f"{case.get_absolute_url()}steps/999999/leave-out/").status_code == 404


def test_pausing_needs_the_right_to_control_runs(officer: User, colleague: User, subject: Subject) -> None:
    case = approved(subject, by=officer, second=colleague)
    outsider = person()
    outsider.user_permissions.add(Permission.objects.get(codename="view_request"))
    viewer = signed_in(outsider)
    page = text(viewer.get(case.get_absolute_url()))
    for verb in ("pause", "resume", "cancel", "comment", "approve"):
        assert f"{verb}/" not in page
        assert viewer.post(f"{case.get_absolute_url()}{verb}/").status_code == 403


def test_a_complete_erasure_shows_scans_and_hands_out_its_receipt(
    agent_tables: None,
    first: Client,
    officer: User,
    colleague: User,
    subject: Subject,
    settings: Any,
) -> None:
    case = erased(subject, officer, colleague)
    page = text(first.get(case.get_absolute_url()))
    for words in ("Scan for what is left", "nothing found", "The second scan, a day after the first", "Erasure of"):
        assert words in page
    case = finish(case, settings)
    page = text(first.get(case.get_absolute_url()))
    for words in ("What was erased", "Receipt", "Out of reach", "2 of 2 clean", "ID erased", "Closed"):
        assert words in page, words
    assert "cust_1" not in page
    assert "erased" in text(first.get("/requests/?state=closed"))
    answer = first.get(f"{case.get_absolute_url()}receipt.json")
    assert answer["Content-Disposition"] == f'attachment; filename="{case}-receipt.json"'
    assert "no-store" in answer["Cache-Control"]
    assert json.loads(answer.getvalue())["payload"]["number"] == case.number
    assert AuditEvent.objects.get(type="request.receipt_downloaded").object_ref == case.id
    printed = text(first.get(f"{case.get_absolute_url()}receipt/"))
    assert f"Receipt of {case}" in printed
    assert "cust_1" not in printed
    # The page of the erased subject leads to the case, and to no new one.
    page = text(first.get(subject.get_absolute_url()))
    assert case.get_absolute_url() in page
    assert "/requests/new/" not in page


def test_of_what_a_scan_found_only_what_went_is_erased_again() -> None:
    at = {"at": "2026-11-26T16:00:00Z", "rows": 9}
    other, own = {"place": "notes.text", "code": "others_text"}, {"place": "main", "code": ""}
    scans = [{**at, "found": 3, "places": [{**other, "found": 1}, {**own, "found": 2}]}]
    scans += [{**at, "found": 1, "places": [{**other, "found": 1}]}]
    assert [line.erased_again for line in scan_lines(SubjectRequest(scans=scans))] == [2, 0]


def test_there_is_no_receipt_before_the_end(first: Client, officer: User, subject: Subject) -> None:
    case = make_request(subject, by=officer)
    for address in ("receipt/", "receipt.json"):
        assert first.get(f"{case.get_absolute_url()}{address}").status_code == 404


def test_the_overview_counts_open_requests(first: Client, second: Client, officer: User, subject: Subject) -> None:
    assert "No request is open." in text(first.get("/"))
    awaiting(subject, by=officer, received_on=now().date() - timedelta(days=60))
    page = text(second.get("/"))
    assert "1 erasure to decide" in page
    assert "1 erasure to decide" not in text(first.get("/"))
    assert "1 open, by days left" in page
    charts = {chart.id: chart for chart in second.get("/").context["home"].charts}
    assert charts["requests-by-days-left"].series[0].values[0] == 1
    assert "needs your approval" not in text(first.get("/")), "the person who asked for it"
