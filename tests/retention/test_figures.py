"""Figures of the simulator about items by age, sessions with the oldest, and bytes: of what a run would take."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.retention.policies import figures
from memadmin.retention.policies.figures import bytes_of_rows, bytes_of_sessions, item_figures
from memadmin.retention.policies.lengths import Length, Unit
from memadmin.retention.policies.preview import BUCKETS, preview
from memadmin.retention.policies.rules import Rule
from memadmin.retention.policies.services import rules_in_force
from memadmin.retention.targets.base import PlaceCount
from memories_app.models import Signal
from sessions_app.models import SessionRecord
from tests.agents import add_items, attach_main_store, run_sql, value_of
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force, swept
from tests.table_statistics import keep_autovacuum_off, wait_for_statistics


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


def a_session(name: str, *days: int) -> SessionRecord:
    """With an item for each age, every one a turn of its own; it began with the first."""
    for number, each in enumerate(days):
        add_items(name, f"the text of {number}")
        run_sql(
            f"UPDATE agent_messages SET created_at = created_at - interval '{each} days 1 hour'"
            f" WHERE id = (SELECT max(id) FROM agent_messages WHERE session_id = '{name}')"
        )
    began = now() - timedelta(days=max(days), hours=1)
    run_sql(f"UPDATE agent_sessions SET updated_at = '{began:%Y-%m-%d %H:%M:%S}' WHERE session_id = '{name}'")
    SessionRecord.objects.filter(session_id=name).update(registered_at=began, last_activity_at=began)
    return SessionRecord.objects.get(session_id=name)


@pytest.fixture
def rule(agent_tables: None, officer: User) -> Rule:
    """On items older than 30 days: of one session two, of another one, of a held one one, of a young one none."""
    attach_main_store()
    a_session("two", 400, 70, 2)
    a_session("one", 40, 10)
    make_hold(a_session("held", 35, 1), by=officer)
    a_session("young", 20)
    return in_force("Items", days=30, target="items", clock="written").rule()


def test_items_are_counted_by_their_age(rule: Rule) -> None:
    rules = rules_in_force()
    counted = preview(rule, rules)
    found = item_figures(counted, rules)
    assert [bucket.taken for bucket in found.buckets] == [0, 1, 1, *[0] * (BUCKETS - 4), 1]
    assert [bucket.held for bucket in found.buckets] == [0, 1, *[0] * (BUCKETS - 2)]
    assert [bucket.kept for bucket in found.buckets] == [3, *[0] * (BUCKETS - 1)]
    assert found.is_complete
    assert sum(bucket.taken for bucket in found.buckets) == counted.items == 3


def test_where_nothing_is_due_there_is_nothing_to_draw(rule: Rule) -> None:
    rules = [replace(rule, length=Length(50, Unit.YEARS))]
    found = item_figures(preview(rules[0], rules), rules)
    assert (found.buckets, found.samples, found.byte_count, found.is_complete) == ([], [], 0, True)


def test_the_sessions_with_the_oldest_are_the_samples(rule: Rule) -> None:
    found = item_figures(preview(rule, rules_in_force()), rules_in_force())
    assert [(record.session_id, (now() - at).days) for at, record in found.samples] == [("two", 400), ("one", 40)]


def test_the_bytes_are_those_that_the_run_deletes(rule: Rule) -> None:
    found = item_figures(preview(rule, rules_in_force()), rules_in_force())
    before = value_of("SELECT sum(octet_length(message_data)) FROM agent_messages")
    run = swept()
    assert run.state == run.State.COMPLETE, run.reason
    assert found.byte_count == before - value_of("SELECT sum(octet_length(message_data)) FROM agent_messages")


@pytest.mark.parametrize(("name", "most"), [("MOST_READ", 1), ("MOST_LOOKED_AT", 1)])
def test_of_many_sessions_the_oldest_alone_are_read(
    rule: Rule, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(figures, name, most)
    found = item_figures(preview(rule, rules_in_force()), rules_in_force())
    assert not found.is_complete
    assert [record.session_id for _, record in found.samples] == ["two"]


@pytest.mark.django_db
def test_bytes_of_our_own_rows_are_those_of_the_rows_that_would_go() -> None:
    for text, days in (("x" * 500, 40), ("y", 40), ("young", 1)):
        signal = Signal.objects.create(kind="preference", text=text)
        Signal.objects.filter(pk=signal.pk).update(created_at=now() - timedelta(days=days))
    rule = in_force("Signals", days=30, target="signals", clock="created").rule()
    columns = " + ".join(f"coalesce(pg_column_size({field.attname}), 0)" for field in Signal._meta.concrete_fields)
    expected = value_of(f"SELECT sum({columns} + 24) FROM memories_app_signal WHERE text <> 'young'")
    assert bytes_of_rows(rule, rules_in_force()) == expected > 500
    for target in figures.MEASURED:
        other = in_force(target, days=30, target=target, clock="created").rule()
        assert bytes_of_rows(other, rules_in_force()) is not None


def test_bytes_of_sessions_are_estimated_by_their_table(agent_tables: None) -> None:
    attach_main_store()
    for name in ("old", "young"):
        add_items(name, *("x" * 1000 for _ in range(40)))
    age("old", timedelta(days=40))
    rule = in_force("Chats", days=30).rule()
    counted = preview(rule, rules_in_force())
    keep_autovacuum_off("agent_messages")
    # What is reported after ANALYZE is added to what that has counted.
    inserted = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'agent_messages'"
    wait_for_statistics(lambda: value_of(inserted) == 80)
    run_sql("ANALYZE agent_messages")
    size = value_of("SELECT pg_table_size('agent_messages')")
    assert bytes_of_sessions(counted) == (size // 2, True)
    elsewhere = replace(counted, places=[*counted.places, PlaceCount("elsewhere", rows=1, items=5)])
    assert bytes_of_sessions(elsewhere) == (size // 2, False)
    assert bytes_of_sessions(replace(counted, places=elsewhere.places[1:])) == (None, False)
    assert bytes_of_sessions(replace(counted, places=[])) == (0, True)


class TestPage:
    def test_items_are_drawn_with_samples_and_bytes(self, rule: Rule, officer: User) -> None:
        sent = {"name": "New", "target": "items", "action": "delete", "length_count": "20", "length_unit": "days"}
        page = (
            signed_in(officer)
            .post("/retention/new/", {**sent, "clock": "written", "step": "simulate"})
            .content.decode()
        )
        assert 'data-chart="age-histogram"' in page
        assert "Items by days since time of writing" in page
        assert str(SessionRecord.objects.get(session_id="two").pk) in page
        assert "in the oldest sessions" not in page
        assert "\xa0bytes" in page
