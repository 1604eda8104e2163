"""How often runs were told of a memory, week by week: on its page, as a picture and as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin.counting import COUNT_CAP
from memadmin.home.charts import Chart
from memories_app.models import Memory, Recall, RecalledMemory
from memories_app.recall.view_models import WEEKS, recall_chart
from tests.memories.builders import approved

pytestmark = pytest.mark.django_db

SUNDAY = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)


def counts(chart: Chart) -> list[int | float]:
    (series,) = chart.series
    return list(series.values)


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
    chart = recall_chart(memory, SUNDAY)
    assert (chart.row_labels[0], chart.row_labels[-1]) == ("24 Aug 2026", "16 Nov 2026")
    assert chart.labels[0] == "24 Aug"
    assert counts(chart) == [1, *[0] * 10, 1, 2]
    assert "2 this week" in chart.sentence


def test_a_week_is_counted_up_to_a_limit() -> None:
    memory = approved("Drinks tea.")
    told(memory, *[SUNDAY] * (COUNT_CAP + 5), SUNDAY - timedelta(weeks=1))
    assert counts(recall_chart(memory, SUNDAY))[-2:] == [1, COUNT_CAP + 1]


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
    assert '<canvas data-chart="recalls-per-week"' in page
    assert page.count('<th scope="row">') == WEEKS
    assert 'style="' not in page


def test_what_was_told_long_ago_is_thirteen_times_nothing(reviewer: Client) -> None:
    memory = approved("Drinks tea.")
    told(memory, now() - timedelta(weeks=40))
    assert recall_chart(memory).is_empty
    page = reviewer.get(memory.get_absolute_url())
    assert page.status_code == 200
    assert "No run has recalled it in the last 13 weeks." in page.text
    assert "charts.js" not in page.text
