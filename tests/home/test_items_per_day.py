"""Items per day and store: those that an inspection sees for the first time, by their own times."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from memadmin.home.day_counts import series_of
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.counting_days import ITEMS
from sessions_app.services.inspection import inspect_quiet_sessions, inspect_session
from tests.agents import add_items, attach_main_store, run_sql, value_of


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    return attach_main_store()


def inspect() -> None:
    inspect_quiet_sessions(quiet=timedelta())


def counts(store: SessionStore) -> list[int]:
    """Of yesterday and today."""
    return series_of(ITEMS)[ITEMS].of(str(store.pk))[-2:]


def test_each_item_is_counted_once_on_its_own_day(store: SessionStore) -> None:
    add_items("old", "Yesterday", "Yesterday too")
    run_sql("UPDATE agent_messages SET created_at = created_at - interval '1 day'")
    add_items("old", "Today")
    add_items("new", "Today")
    inspect()
    assert counts(store) == [2, 2]
    add_items("old", "A second one")
    inspect()
    inspect()
    assert counts(store) == [2, 3]
    assert sum(counts(store)) == value_of("SELECT count(*) FROM agent_messages")


def test_an_inspection_without_news_counts_nothing(store: SessionStore) -> None:
    add_items("one", "Hello")
    inspect()
    SessionRecord.objects.update(inspected_count=-1)
    inspect()
    assert counts(store) == [0, 1]


def test_a_slower_inspection_of_the_same_items_counts_nothing(store: SessionStore) -> None:
    add_items("one", "Hello", "Hello again")
    before = SessionRecord.objects.select_related("store").get()
    inspect()
    inspect_session(before)
    assert counts(store) == [0, 2]


def test_deleted_items_are_not_counted_again_and_later_ones_are(store: SessionStore) -> None:
    add_items("one", "A", "B", "C")
    inspect()
    run_sql("DELETE FROM agent_messages WHERE id > (SELECT min(id) FROM agent_messages)")
    SessionRecord.objects.update(inspected_count=-1)
    inspect()
    add_items("one", "D")
    inspect()
    assert counts(store) == [0, 4]


def test_what_is_older_than_the_counts_is_left_out(store: SessionStore) -> None:
    add_items("one", "Long ago")
    run_sql("UPDATE agent_messages SET created_at = created_at - interval '500 days'")
    inspect()
    assert series_of(ITEMS)[ITEMS].total == [0] * 30
    assert SessionRecord.objects.get().counted_items == 1
    assert SessionRecord.objects.get().last_activity_at <= now()
