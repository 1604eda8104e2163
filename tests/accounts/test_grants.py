"""Grants: who may open a locked session, for how long, and who may not decide on it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.accounts.approvals.services import AlreadyDecided, ApprovalError, NotAllowed
from memadmin.accounts.grants import services
from memadmin.accounts.models import ContentGrant
from memadmin.audit.models import AuditEvent
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items
from tests.approvals import approve_grant, expire, shown, without_triggers
from tests.builders import make_session
from tests.people import person, signed_in

State = ContentGrant.State


@pytest.fixture
def support(db: None) -> User:
    return person("support")


@pytest.fixture
def compliance(db: None) -> User:
    return person("compliance")


def asked(by: User, **changed: Any) -> ContentGrant:
    wanted = {"record_ids": [uuid4()], "reason": "support_case", "ticket": "T-1", "minutes": 30, **changed}
    return services.request_grant(by=by, **wanted)


def state_of(grant: ContentGrant) -> State:
    return ContentGrant.objects.get(pk=grant.pk).state_at(now())


def let_pass(grant: ContentGrant, **length: float) -> None:
    """Moves a grant into the past, as if so much time had gone by."""
    times = ("requested_at", "opened_at", "expires_at", "ended_at")
    moved = {name: getattr(grant, name) - timedelta(**length) for name in times if getattr(grant, name)}
    with without_triggers():
        ContentGrant.objects.filter(pk=grant.pk).update(**moved)


def test_a_second_person_opens_it_for_the_minutes_that_were_asked_for(support: User, compliance: User) -> None:
    grant = asked(support)
    assert state_of(grant) == State.WAITING
    assert services.granted_records(support) == set()
    grant = approve_grant(grant, by=compliance)
    assert grant.opened_at
    assert grant.expires_at
    assert grant.expires_at - grant.opened_at == timedelta(minutes=30)
    assert services.granted_records(support) == {session.record_id for session in grant.sessions.all()}
    assert services.granted_records(compliance) == set(), "it opens for who asked, and for nobody else"


def test_it_ends_to_the_instant(support: User, compliance: User) -> None:
    grant = approve_grant(asked(support), by=compliance)
    assert grant.expires_at
    assert services.open_grants(support, grant.expires_at - timedelta(microseconds=1))
    assert not services.open_grants(support, grant.expires_at)


def test_nobody_decides_on_their_own_request(compliance: User) -> None:
    with pytest.raises(NotAllowed, match="Another person"):
        approve_grant(asked(compliance), by=compliance)


@pytest.mark.parametrize("addresses", [("a@example.com", "A@Example.COM"), ("b@example.com", "b@example.com")])
def test_a_second_account_with_the_same_address_is_the_same_person(
    addresses: tuple[str, str], support: User, compliance: User
) -> None:
    support.email, compliance.email = addresses
    support.save()
    compliance.save()
    grant = asked(support)
    with pytest.raises(NotAllowed, match="Another person"):
        approve_grant(grant, by=compliance)
    assert state_of(grant) == State.WAITING


def test_the_database_refuses_what_python_would_let_through(support: User) -> None:
    grant = asked(support)
    refused: list[dict[str, Any]] = [
        {"reviewed_by": support},
        {"minutes": 61},
        {"opened_at": now(), "expires_at": now() + timedelta(minutes=61)},
        {"expires_at": now()},
    ]
    for columns in refused:
        with pytest.raises(DatabaseError), transaction.atomic():
            ContentGrant.objects.filter(pk=grant.pk).update(**columns)


@pytest.mark.parametrize("loss", ["deactivated", "without the role"])
def test_who_lost_the_right_neither_decides_nor_keeps_open_what_they_decided(
    loss: str, support: User, compliance: User
) -> None:
    opened, waiting = approve_grant(asked(support), by=compliance), asked(support)
    if loss == "deactivated":
        User.objects.filter(pk=compliance.pk).update(is_active=False)
    else:
        compliance.groups.set([Group.objects.get(name="support")])
    with pytest.raises(NotAllowed):
        approve_grant(waiting, by=User.objects.get(pk=compliance.pk))
    assert opened.pk
    assert services.granted_records(support) == set()


def test_a_lost_race_changes_nothing(support: User, compliance: User) -> None:
    other = User.objects.create_user("other")
    other.groups.set(Group.objects.filter(name="compliance"))
    grant = asked(support)
    services.refuse_grant(grant, by=compliance)
    with pytest.raises(AlreadyDecided, match="compliance has already decided on this request"):
        approve_grant(grant, by=other)
    assert state_of(grant) == State.REFUSED


def test_a_request_lapses_after_a_day(support: User, compliance: User) -> None:
    grant = asked(support)
    assert grant.approval
    assert services.GRANT.answer_within == timedelta(hours=24)
    expire(grant)
    assert state_of(grant) == State.LAPSED
    with pytest.raises(AlreadyDecided):
        approve_grant(grant, by=compliance)


def test_given_back_it_is_over_at_once_and_waits_for_a_review(support: User, compliance: User) -> None:
    grant = approve_grant(asked(support), by=compliance)
    services.end_grant(grant, by=support)
    assert services.granted_records(support) == set()
    assert list(ContentGrant.objects.awaiting_review(now())) == [grant]
    with pytest.raises(NotAllowed):
        services.review_grant(grant, by=support, note="all fine")
    services.review_grant(grant, by=compliance, note="read what was needed")
    assert state_of(grant) == State.REVIEWED
    assert not ContentGrant.objects.awaiting_review(now()).exists()


def test_a_stranger_cannot_end_it(support: User, compliance: User) -> None:
    grant = approve_grant(asked(support), by=compliance)
    with pytest.raises(NotAllowed):
        services.end_grant(grant, by=person("reviewer"))
    assert state_of(grant) == State.OPEN


def test_where_nobody_else_is_asked_it_opens_at_once_and_is_reviewed_all_the_same(
    settings: Any, support: User, compliance: User
) -> None:
    settings.GRANT_APPROVAL = False
    grant = asked(support)
    assert state_of(grant) == State.OPEN
    assert services.granted_records(support)
    settings.GRANT_APPROVAL = True
    assert not services.granted_records(support), "what opened without a second person ends with that rule"
    let_pass(grant, minutes=31)
    assert list(ContentGrant.objects.awaiting_review(now())) == [grant]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"record_ids": []}, "No session was selected"),
        ({"record_ids": [uuid4() for _ in range(51)]}, "at most 50 sessions"),
        ({"minutes": 61}, "15, 30 or 60"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(changed: dict[str, Any], sentence: str, support: User) -> None:
    with pytest.raises(ApprovalError, match=sentence):
        asked(support, **changed)


def test_each_step_is_an_event_with_words_only_in_the_details(support: User, compliance: User) -> None:
    grant = asked(support, explanation="the pump failed", ticket="T-77")
    approve_grant(grant, by=compliance)
    services.end_grant(grant, by=compliance)
    services.review_grant(grant, by=compliance, note="read what was needed")
    events = AuditEvent.objects.filter(type__startswith="grant.").order_by("number")
    assert [(event.type, event.reason_code) for event in events if ".row_" not in event.type] == [
        ("grant.opened", "approved"),
        ("grant.ended", "taken_back"),
        ("grant.reviewed", ""),
    ]
    assert {event.object_ref for event in events} == {grant.pk}
    details = AuditEvent.objects.get(type="approval.requested").detail.details
    assert "the pump failed" in details
    assert "T-77" in details


def test_rows_that_a_step_changes_are_told_as_part_of_it(support: User, compliance: User) -> None:
    """Else the log would say that they were changed outside of the console."""
    refused = services.refuse_grant(asked(support), by=compliance)
    grant = approve_grant(asked(support), by=compliance)
    services.review_grant(services.end_grant(grant, by=support), by=compliance, note="read what was needed")
    steps = {
        refused: ["approval.requested"] * 2,
        grant: [*["approval.requested"] * 2, *(f"grant.{step}" for step in ("opened", "ended", "reviewed"))],
    }
    for each, expected in steps.items():
        rows = AuditEvent.objects.filter(object_ref=each.pk, type__contains=".row_").order_by("number")
        causes = [AuditEvent.objects.get(id=row.cause).type for row in rows if row.cause]
        assert causes == expected
        assert len(causes) == len(rows)
    listed = AuditEvent.objects.filter(type="granted_session.row_inserted")
    assert all(event.cause for event in listed)


def test_a_step_that_fails_leaves_neither_grant_nor_event(support: User) -> None:
    with pytest.raises(NotAllowed):
        approve_grant(asked(support), by=support)
    assert not AuditEvent.objects.filter(type="grant.opened").exists()


# The pages


@pytest.fixture
def locked(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s-1", "my secret is the word periwinkle")
    SessionRecord.objects.update(is_sensitive=True)
    return SessionRecord.objects.get()


def browser_of(user: User) -> Client:
    return signed_in(user)


CONTENT_PAGES = ["timeline", "live", "export-jsonl", "export-markdown"]


@pytest.mark.django_db(transaction=True)
def test_no_page_shows_what_is_locked_until_it_is_granted(locked: SessionRecord) -> None:
    support, compliance = person("support"), person("compliance")
    reader, decider = browser_of(support), browser_of(compliance)
    item_id = "1"
    addresses = [reverse(f"sessions:{name}", args=[locked.pk]) for name in CONTENT_PAGES]
    addresses.append(reverse("sessions:item", args=[locked.pk, item_id]))
    for address in addresses:
        response = reader.get(address)
        assert response.status_code == 403, address
        assert "periwinkle" not in response.content.decode()
        assert "no-store" in response["Cache-Control"]
    assert "HX-Refresh" in reader.get(addresses[1], headers={"HX-Request": "true"})
    for address in (reverse("sessions:list"), reverse("sessions:overview")):
        page = reader.get(address).content.decode()
        assert "periwinkle" not in page
        assert "Locked: first words need a grant" in page
    assert reader.post(f"{addresses[0]}find/", {"q": "periwinkle"}).status_code == 403
    results = reader.post(reverse("sessions:search"), {"q": "periwinkle"})["Location"]
    assert str(locked.pk) not in reader.get(f"{results}messages/").content.decode(), "a hit would give it away"

    sent = reader.post(
        reverse("sessions:ask", args=[locked.pk]), {"reason": "support_case", "ticket": "T-9", "minutes": "15"}
    )
    grant = ContentGrant.objects.get()
    assert sent["Location"] == grant.get_absolute_url()
    assert decider.post(reverse("accounts:grant-approve", args=[grant.pk]), {"shown": shown(grant)}).status_code == 302
    opened = reader.get(addresses[0])
    assert opened.status_code == 200
    assert "periwinkle" in opened.content.decode()
    assert "You can read 1 locked session until" in opened.content.decode()
    assert str(locked.pk) in reader.get(f"{results}messages/").content.decode()
    assert decider.get(addresses[0]).status_code == 403, "deciding does not open it for the decider"

    reader.post(reverse("accounts:grant-end", args=[grant.pk]))
    assert reader.get(addresses[0]).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_sensitive_store_locks_all_its_sessions(locked: SessionRecord) -> None:
    with without_triggers():
        SessionRecord.objects.update(is_sensitive=False)
    reader = browser_of(person("support"))
    assert reader.get(locked.get_absolute_url()).status_code == 200
    locked.store.is_sensitive = True
    locked.store.save()
    assert reader.get(locked.get_absolute_url()).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_compliance_locks_from_the_list_and_requests_to_unlock(locked: SessionRecord) -> None:
    chosen = {"session": str(locked.pk), "reason": "mistake"}
    assert browser_of(person("support")).post(reverse("sessions:unlock"), chosen).status_code == 403
    decider = browser_of(person("compliance"))
    decider.post(reverse("sessions:unlock"), chosen)
    assert SessionRecord.objects.get().is_locked
    with without_triggers():
        SessionRecord.objects.update(is_sensitive=False)
    decider.post(reverse("sessions:lock"), chosen)
    assert SessionRecord.objects.get().is_locked


def test_what_is_missing_is_said_and_what_was_typed_is_kept(support: User) -> None:
    record = make_session(is_sensitive=True)
    response = browser_of(support).post(
        reverse("sessions:ask", args=[record.pk]), {"reason": "incident", "explanation": "the pump failed"}
    )
    page = response.content.decode()
    assert response.status_code == 422
    assert "A grant needs a ticket" in page
    assert "the pump failed" in page


@pytest.mark.parametrize("step", ["ask", "approve"])
def test_an_old_proof_opens_nothing_and_loses_nothing(step: str, support: User, compliance: User) -> None:
    grant = asked(support)
    tab = browser_of(support if step == "ask" else compliance)
    session = tab.session
    session["confirmed_at"] -= 301
    session.save()
    if step == "ask":
        address = reverse("sessions:ask", args=[make_session(is_sensitive=True).pk])
        response = tab.post(
            address, {"reason": "incident", "ticket": "T-8", "minutes": "15", "explanation": "the pump"}
        )
        assert "the pump" in response.content.decode()
    else:
        response = tab.post(reverse("accounts:grant-approve", args=[grant.pk]), {"shown": shown(grant)})
    assert response.status_code == 422
    assert list(ContentGrant.objects.all()) == [grant]
    assert state_of(grant) == State.WAITING


def test_a_grant_of_somebody_else_is_unknown(support: User) -> None:
    grant = asked(support)
    stranger = browser_of(person("reviewer"))
    for name in ("grant", "grant-end"):
        address = reverse(f"accounts:{name}", args=[grant.pk])
        response = stranger.post(address) if name == "grant-end" else stranger.get(address)
        assert response.status_code == 404
    assert stranger.post(reverse("accounts:grant-approve", args=[grant.pk])).status_code == 403


def test_the_page_shows_each_what_they_can_do(support: User, compliance: User) -> None:
    grant = asked(support)
    own = browser_of(support).get(grant.get_absolute_url()).content.decode()
    assert "Withdraw request" in own
    assert "Approve grant" not in own
    decider = browser_of(compliance)
    assert "Approve grant" in decider.get(grant.get_absolute_url()).content.decode()
    assert "Awaiting decision" in decider.get(reverse("accounts:grants")).content.decode()
    approve_grant(grant, by=compliance)
    late = decider.post(reverse("accounts:grant-refuse", args=[grant.pk]))
    assert late.status_code == 409
    assert "Your decision was not saved" in late.content.decode()


def test_the_list_of_grants_costs_the_same_for_ten_and_twenty(support: User, compliance: User) -> None:
    decider = browser_of(compliance)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert decider.get(reverse("accounts:grants")).status_code == 200
        return len(captured)

    for _ in range(10):
        asked(support)
    ten = queries()
    for _ in range(10):
        asked(support)
    assert queries() == ten
