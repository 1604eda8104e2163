"""Session-id patterns of a store: kept in order, tried before saving, and used on sessions without a subject."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectKind, SubjectSource
from sessions_app.patterns import PatternError, PatternMatch
from sessions_app.services import patterns, sessions, subjects
from tests.builders import make_session, make_store, make_subject
from tests.people import person

pytestmark = pytest.mark.django_db

SUPPORT = "customer_{subject}:ticket_{ticket}"


@pytest.fixture
def admin(db: None) -> User:
    return person("administrator")


@pytest.fixture
def store(db: None) -> SessionStore:
    return make_store()


def add(store: SessionStore, name: str, text: str, by: User) -> SessionIdPattern:
    return patterns.add_pattern(store, name=name, text=text, subject_kind=SubjectKind.USER, by=by)


def names(store: SessionStore) -> list[str]:
    return [pattern.name for pattern in SessionIdPattern.objects.of(store)]


def test_a_new_session_gets_subject_and_ticket(store: SessionStore, admin: User) -> None:
    add(store, "support", SUPPORT, admin)
    make_session("customer_48213:ticket_T-90417")
    assert patterns.apply_patterns(store) == 1
    record = SessionRecord.objects.get()
    assert record.subject == subjects.known_subject("user", "48213")
    assert (record.ticket, record.subject_source) == ("T-90417", "pattern")


def test_a_ticket_is_found_whoever_registered_the_subject(store: SessionStore, admin: User) -> None:
    add(store, "support", SUPPORT, admin)
    registered = make_subject("cust_48213")
    make_session("customer_cust_48213:ticket_T-90460", subject=registered, subject_source="client")
    assert patterns.apply_patterns(store) == 0
    record = SessionRecord.objects.get()
    assert (record.ticket, record.subject, record.subject_source) == ("T-90460", registered, "client")
    assert Subject.objects.count() == 1
    with CaptureQueriesContext(connection) as queries:
        patterns.apply_patterns(store)
    assert not [query for query in queries if query["sql"].startswith("UPDATE")], "it was tried"


def test_no_subject_is_made_for_a_session_that_has_another(store: SessionStore, admin: User) -> None:
    add(store, "support", SUPPORT, admin)
    make_session("customer_1:ticket_2", subject=make_subject("someone"), subject_source="client")
    patterns.apply_patterns(store)
    assert Subject.objects.count() == 1


def test_sessions_of_one_customer_share_the_subject(store: SessionStore, admin: User) -> None:
    add(store, "support", SUPPORT, admin)
    for ticket in range(3):
        make_session(f"customer_1:ticket_{ticket}")
    assert patterns.apply_patterns(store) == 3
    assert Subject.objects.count() == 1


def test_the_first_pattern_that_matches_wins(store: SessionStore, admin: User) -> None:
    add(store, "anything", "{*}_{ticket}", admin)
    support = add(store, "support", SUPPORT, admin)
    patterns.move_pattern_up(support, by=admin)
    make_session("customer_1:ticket_2")
    patterns.apply_patterns(store)
    assert SessionRecord.objects.get().ticket == "2"


def test_a_pattern_with_a_ticket_alone_leaves_the_subject_open(store: SessionStore, admin: User) -> None:
    add(store, "tickets", "ticket_{ticket}", admin)
    make_session("ticket_7")
    assert patterns.apply_patterns(store) == 0
    record = SessionRecord.objects.get()
    assert (record.subject, record.subject_source, record.ticket) == (None, "", "7")


def test_what_others_decided_is_not_overridden(store: SessionStore, admin: User) -> None:
    add(store, "support", "{agent}/customer_{subject}:ticket_{ticket}", admin)
    subject = make_subject("cust_9")
    make_session("bot/customer_1:ticket_1", subject=subject, subject_source="client")
    make_session("bot/customer_1:ticket_2", subject=subject, subject_source="operator")
    detached = make_session("bot/customer_1:ticket_3", subject=subject, subject_source="pattern")
    sessions.detach_sessions([detached], by=admin)
    make_session("bot/customer_1:ticket_4", ticket="T-1", agent="Refunds")
    make_session("bot/customer_1:ticket_5", erased_at=now())

    assert patterns.apply_patterns(store) == 1
    kept = SessionRecord.objects.order_by("session_id").values_list("subject__aliases__key", "ticket", "agent")
    assert list(kept) == [
        ("cust_9", "1", "bot"),
        ("cust_9", "2", "bot"),
        (None, "3", "bot"),
        ("1", "T-1", "Refunds"),
        (None, "", ""),
    ]


def test_a_session_attached_during_the_run_keeps_that_subject(
    store: SessionStore, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, "support", SUPPORT, admin)
    record = make_session("customer_1:ticket_1")
    chosen = make_subject("cust_9")

    def operator_is_faster(kind: SubjectKind, key: str, source: SubjectSource) -> Subject:
        sessions.attach_sessions([record], chosen, by=admin)
        return subjects.subject_for_key(kind, key, source)

    monkeypatch.setattr(patterns, "subject_for_key", operator_is_faster)
    assert patterns.apply_patterns(store) == 0
    record.refresh_from_db()
    assert (record.subject, record.subject_source) == (chosen, "operator")


def test_sessions_of_another_store_are_left_alone(store: SessionStore, admin: User) -> None:
    add(store, "support", SUPPORT, admin)
    make_session("customer_1:ticket_1", store=make_store("other"))
    assert patterns.apply_patterns(store) == 0


def test_what_does_not_match_costs_nothing_the_next_time(store: SessionStore, admin: User) -> None:
    add(store, "support", SUPPORT, admin)
    for _ in range(10):
        make_session()
    patterns.apply_patterns(store)
    with CaptureQueriesContext(connection) as queries:
        assert patterns.apply_patterns(store) == 0
    assert not [query for query in queries if "UPDATE" in query["sql"]]


def test_all_are_tried_again_when_the_patterns_change(store: SessionStore, admin: User) -> None:
    pattern = add(store, "support", "client_{subject}", admin)
    make_session("customer_1:ticket_1")
    patterns.apply_patterns(store)
    patterns.change_pattern(pattern, name="support", text=SUPPORT, subject_kind=SubjectKind.USER, by=admin)
    assert patterns.apply_patterns(store) == 1


def test_a_long_backlog_is_worked_off_in_batches(
    store: SessionStore, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "BATCH_SESSIONS", 2)
    add(store, "support", SUPPORT, admin)
    for number in range(5):
        make_session(f"customer_{number}:ticket_1")
    assert patterns.apply_patterns(store, limit=4) == 4
    assert patterns.apply_patterns(store, limit=4) == 1


def test_a_pattern_is_tried_on_the_newest_sessions_without_saving(store: SessionStore) -> None:
    for number in range(25):
        make_session(f"customer_{number}:ticket_1")
    make_session("something else")
    trial = patterns.try_pattern(store, SUPPORT)
    assert len(trial.matches) == 20
    assert trial.match_count == 19
    assert trial.matches[0] == ("something else", None)
    assert trial.matches[1] == ("customer_24:ticket_1", PatternMatch("24", "1"))
    assert not SessionIdPattern.objects.exists()
    assert not SessionRecord.objects.filter(subject__isnull=False).exists()


def test_patterns_stay_in_order(store: SessionStore, admin: User) -> None:
    for name in ("one", "two", "three"):
        add(store, name, SUPPORT, admin)
    patterns.move_pattern_up(SessionIdPattern.objects.get(name="three"), by=admin)
    assert names(store) == ["one", "three", "two"]
    patterns.move_pattern_up(SessionIdPattern.objects.get(name="one"), by=admin)
    assert names(store) == ["one", "three", "two"]
    patterns.delete_pattern(SessionIdPattern.objects.get(name="three"), by=admin)
    assert list(SessionIdPattern.objects.of(store).values_list("name", "position")) == [("one", 0), ("two", 1)]


def test_a_name_is_taken_once_in_a_store(store: SessionStore, admin: User) -> None:
    pattern = add(store, "support", SUPPORT, admin)
    with pytest.raises(patterns.PatternNameTaken, match="already has a pattern named “support”"):
        add(store, "support", "x_{subject}", admin)
    patterns.change_pattern(pattern, name="support", text="x_{subject}", subject_kind=SubjectKind.USER, by=admin)
    add(make_store("other"), "support", SUPPORT, admin)


def test_changing_what_somebody_deleted_is_said(store: SessionStore, admin: User) -> None:
    pattern = add(store, "support", SUPPORT, admin)
    patterns.delete_pattern(SessionIdPattern.objects.get(), by=admin)
    with pytest.raises(patterns.NoSuchPattern):
        patterns.move_pattern_up(pattern, by=admin)
    patterns.delete_pattern(pattern, by=admin)


def test_a_pattern_that_cannot_work_is_not_saved(store: SessionStore, admin: User) -> None:
    with pytest.raises(PatternError):
        add(store, "support", "{subject}{ticket}", admin)
    assert names(store) == []
