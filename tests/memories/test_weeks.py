"""How often runs were told of a memory, week by week: on its page, as a picture and as a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin.counting import COUNT_CAP
from memories_app.models import Memory, Recall, RecalledMemory
from memories_app.recall.view_models import HEIGHT, WEEKS, weeks_of
from tests.memories.builders import approved

pytestmark = pytest.mark.django_db

SUNDAY = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)
FIRST, LAST = date(2026, 8, 24), date(2026, 11, 16)


def told(memory: Memory, *times: datetime) -> None:
    recall = Recall.objects.create()
    RecalledMemory.objects.bulk_create(
        RecalledMemory(recall=recall, memory=memory, version=1, place=1, recalled_at=at) for at in times
    )


def test_thirteen_weeks_from_monday_to_monday() -> None:
    memory, other = approved("Drinks tea."), approved("Drinks coffee.")
    monday = datetime(2026, 11, 16, tzinfo=UTC)
    moment = timedelta(microseconds=1)
    told(memory, monday, SUNDAY, monday - moment, datetime(2026, 8, 24, tzinfo=UTC), datetime(2026, 8, 23, tzinfo=UTC))
    told(other, monday)
    weeks = weeks_of(memory, SUNDAY)
    assert len(weeks) == WEEKS
    assert (weeks[0].begins_on, weeks[-1].begins_on) == (FIRST, LAST)
    assert [week.count for week in weeks] == [1, *[0] * 10, 1, 2]
    assert [week.height for week in weeks] == [HEIGHT // 2, *[0] * 10, HEIGHT // 2, HEIGHT]


def test_a_week_is_counted_up_to_a_limit() -> None:
    memory = approved("Drinks tea.")
    told(memory, *[SUNDAY] * (COUNT_CAP + 5), SUNDAY - timedelta(weeks=1))
    weeks = weeks_of(memory, SUNDAY)
    assert weeks[-1].count == COUNT_CAP + 1
    assert weeks[-2].height == 1, "a single one is not to be seen"


def test_page_says_each_week_and_needs_no_more_queries_for_more(reviewer: Client) -> None:
    memory = approved("Drinks tea.")
    assert "Recalls per week" not in reviewer.get(memory.get_absolute_url()).text
    told(memory, now())
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as asked:
            page = reviewer.get(memory.get_absolute_url()).text
        counts.append(len(asked))
        told(memory, *(now() - timedelta(weeks=weeks) for weeks in range(10)))
    assert counts[0] == counts[1]
    assert "Recalls per week, last 13 weeks" in page
    assert page.count("<rect x=") == WEEKS
    assert 'style="' not in page


def test_what_was_told_long_ago_is_thirteen_times_nothing(reviewer: Client) -> None:
    memory = approved("Drinks tea.")
    told(memory, now() - timedelta(weeks=40))
    assert {week.count for week in weeks_of(memory)} == {0}
    assert reviewer.get(memory.get_absolute_url()).status_code == 200
