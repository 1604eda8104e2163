"""Subjects, tickets and sessions by a part of how they are called, along indexes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sessions_app.models import SubjectAlias, SubjectKind
from sessions_app.search.identifiers import aliases_like, sessions_beginning, sessions_like, tickets_like
from tests.agents import run_sql
from tests.builders import make_session, make_store, make_subject

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("cust_48213", ["cust_48213", "archive/cust_48213/old"]),
        ("48213", ["cust_48213", "archive/cust_48213/old"]),
        ("CUST_482", ["cust_48213", "archive/cust_48213/old"]),
        ("_", []),
        ("%", []),
        ("x7", ["X7"]),
        ("ñandú", ["Ñandú"]),
        ("'; --", []),
    ],
)
def test_part_of_a_key_finds_the_subject(typed: str, keys: list[str]) -> None:
    for key in ("cust_48213", "archive/cust_48213/old", "cust_9", "X7", "x71", "Ñandú", "custom482"):
        make_subject(key)
    assert [alias.key for alias in aliases_like(typed)] == keys


def test_every_key_of_a_subject_finds_it() -> None:
    subject = make_subject("cust_1")
    SubjectAlias.objects.create(subject=subject, kind=SubjectKind.TENANT, key="jane@shop.example")
    assert [alias.subject for alias in aliases_like("jane@shop")] == [subject]


def test_part_of_a_ticket_finds_it_once() -> None:
    for number, ticket in enumerate(["T-90420", "T-90420", "T-904201", "t-90420", "", "X-1"]):
        make_session(f"s{number}", ticket=ticket)
    make_session("erased", ticket="T-90420-erased", erased_at="2026-11-21T00:00Z")

    assert set(tickets_like("9042")) == {"T-90420", "t-90420", "T-904201"}
    assert list(tickets_like("9042"))[-1] == "T-904201"
    assert list(tickets_like("X-1")) == ["X-1"]
    assert list(tickets_like("X-")) == [], "two characters are a whole ticket or nothing"


def test_a_session_is_found_by_how_its_id_begins() -> None:
    long = "Customer_1:ticket_2" + "x" * 300
    make_session(long + "y")
    make_session(long + "z")
    make_session("customer_10:ticket_2")
    make_session("a-customer_1")

    def found(typed: str) -> list[str]:
        return [session.session_id for session in sessions_beginning(typed)]

    assert found("customer_1:") == [long + "z", long + "y"]
    assert found(long.upper() + "Y") == [long + "y"]
    assert found("customer%") == []


def test_a_session_is_found_by_any_part_of_its_id_beginnings_first() -> None:
    for session_id in ("customer_1:ticket_T-90460", "T-90460 again", "other"):
        make_session(session_id)
    make_session("gone T-90460", erased_at="2026-11-21T00:00Z")
    assert [each.session_id for each in sessions_like("t-90460", at_most=10)] == [
        "T-90460 again",
        "customer_1:ticket_T-90460",
    ]
    assert len(sessions_like("90460", at_most=1)) == 1
    assert sessions_like("90", at_most=10) == []
    assert sessions_like("%", at_most=10) == []


@pytest.fixture
def many(db: None) -> Iterator[None]:
    """Ten thousand subjects and sessions, and a planner that takes an index where it can."""
    store = make_store()
    # Without the triggers, of which the log's would write tens of thousands of events.
    run_sql(
        f"""SET LOCAL session_replication_role = replica;
            INSERT INTO sessions_app_subject (id) SELECT gen_random_uuid() FROM generate_series(1, 10000);
            INSERT INTO sessions_app_subjectalias (subject_id, kind, key, is_primary)
            SELECT id, 'user', 'cust_' || row_number() OVER (), true FROM sessions_app_subject;
            INSERT INTO sessions_app_sessionrecord (store_id, session_id, ticket)
            SELECT {store.pk}, 'customer_' || n || ':ticket_' || n, 'T-' || n FROM generate_series(1, 10000) AS n;
            SET LOCAL session_replication_role = origin;
            ANALYZE sessions_app_subject;
            ANALYZE sessions_app_subjectalias; ANALYZE sessions_app_sessionrecord;
            SET enable_seqscan = off"""
    )
    yield
    run_sql("RESET enable_seqscan")


@pytest.mark.usefixtures("many")
def test_looking_up_takes_the_indexes() -> None:
    for typed in ("9042", "T-1", "cust", "x"):
        assert "alias_key_grams" in aliases_like(typed)[:11].explain()
        assert "record_ticket_grams" in tickets_like(typed)[:11].explain()
    assert "record_session_id_prefix" in sessions_beginning("customer_9042")[:11].explain()
    # What nearly all ids begin with is on the first page of the list.
    assert "record_newest" in sessions_beginning("cust")[:11].explain()
