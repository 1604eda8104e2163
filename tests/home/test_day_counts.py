"""Counts per day: what the job counts, when it counts again, and that the figures are those of the lists."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Model
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.log import event_names, types
from memadmin.audit.models import AuditEvent
from memadmin.audit.pages.counting_days import ACTIONS, DENIED, EVENTS, READS, ROWS, events_of_day
from memadmin.home import day_counts
from memadmin.home.day_counts import DAYS_SHOWN, add_to_days, count_days, midnight, series_of
from memadmin.home.models import CountedDay, DayCount
from memories_app.models import Recall, Review
from memories_app.review.counting_days import APPROVED, DECISIONS, PROPOSALS, RECALLS, REJECTED
from sessions_app.models import SessionRecord
from sessions_app.services.counting_days import SESSIONS
from tests.builders import make_session, make_store, make_subject
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.memories.builders import approved, decided, proposed, reviewer_number
from tests.people import proven

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
TODAY = NOON.date()


class Rows:
    """A series of rows with times, which a test adds, and the days that were counted."""

    def __init__(self) -> None:
        self.times: list[datetime] = []
        self.asked: list[date] = []

    def __call__(self, begin: datetime, end: datetime) -> dict[str, int]:
        self.asked.append(begin.date())
        return {"": sum(begin <= time < end for time in self.times)}

    def days_asked(self) -> list[date]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """The only series."""
    rows = Rows()
    monkeypatch.setattr(day_counts, "_series", {"rows": rows})
    monkeypatch.setattr(day_counts, "_with_late_rows", set())
    return rows


def counted(series: str = "rows") -> dict[date, int]:
    return dict(DayCount.objects.filter(series=series).exclude(count=0).values_list("day", "count"))


def test_a_new_series_is_counted_for_all_days_that_are_shown(rows: Rows) -> None:
    rows.times = [NOON, NOON - timedelta(days=29), NOON - timedelta(days=30)]
    assert count_days(NOON) == DAYS_SHOWN
    assert rows.days_asked() == [TODAY - timedelta(days=ago) for ago in reversed(range(DAYS_SHOWN))]
    assert counted() == {TODAY: 1, TODAY - timedelta(days=29): 1}


def test_today_is_counted_each_time_and_yesterday_until_an_hour_after_its_end(rows: Rows) -> None:
    count_days(NOON)
    rows.days_asked()
    rows.times = [NOON, NOON]
    count_days(NOON + timedelta(minutes=5))
    assert rows.days_asked() == [TODAY]
    midnight_after = midnight(TODAY) + timedelta(days=1)
    rows.times.append(midnight_after - timedelta(seconds=1))
    count_days(midnight_after + timedelta(minutes=30))
    assert rows.days_asked() == [TODAY, TODAY + timedelta(days=1)]
    assert counted() == {TODAY: 3}
    count_days(midnight_after + timedelta(minutes=61))
    rows.days_asked()
    count_days(midnight_after + timedelta(minutes=66))
    assert rows.days_asked() == [TODAY + timedelta(days=1)]


def test_a_day_that_is_over_keeps_its_count_whatever_is_erased(rows: Rows) -> None:
    rows.times = [NOON, NOON]
    count_days(NOON)
    rows.times = []
    count_days(NOON + timedelta(minutes=5))
    assert counted() == {}, "today is as it is now"
    rows.times = [NOON, NOON]
    count_days(NOON + timedelta(hours=14))
    rows.times = []
    count_days(NOON + timedelta(days=3))
    assert counted() == {TODAY: 2}


def test_late_rows_are_found_once_a_day_and_make_no_day_smaller(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_counts, "_with_late_rows", {"rows"})
    rows.times = [NOON - timedelta(days=3), NOON - timedelta(days=3), NOON - timedelta(days=5)]
    count_days(NOON)
    rows.days_asked()
    rows.times = [NOON - timedelta(days=3)] + [NOON - timedelta(days=5)] * 4
    count_days(NOON + timedelta(hours=1))
    assert rows.days_asked() == [TODAY]
    count_days(NOON + timedelta(hours=25))
    assert len(rows.days_asked()) == DAYS_SHOWN
    assert counted() == {TODAY - timedelta(days=3): 2, TODAY - timedelta(days=5): 4}


def test_a_series_that_fails_stops_no_other(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(begin: datetime, end: datetime) -> dict[str, int]:
        raise DatabaseError("statement timeout")

    monkeypatch.setattr(day_counts, "_series", {"broken": broken, "rows": rows})
    rows.times = [NOON]
    assert count_days(NOON) == DAYS_SHOWN
    assert counted() == {TODAY: 1}


def test_old_counts_are_deleted(rows: Rows) -> None:
    old = TODAY - timedelta(days=401)
    DayCount.objects.create(series="rows", day=old, count=7)
    CountedDay.objects.create(series="rows", day=old, counted_at=NOON)
    count_days(NOON)
    for model in (DayCount, CountedDay):
        assert not model._default_manager.filter(day=old).exists()


def test_a_part_that_is_gone_from_today_leaves_no_count() -> None:
    day_counts.save_day("x", TODAY, {"a": 1, "b": 2}, NOON, only_more=False)
    day_counts.save_day("x", TODAY, {"b": 3}, NOON, only_more=False)
    assert dict(DayCount.objects.values_list("part", "count")) == {"b": 3}


def test_added_counts_are_of_their_days() -> None:
    today = now().date()
    long_ago = today - timedelta(days=500)
    add_to_days("x", "1", {today: 2, today - timedelta(days=1): 1, long_ago: 5})
    add_to_days("x", "1", {today: 3})
    add_to_days("x", "2", {today: 4})
    series = series_of("x", "nothing", days=3)
    assert series["x"].parts == {"1": [0, 1, 5], "2": [0, 0, 4]}
    assert (series["x"].total, series["x"].largest_parts) == ([0, 1, 9], ["1", "2"])
    assert series["nothing"].total == [0, 0, 0]
    assert not DayCount.objects.filter(day=long_ago).exists()


def test_series_are_one_query_however_many_days_there_are() -> None:
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            series_of(SESSIONS, PROPOSALS, RECALLS)
        assert len(queries) == 1
        count_days()


# --- the figures are those of the lists -------------------------------------------------------------------------------


def moved(row: Model, column: str, at: datetime) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(**{column: at})


def test_sessions_by_store_are_those_on_record() -> None:
    at, main, other = now(), make_store(), make_store("other")
    for number in range(3):
        make_session(f"today {number}", store=main)
    moved(make_session("of another store", store=other), "registered_at", at)
    moved(make_session("yesterday", store=main), "registered_at", at - timedelta(days=1))
    moved(make_session("before", store=main), "registered_at", at - timedelta(days=DAYS_SHOWN))
    count_days()
    counts = series_of(SESSIONS)[SESSIONS]
    assert counts.of(str(main.pk))[-2:] == [1, 3]
    assert counts.of(str(other.pk))[-2:] == [0, 1]
    begin = midnight(counts.days[0])
    assert sum(counts.total) == SessionRecord.objects.on_record().filter(registered_at__gte=begin).count() == 5


def test_proposals_decisions_and_recalls_are_those_in_the_tables() -> None:
    proposed("Drinks tea."), proposed("Drinks coffee.")
    approved("Drinks water.", subject=make_subject())
    by = reviewer_number(7)
    decided(proposed("Drinks milk."), by, "reject")
    undone = decided(proposed("Drinks gin."), by, "reject")
    with proven(by):
        Review.objects.filter(pk=undone.pk).update(undone_at=now())
    Recall.objects.create()
    count_days()
    counts = series_of(PROPOSALS, DECISIONS, RECALLS)
    assert counts[PROPOSALS].total[-1] == 5
    assert (counts[DECISIONS].of(APPROVED)[-1], counts[DECISIONS].of(REJECTED)[-1]) == (1, 1)
    assert counts[DECISIONS].total[-1] == Review.objects.filter(undone_at=None).count()
    assert counts[RECALLS].total[-1] == Recall.objects.count()


TRIED = types.declare("test.day_counted", "Only tests try this.")


def test_events_by_kind_are_all_those_of_the_log() -> None:
    make_session()
    audit.record(TRIED)
    audit.record(TRIED, outcome="denied")
    begin = midnight(now().date())
    counts = events_of_day(begin, begin + timedelta(days=1))
    events = AuditEvent.objects.filter(at__gte=begin)
    denied = events.filter(outcome="denied").count()
    names = list(events.filter(outcome="succeeded").values_list("type", flat=True))
    assert denied == 1
    assert counts == {
        kind: count
        for kind, count in {
            READS: sum(map(event_names.is_read, names)),
            ROWS: sum(map(event_names.is_row, names)),
            ACTIONS: sum(not event_names.is_read(name) and not event_names.is_row(name) for name in names),
            DENIED: denied,
        }.items()
        if count
    }
    assert sum(counts.values()) == events.count()
    assert EVENTS in day_counts._series


@pytest.mark.django_db(transaction=True)
def test_two_inspections_add_to_a_new_day_at_the_same_time() -> None:
    today = now().date()
    with somebody_else() as beside:
        with transaction.atomic():
            add_to_days("x", "1", {today: 2})
            other = beside(lambda: add_to_days("x", "1", {today: 3}))
            wait_until_blocked(other)
        other.result()
    assert DayCount.objects.get(series="x", part="1").count == 5
