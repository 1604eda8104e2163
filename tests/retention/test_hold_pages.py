"""The pages of legal holds: the list, the form, one hold, and its release by a second person."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.retention.models import LegalHold
from sessions_app.services.subjects import merge_subjects
from tests.builders import make_session, make_store, make_subject
from tests.people import person, signed_in
from tests.retention.builders import make_hold

pytestmark = pytest.mark.django_db

SOON = str(now().date() + timedelta(days=60))


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


def values(officer: User, **changed: str) -> dict[str, str]:
    return {
        "covers": "user",
        "value": "cust_1",
        "reason": "Claim 2026-0419",
        "owner": str(officer.pk),
        "review_on": SOON,
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
    assert "You requested this release." in text(first.get(own))
    assert first.post(f"{own}request-release/", {"reason": "again"}).status_code == 409
    refused = first.post(f"{own}release/")
    assert (refused.status_code, "Another person has to approve it." in text(refused)) == (403, True)
    assert AuditEvent.objects.get(type="hold.release_denied").outcome == "denied"
    assert "Approve release" in text(second.get("/holds/"))
    assert second.post(f"{own}release/").status_code == 302
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
    assert second.post(f"/holds/{hold.pk}/release/").status_code == 403
    hold.refresh_from_db()
    assert not hold.is_released


def test_a_requested_release_is_withdrawn_or_rejected(first: Client, second: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    for decides in (first, second):
        first.post(f"/holds/{hold.pk}/request-release/", {"reason": "settled"})
        assert decides.post(f"/holds/{hold.pk}/keep/").status_code == 302
        hold.refresh_from_db()
        assert not hold.awaits_release
    assert second.post(f"/holds/{hold.pk}/keep/").status_code == 409


def test_owner_and_review_date_change(first: Client, officer: User) -> None:
    hold = make_hold("dispute", by=officer)
    assert first.post(f"/holds/{hold.pk}/change/", {"owner": "", "review_on": SOON}).status_code == 422
    assert first.post(f"/holds/{hold.pk}/change/", values(officer)).status_code == 302
    hold.refresh_from_db()
    assert str(hold.review_on) == SOON


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
