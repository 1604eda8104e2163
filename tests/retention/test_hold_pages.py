"""The pages of legal holds: the list, the form, one hold, and its release by a second person."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.retention.holds import coverage
from memadmin.retention.holds.coverage import with_session_counts
from memadmin.retention.holds.services import hold_on
from memadmin.retention.models import LegalHold
from sessions_app.services.subjects import merge_subjects
from tests.approvals import shown
from tests.builders import make_session, make_store, make_subject
from tests.erasure.builders import make_request
from tests.memories.builders import approved, user_quote
from tests.people import person, signed_in
from tests.retention.builders import make_hold, released
from tests.retention.policies import in_force

pytestmark = pytest.mark.django_db


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def officer() -> User:
    return person("compliance")


@pytest.fixture
def first(officer: User) -> Client:
    return signed_in(officer)


@pytest.fixture
def second() -> Client:
    return signed_in(person("compliance", "reviewer"))


def soon() -> str:
    return str(now().date() + timedelta(days=60))


def values(officer: User, **changed: str) -> dict[str, str]:
    return {
        "covers": "user",
        "value": "cust_1",
        "reason": "Claim 2026-0419",
        "owner": str(officer.pk),
        "review_on": soon(),
        **changed,
    }


def test_the_first_visit_says_what_a_hold_is_for(first: Client) -> None:
    page = text(first.get("/holds/"))
    assert "No hold is in force" in page
    assert "Place a hold" in page
    assert "A release needs a second person." in page


def test_a_hold_is_placed_listed_and_recorded(first: Client, officer: User) -> None:
    subject = make_subject("cust_1")
    make_session(subject=subject)
    answer = first.post("/holds/place/", values(officer))
    hold = LegalHold.objects.get()
    assert answer.url == f"/holds/{hold.pk}/"  # type: ignore[attr-defined]
    page, listed = text(first.get(answer.url)), text(first.get("/holds/"))  # type: ignore[attr-defined]
    for words in (f"H-{hold.number}", "Claim 2026-0419", "cust_1"):
        assert words in page
        assert words in listed
    event = AuditEvent.objects.get(type="hold.placed")
    assert (event.subject_ref, event.counters, event.object_ref) == (subject.pk, {"sessions": 1}, hold.pk)
    assert "Claim" not in str(vars(event))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"value": "nobody"}, "There is no subject with the user ID nobody."),
        ({"value": ""}, "Enter an ID or a label."),
        ({"covers": "session", "value": "no-such"}, "There is no session with this ID."),
        ({"covers": "session", "value": "twice"}, "Several stores have a session with this ID."),
        ({"covers": "label", "value": "x" * 51}, "A label has at most 50 characters."),
        ({"covers": "everything"}, "A hold covers a user, project, tenant, session or label."),
        ({"reason": " "}, "A hold needs a reason."),
        ({"review_on": "2020-01-01"}, "must be in the future"),
        ({"review_on": "9999-01-01"}, "within five years"),
        ({"review_on": "soon"}, "Enter a date"),
        ({"owner": "999999"}, "cannot own a hold"),
    ],
)
def test_wrong_input_gets_a_sentence_and_stays(
    changed: dict[str, str], sentence: str, first: Client, officer: User
) -> None:
    make_subject("cust_1")
    for store in ("one", "two"):
        make_session("twice", store=make_store(store))
    answer = first.post("/holds/place/", values(officer, **changed))
    assert answer.status_code == 422
    assert sentence in text(answer)
    assert 'value="cust_1"' in text(answer) or "value" in changed
    assert not LegalHold.objects.exists()


def test_sessions_and_labels_are_covered_by_their_ids(first: Client, officer: User) -> None:
    record = make_session("chat_7")
    for covers, value in (("session", "chat_7"), ("session", str(record.pk)), ("label", "dispute")):
        assert first.post("/holds/place/", values(officer, covers=covers, value=value)).status_code == 302
    assert set(LegalHold.objects.values_list("record_id", "session_id", "label")) == {
        (record.pk, "chat_7", ""),
        (None, "", "dispute"),
    }


def test_pages_of_subjects_and_sessions_lead_to_the_form(first: Client, officer: User) -> None:
    subject = make_subject("cust_1")
    assert f"/holds/?subject={subject.pk}" in text(first.get(subject.get_absolute_url()))
    hold = make_hold(subject, by=officer)
    assert f"H-{hold.number}" in text(first.get(subject.get_absolute_url()))
    record = make_session(subject=subject)
    assert 'value="cust_1"' in text(first.get(f"/holds/?subject={subject.pk}"))
    assert f'value="{record.pk}"' in text(first.get(f"/holds/?session={record.pk}"))
    assert first.get("/holds/?subject=nonsense&session=nonsense").status_code == 200


def test_a_release_takes_a_second_person(first: Client, second: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    own = f"/holds/{hold.pk}/"
    assert first.post(f"{own}request-release/", {"reason": ""}).status_code == 422
    assert first.post(f"{own}request-release/", {"reason": "settled"}).status_code == 302
    assert "You requested this. Another person has to decide." in text(first.get(own))
    assert first.post(f"{own}request-release/", {"reason": "again"}).status_code == 409
    refused = first.post(f"{own}release/", {"shown": shown(hold)})
    assert (refused.status_code, "Another person has to decide." in text(refused)) == (403, True)
    assert AuditEvent.objects.get(type="approval.decided").outcome == "denied"
    for page in ("/holds/", own):
        assert f'name="shown" value="{shown(hold)}"' in text(second.get(page))
    assert second.post(f"{own}release/").status_code == 409
    assert second.post(f"{own}release/", {"shown": shown(hold)}).status_code == 302
    hold.refresh_from_db()
    assert hold.is_released
    assert second.post(f"{own}release/").status_code == 409
    assert first.post(f"{own}change/", values(officer)).status_code == 409
    assert "No hold is in force" in text(first.get("/holds/"))
    assert f"H-{hold.number}" in text(first.get("/holds/?state=released"))


def test_an_account_with_the_same_address_is_no_second_person(first: Client, second: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    User.objects.all().update(email="same@example.invalid")
    first.post(f"/holds/{hold.pk}/request-release/", {"reason": "settled"})
    assert second.post(f"/holds/{hold.pk}/release/", {"shown": shown(hold)}).status_code == 403
    page = text(second.get(f"/holds/{hold.pk}/"))
    assert ("Approve release" in page, "Reject" in page, "You requested this yourself." in page) == (False, True, True)
    hold.refresh_from_db()
    assert not hold.is_released


def test_a_requested_release_is_withdrawn_or_rejected(first: Client, second: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    for decides in (first, second):
        first.post(f"/holds/{hold.pk}/request-release/", {"reason": "settled"})
        assert decides.post(f"/holds/{hold.pk}/reject-release/").status_code == 302
        hold.refresh_from_db()
        assert not hold.awaits_release
    assert second.post(f"/holds/{hold.pk}/reject-release/").status_code == 409


@pytest.mark.parametrize("changed", ["owner", "release"])
def test_a_release_is_of_what_was_shown(changed: str, first: Client, second: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    own, ask = f"/holds/{hold.pk}/", {"reason": "settled"}
    first.post(f"{own}request-release/", ask)
    read = shown(hold)
    if changed == "owner":
        another = User.objects.get(username="compliance-reviewer")
        first.post(f"{own}change/", {"owner": str(another.pk), "review_on": soon()})
    else:
        first.post(f"{own}reject-release/")
        first.post(f"{own}request-release/", {"reason": "another one"})
    answer = second.post(f"{own}release/", {"shown": read})
    assert (answer.status_code, "since you opened the page" in text(answer)) == (409, True)
    # What was asked for with another owner is asked for again.
    assert second.post(f"{own}release/", {"shown": shown(hold)}).status_code == (409 if changed == "owner" else 302)


def test_owner_and_review_date_change(first: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    assert first.post(f"/holds/{hold.pk}/change/", {"owner": "", "review_on": soon()}).status_code == 422
    assert first.post(f"/holds/{hold.pk}/change/", values(officer)).status_code == 302
    hold.refresh_from_db()
    assert str(hold.review_on) == soon()


@pytest.mark.parametrize(
    ("query", "is_listed", "status"),
    [
        ("", True, 200),
        ("state=due", False, 200),
        ("state=decide", False, 200),
        ("state=odd", False, 400),
        ("cursor=odd", False, 400),
    ],
)
def test_the_list_is_filtered(query: str, is_listed: bool, status: int, first: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    answer = first.get(f"/holds/?{query}")
    assert (answer.status_code, f"H-{hold.number}" in text(answer)) == (status, is_listed)


def test_a_held_session_cannot_be_detached_and_says_why(first: Client, officer: User) -> None:
    subject = make_subject("cust_1")
    record = make_session(subject=subject)
    hold = make_hold(subject, by=officer)
    answer = first.post("/sessions/detach/", {"session": str(record.pk)})
    assert answer.status_code == 409
    assert f"under the legal hold H-{hold.number}" in text(answer)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[set[UUID]]:
    """The subjects of each look-up of deletions, of which two at most are looked up."""
    calls: list[set[UUID]] = []

    def report(subjects: Collection[UUID]) -> list[str]:
        calls.append(set(subjects))
        return []

    monkeypatch.setattr("memadmin.retention.holds.extensions.MOST_SUBJECTS", 2)
    monkeypatch.setattr("memadmin.retention.holds.extensions._reports", [report])
    return calls


def test_the_page_says_if_deletions_were_not_looked_up_for_all_subjects(
    first: Client, officer: User, looked_up: list[set[UUID]]
) -> None:
    subjects = [make_subject() for _ in range(3)]
    for subject in subjects[:2]:
        # Several sessions of a subject count once.
        for _ in range(2):
            make_session(subject=subject, labels=["dispute"])
    hold = make_hold("dispute", by=officer)
    sentence = "belong to more than 2 subjects. Deletions were looked up for the first 2 of them."
    assert sentence not in text(first.get(hold.get_absolute_url()))
    assert looked_up == [{subject.pk for subject in subjects[:2]}]
    make_session(subject=subjects[2], labels=["dispute"])
    assert sentence in text(first.get(hold.get_absolute_url()))
    assert len(looked_up[1]) == 2


def test_deletions_are_looked_up_for_the_subject_that_a_session_of_the_label_was_merged_into(
    first: Client, officer: User, looked_up: list[set[UUID]]
) -> None:
    source, target = make_subject(), make_subject()
    make_session(subject=source, labels=["dispute"])
    merge_subjects(source, target, by=officer)
    page = text(first.get(make_hold("dispute", by=officer).get_absolute_url()))
    assert looked_up == [{source.pk, target.pk}]
    assert "Deletions were looked up" not in page


class TestPreview:
    def preview(self, client: Client, officer: User, *, htmx: bool = False, **changed: str) -> Any:
        headers = {"HX-Request": "true"} if htmx else {}
        return client.post("/holds/preview/", values(officer, **changed), headers=headers)

    def test_the_oldest_of_many_sessions_are_looked_at_first(
        self, first: Client, officer: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memadmin.retention.policies.explaining.MOST_COUNTED", 2)
        subject = make_subject("cust_1")
        for number in range(4):
            make_session(f"new-{number}", subject=subject)
        make_session("old", subject=subject, last_activity_at=now() - timedelta(days=400))
        in_force("Closed tickets", days=90)
        assert "The next retention run skips 1 session" in text(self.preview(first, officer))

    def test_a_hold_is_looked_at_before_it_is_placed(self, first: Client, officer: User) -> None:
        subject, other = make_subject("cust_1"), make_subject("cust_2")
        merge_subjects(other, into=subject, by=officer)
        make_session("old", subject=subject, last_activity_at=now() - timedelta(days=400))
        make_session("merged", subject=other)
        make_session(subject=make_subject("cust_3"))
        approved("Drinks tea.", subject=subject)
        approved("Was learned from a session.", subject=None, agents=["billing"])
        in_force("Closed tickets", days=90)
        case = make_request(subject, by=officer)
        page = text(self.preview(first, officer, reason=""))
        assert "2 sessions and 1 memory would be kept." in page
        assert f"{case} (erasure) cannot continue while the hold is in force." in page
        assert "The next retention run skips 1 session: Closed tickets." in page
        assert 'value="cust_1"' in page
        assert "A hold needs a reason." not in page
        assert not LegalHold.objects.exists()

    def test_the_part_is_the_same_without_the_page(self, first: Client, officer: User) -> None:
        make_session(subject=make_subject("cust_1"))
        part = self.preview(first, officer, htmx=True)
        assert part.status_code == 200
        assert "<html" not in text(part)
        assert text(part) in text(self.preview(first, officer))

    def test_what_is_not_known_is_said_without_the_other_mistakes(self, first: Client, officer: User) -> None:
        for htmx in (False, True):
            answer = self.preview(first, officer, reason="", value="nobody", htmx=htmx)
            assert answer.status_code == 422
            assert "There is no subject with the user ID nobody." in text(answer)
            assert "A hold needs a reason." not in text(answer)

    def test_a_session_keeps_what_was_learned_from_it_and_leaves_the_rest(self, first: Client, officer: User) -> None:
        subject = make_subject("cust_1")
        quote = user_quote(approved("Drinks tea.", subject=subject))
        make_session(subject=subject)
        case = make_request(subject, by=officer)
        page = text(self.preview(first, officer, covers="session", value=quote.session_id))
        assert "1 session and 1 memory would be kept." in page
        assert f"{case} (erasure) would leave what the hold covers, and end with exceptions." in page

    def test_links_from_a_subject_show_the_preview_at_once(self, first: Client) -> None:
        subject = make_subject("cust_1")
        make_session(subject=subject)
        assert "1 session and 0 memories would be kept." in text(first.get(f"/holds/?subject={subject.pk}"))

    def test_numbers_end_at_the_limit(self, first: Client, officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
        subject = make_subject("cust_1")
        for number in range(3):
            make_session(f"chat_{number}", subject=subject, labels=["dispute"])
            approved(f"Fact {number}.", subject=subject)
        monkeypatch.setattr(coverage, "COUNT_CAP", 2)
        hold = hold_on(subject)
        assert (coverage.coverage_of(hold).sessions, coverage.coverage_of(hold).memories) == (3, 3)
        monkeypatch.setattr(coverage, "COUNT_CAP", 1_000)
        more = coverage.Coverage(1_001, 1_001)
        assert more.kept == "1,000+ sessions and 1,000+ memories"
        # There may be more in the sessions that are not counted.
        assert coverage.Coverage(1_001, 7).kept == "1,000+ sessions and at least 7 memories"

    def test_the_cost_does_not_grow(self, officer: User) -> None:
        subject = make_subject("cust_1")
        counts = []
        for _ in range(2):
            for _ in range(5):
                make_session(subject=subject)
                approved("Drinks tea.", subject=subject)
            with CaptureQueriesContext(connection) as queries:
                coverage.preview_of(hold_on(subject))
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 20


class TestNumbersInTheList:
    def test_holds_in_force_have_the_number_of_their_sessions(self, first: Client, officer: User) -> None:
        subject, merged = make_subject("cust_1"), make_subject("cust_2")
        merge_subjects(merged, into=subject, by=officer)
        one = make_session("one", subject=subject, labels=["dispute"])
        for owner in (merged, make_subject("cust_3")):
            make_session(subject=owner, labels=["dispute"])
        holds = [make_hold(covers, by=officer) for covers in (subject, one, "dispute", "unused")]
        over = released(make_hold("dispute", by=officer), by=officer, second=person("compliance", "reviewer"))
        counts = {hold.pk: getattr(hold, "session_count", None) for hold in with_session_counts([*holds, over])}
        assert [counts[hold.pk] for hold in holds] == ["2", "1", "3", "0"]
        assert counts[over.pk] is None
        assert "· 3 sessions" in text(first.get("/holds/"))

    def test_they_end_at_the_limit_with_two_queries(self, officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(coverage, "MOST_IN_LISTS", 2)
        subjects = [make_subject(f"cust_{number}") for number in range(4)]
        for subject in subjects:
            for _ in range(3):
                make_session(subject=subject)
        holds = [make_hold(subject, by=officer) for subject in subjects]
        for some in (holds[:1], holds):
            with CaptureQueriesContext(connection) as queries:
                counted = with_session_counts(some)
            assert len(queries) == 2
            assert {hold.session_count for hold in counted} == {"2+"}
