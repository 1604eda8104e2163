"""The sequencer writes leaves in a quick way of its own; what they are is said by RFC 8785 and its library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from memadmin.audit.models import ActorKind, AuditEvent, Outcome
from memadmin.audit.transparency import canonical, tree_store
from memadmin.audit.transparency.canonical import EventText, bytes_of_written, leaf_bytes, leaf_of
from tests.audit.test_canonical import BARE, FULL

pytestmark = pytest.mark.django_db

WORD = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
PAIR = st.tuples(WORD, WORD).map(".".join)
ID = st.uuids()
COUNT = st.integers(1 - 10**15, 10**15 - 1)
ADMITTED: dict[str, st.SearchStrategy[Any]] = {
    "number": st.integers(1, 2**53 - 1),
    "id": ID,
    "type": PAIR,
    "at": st.timedeltas(timedelta(0), timedelta(days=300_000)).map(BARE.at.__add__),
    "actor_kind": st.sampled_from(ActorKind.values),
    "actor_ref": ID,
    "role_ref": ID,
    "object_kind": st.none() | PAIR,
    "object_ref": st.none() | ID,
    "subject_ref": st.none() | ID,
    "shown": st.lists(ID, max_size=5),
    "outcome": st.sampled_from(Outcome.values),
    "reason_code": st.just("") | WORD,
    "counters": st.dictionaries(WORD, COUNT, max_size=20),
    "cause": st.none() | ID,
    "commitment": st.none() | st.binary(min_size=32, max_size=32),
}
"""What the database lets in, and somewhat more."""
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
ANYTHING: dict[str, st.SearchStrategy[Any]] = ADMITTED | {
    "number": st.integers(1, 2**63 - 1),
    "type": PAIR | TEXT,
    "object_kind": st.none() | PAIR | TEXT,
    "reason_code": WORD | TEXT,
    "shown": st.lists(ID, max_size=2) | st.lists(st.lists(ID, min_size=2, max_size=2), min_size=1, max_size=2),
    "counters": st.dictionaries(WORD, COUNT | JSON, max_size=3) | JSON,
}
"""What only whoever takes the check away can write."""

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def unchecked(db: None) -> None:
    """The log is empty and rows are as a test says, neither stamped nor looked at, until its transaction is undone."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_event DISABLE TRIGGER ALL")
        cursor.execute("ALTER TABLE audit_event DROP CONSTRAINT audit_event_is_plain")
        cursor.execute("DELETE FROM audit_event")


def insert(columns: Mapping[str, Any]) -> None:
    row = {**columns, "counters": Jsonb(columns["counters"])}
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO audit_event ({', '.join(row)}) OVERRIDING SYSTEM VALUE"
            f" VALUES ({', '.join(['%s'] * len(row))})",
            list(row.values()),
        )


def both(columns: Mapping[str, Any]) -> tuple[EventText, AuditEvent]:
    """A row as the sequencer reads it, and as everybody else does."""
    with transaction.atomic():
        insert(columns)
        [written] = tree_store.written([columns["number"]])
        event = AuditEvent.objects.get(number=columns["number"])
        transaction.set_rollback(True)
    return written, event


def columns_of(event: AuditEvent, **changed: Any) -> dict[str, Any]:
    """Of an event that is not stored."""
    return {name: getattr(event, name) for name in ADMITTED} | changed


@pytest.mark.usefixtures("unchecked")
@unhurried
@given(st.fixed_dictionaries(ADMITTED))
@example(columns_of(BARE))
@example(columns_of(FULL))
def test_every_event_that_is_let_in_has_the_bytes_of_the_standard(columns: dict[str, Any]) -> None:
    written, event = both(columns)
    assert bytes_of_written(written) == leaf_bytes(event)


@pytest.mark.usefixtures("unchecked")
@unhurried
@given(st.fixed_dictionaries(ANYTHING))
def test_no_event_has_other_bytes(columns: dict[str, Any]) -> None:
    """Whatever was forced into the table: the same, or the quick way leaves it to the other."""
    written, event = both(columns)
    quick = bytes_of_written(written)
    assert quick is None or quick == leaf_bytes(event)


BROKEN: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "escapes nothing": ("WORDS", re.compile(r"(?s).*"), {"reason_code": 'a"b'}),
    "leaves counters as they are stored": ("sorted", list, {"counters": {"b": 1, "aa": 2}}),
    "leaves what was shown as it is stored": ("sorted", list, {"shown": sorted(FULL.shown, reverse=True)}),
    "takes any counter": ("COUNTERS", re.compile(r".*"), {"counters": {"very_little": 1e-7}}),
    "takes any list": ("IDS", re.compile(r".*"), {"shown": [[BARE.role_ref, BARE.actor_ref]]}),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", BROKEN)
def test_a_writer_that_is_less_careful_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variants, each with an event that gives it away."""
    what, instead, changed = BROKEN[name]
    written, event = both(columns_of(BARE, **changed))
    wanted = leaf_bytes(event)
    assert bytes_of_written(written) in (None, wanted)
    monkeypatch.setattr(canonical, what, instead, raising=False)
    assert bytes_of_written(written) not in (None, wanted)


@pytest.mark.usefixtures("unchecked")
def test_what_the_quick_way_leaves_gets_the_leaf_of_the_other() -> None:
    insert(columns_of(BARE, reason_code="it\N{RIGHT SINGLE QUOTATION MARK}s", number=7))
    [written] = tree_store.written([7])
    assert bytes_of_written(written) is None
    assert tree_store.leaf_of(written) == leaf_of(AuditEvent.objects.get(number=7))


@pytest.mark.usefixtures("unchecked")
def test_numbers_without_an_event_are_left_out() -> None:
    assert tree_store.written([]) == tree_store.written([1, 2]) == []
