"""Walking a long list by key: every row once, whatever happens meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memadmin.web.paging import BadCursor, count_ahead, page_by_key, page_of_union, rows_after, rows_before
from sessions_app.models import SessionRecord, SessionStore

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)
ORDERS = [
    ("-last_activity_at", "-id"),
    ("last_activity_at", "pk"),
    ("finding_count", "-last_activity_at", "id"),
]
# Few different values, so that most rows tie with another.
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)

pytestmark = pytest.mark.django_db


def insert(some: list[tuple[int, int]]) -> set[UUID]:
    store, _ = SessionStore.objects.get_or_create(name="main")
    start = SessionRecord.objects.count()
    records = [
        SessionRecord(
            id=uuid4(),
            store=store,
            session_id=f"s{start + number}",
            last_activity_at=NOON + timedelta(microseconds=minute),
            finding_count=findings,
        )
        for number, (minute, findings) in enumerate(some)
    ]
    SessionRecord.objects.bulk_create(records)
    return {record.pk for record in records}


def walk(
    queryset: QuerySet[SessionRecord], *, size: int, meanwhile: list[list[tuple[int, int]]] | None = None
) -> tuple[list[UUID], list[UUID]]:
    """Ids seen on the way to the end, and on the way back from there to the beginning."""
    queue = iter(meanwhile or [])
    there: list[UUID] = []
    back: list[UUID] = []
    page = page_by_key(queryset, cursor="", size=size, salt="test")
    there += [row.pk for row in page.rows]
    while page.older:
        insert(next(queue, []))
        page = page_by_key(queryset, cursor=page.older, size=size, salt="test")
        there += [row.pk for row in page.rows]
    back[:0] = [row.pk for row in page.rows]
    while page.newer:
        page = page_by_key(queryset, cursor=page.newer, size=size, salt="test")
        back[:0] = [row.pk for row in page.rows]
    return there, back


@settings(max_examples=45, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.sampled_from(ORDERS), some=rows, size=st.integers(1, 5), meanwhile=st.lists(rows, max_size=4))
def test_walking_to_the_end_and_back_shows_every_row_once(
    order: tuple[str, ...], some: list[tuple[int, int]], size: int, meanwhile: list[list[tuple[int, int]]]
) -> None:
    SessionRecord.objects.all().delete()
    at_the_start = insert(some)
    queryset = SessionRecord.objects.order_by(*order)
    there, back = walk(queryset, size=size, meanwhile=meanwhile)

    assert len(there) == len(set(there))
    assert at_the_start <= set(there)
    position = {row.pk: number for number, row in enumerate(queryset)}
    assert back == sorted(position, key=lambda pk: position[pk])
    assert there == sorted(there, key=lambda pk: position[pk])


@settings(max_examples=45, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.sampled_from(ORDERS), some=rows, size=st.integers(1, 5))
def test_pages_of_a_union_are_the_pages_of_its_condition(
    order: tuple[str, ...], some: list[tuple[int, int]], size: int
) -> None:
    """Though a row may be in two of the branches, and ties are many."""
    SessionRecord.objects.all().delete()
    insert(some)
    ordered = SessionRecord.objects.order_by(*order)
    branches = [ordered.filter(finding_count=0), ordered.filter(finding_count__gt=1), ordered.filter(finding_count=2)]
    either = ordered.exclude(finding_count=1)
    cursor = ""
    while True:
        page = page_of_union(branches, cursor=cursor, size=size, salt="test")
        assert page == page_by_key(either, cursor=cursor, size=size, salt="test")
        if page.newer:
            back = page_of_union(branches, cursor=page.newer, size=size, salt="test")
            assert back == page_by_key(either, cursor=page.newer, size=size, salt="test")
        if not page.older:
            break
        cursor = page.older


def test_what_is_newer_in_a_union_is_counted_once() -> None:
    insert([(0, 0), (0, 2)])
    newest = SessionRecord.objects.newest_first()
    branches = [newest.filter(finding_count=2), newest.filter(finding_count__gt=0)]
    ahead = page_of_union(branches, cursor="", size=50, salt="test").ahead
    assert count_ahead(branches, cursor=ahead, cap=3, salt="test") == 0
    insert([(1, 1), (1, 2), (1, 0)])
    assert count_ahead(branches, cursor=ahead, cap=3, salt="test") == 2
    insert([(1, 2)] * 5)
    assert count_ahead(branches, cursor=ahead, cap=3, salt="test") == 4


def test_a_union_reads_no_more_than_a_page_of_each_branch() -> None:
    newest = SessionRecord.objects.newest_first()
    with CaptureQueriesContext(connection) as queries:
        page_of_union([newest, newest.filter(finding_count=1)], cursor="", size=50, salt="test")
    assert queries[0]["sql"].count("LIMIT 51") == 3


def test_a_page_says_which_neighbours_it_has() -> None:
    insert([(minute, 0) for minute in range(5)])
    newest = SessionRecord.objects.newest_first()
    first = page_by_key(newest, cursor="", size=2, salt="test")
    assert (bool(first.newer), bool(first.older)) == (False, True)
    middle = page_by_key(newest, cursor=first.older, size=2, salt="test")
    assert (bool(middle.newer), bool(middle.older)) == (True, True)
    last = page_by_key(newest, cursor=middle.older, size=2, salt="test")
    assert (bool(last.newer), bool(last.older)) == (True, False)
    assert page_by_key(newest, cursor=middle.newer, size=2, salt="test") == first


def test_an_empty_list_has_no_neighbours() -> None:
    page = page_by_key(SessionRecord.objects.newest_first(), cursor="", size=2, salt="test")
    assert (page.rows, page.newer, page.older) == ([], "", "")


@pytest.mark.parametrize("spoil", ["x", "{cursor}x", "x{cursor}", "a:b", "\0"])
def test_a_cursor_that_was_tampered_with_is_refused(spoil: str) -> None:
    insert([(minute, 0) for minute in range(3)])
    newest = SessionRecord.objects.newest_first()
    cursor = page_by_key(newest, cursor="", size=1, salt="test").older
    with pytest.raises(BadCursor, match="incomplete or was changed"):
        page_by_key(newest, cursor=spoil.format(cursor=cursor), size=1, salt="test")


def test_a_cursor_of_another_list_is_refused() -> None:
    insert([(minute, 0) for minute in range(3)])
    newest = SessionRecord.objects.newest_first()
    cursor = page_by_key(newest, cursor="", size=1, salt="test").older
    with pytest.raises(BadCursor):
        page_by_key(newest, cursor=cursor, size=1, salt="other")
    with pytest.raises(BadCursor):
        page_by_key(SessionRecord.objects.order_by("pk"), cursor=cursor, size=1, salt="test")


def test_rows_that_arrived_meanwhile_are_counted_up_to_a_cap() -> None:
    insert([(0, 0)])
    newest = SessionRecord.objects.newest_first()
    ahead = page_by_key(newest, cursor="", size=50, salt="test").ahead
    assert count_ahead([newest], cursor=ahead, cap=3, salt="test") == 0
    insert([(1, 0), (2, 0)])
    assert count_ahead([newest], cursor=ahead, cap=3, salt="test") == 2
    insert([(1, 0), (2, 0), (2, 0)])
    assert count_ahead([newest], cursor=ahead, cap=3, salt="test") == 4


def test_rows_before_and_after_a_row() -> None:
    insert([(minute, minute % 2) for minute in range(5)])
    newest = SessionRecord.objects.newest_first()
    rows = list(newest)
    assert list(rows_after(newest, rows[2])) == rows[3:]
    assert list(rows_before(newest, rows[2])) == [rows[1], rows[0]]


def test_a_deep_page_is_one_range_of_the_index() -> None:
    insert([(0, 0)] * 300)
    newest = SessionRecord.objects.newest_first()
    older = page_by_key(newest, cursor="", size=5, salt="test").older
    with CaptureQueriesContext(connection) as queries:
        page_by_key(newest, cursor=older, size=5, salt="test")
    (query,) = queries
    with connection.cursor() as cursor:
        # Without statistics the planner takes the rows of one store for a single one, and sorts it.
        cursor.execute("ANALYZE sessions_app_sessionrecord")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute("EXPLAIN " + query["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Cond: (ROW(last_activity_at, id) < ROW(" in plan
    assert "Sort" not in plan
    assert "Filter" not in plan
