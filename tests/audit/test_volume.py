"""The chart of the log: events by day and group, at a cost that does not grow with the log."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.timezone import now

from memadmin.audit.log.groups import EventGroup
from memadmin.audit.models import AuditEvent
from memadmin.audit.pages import volume as volumes
from memadmin.audit.pages.forms import AuditFilter
from memadmin.audit.pages.volume import DAYS, EventVolume, newest, volume
from tests.audit.log_pages import address, insert_notes, note, words_of
from tests.builders import make_subject

pytestmark = pytest.mark.django_db

# The trigger stamps the time; only the owner can make events of other days.
INSERT_OLD = """
ALTER TABLE audit_event DISABLE TRIGGER USER;
INSERT INTO audit_event (type, actor_kind, actor_ref, role_ref, at, subject_ref)
SELECT %(type)s, 'person', gen_random_uuid(), gen_random_uuid(), now() - make_interval(days => %(days)s), %(subject)s
FROM generate_series(1, %(count)s);
ALTER TABLE audit_event ENABLE TRIGGER USER
"""


def insert_old(name: str, days: int, count: int, subject: UUID | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT_OLD, {"type": name, "days": days, "count": count, "subject": subject})


def counted(**query: Any) -> EventVolume:
    return volume(AuditFilter(QueryDict(urlencode(query)), User()))


def test_events_are_counted_by_day_and_group() -> None:
    insert_old("session.viewed", 2, 3)
    insert_old("memory.listed", 2, 1)
    insert_old("memory.approved", 1, 2)
    insert_old("session.viewed", DAYS + 1, 5)
    found = counted(until=now().date() - timedelta(days=1))
    today = now().date()
    assert len(found.days) == DAYS
    assert (found.days[0], found.days[-1]) == (today - timedelta(days=DAYS), today - timedelta(days=1))
    assert found.counts[today - timedelta(days=2), EventGroup.READING] == 4
    assert found.counts[today - timedelta(days=1), EventGroup.MEMORIES] == 2
    assert found.groups == [EventGroup.READING, EventGroup.MEMORIES]
    assert (found.total, found.is_capped) == (6, False)
    assert found.rows[-2] == (today - timedelta(days=2), [4, 0], 4)


def test_the_filters_of_the_list_count() -> None:
    subject = uuid4()
    insert_old("session.viewed", 3, 2, subject)
    insert_old("session.viewed", 3, 1)
    insert_old("memory.approved", 5, 1, subject)
    assert counted(subject=subject).total == 3
    assert counted(subject=subject, type="reading").total == 2
    assert counted(type="reading").total == 3
    day = now().date() - timedelta(days=5)
    assert counted(since=day, until=day).days == (day,)
    assert counted(since=day, until=day).total == 1
    assert counted(until=day).days[-1] == day
    assert counted(type="reading", since="0001-01-01", until="9999-12-31").total == 3
    assert counted().days[-1] == now().date()
    assert counted(since="9999-12-31").days == ()
    assert counted(until="0001-01-02").total == 0
    assert counted(type="tea.poured").days == ()


def test_a_day_is_one_of_the_reader() -> None:
    zone = ZoneInfo("Pacific/Kiritimati")
    noted = note()
    with timezone.override(zone):
        found = counted(type="note.taken")
    assert list(found.counts) == [(noted.at.astimezone(zone).date(), EventGroup.SETTINGS)]


def test_an_event_in_two_branches_is_counted_once() -> None:
    subject = make_subject()
    note(subject=subject, shown=[subject])
    assert counted(subject=subject.pk, type="note.taken").total == 1


def test_only_the_newest_are_counted_where_there_are_too_many(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "MOST_COUNTED", 10)
    insert_old("session.viewed", 9, 8)
    insert_old("session.viewed", 4, 7)
    found = counted(type="reading")
    assert (found.total, found.is_capped) == (10, True)
    assert found.days[0] == now().date() - timedelta(days=9)
    insert_old("session.viewed", 3, 9)
    assert counted(type="reading").days[0] == now().date() - timedelta(days=4)
    assert "No more than 10 events are counted" in words_of(auditor.get(reverse("audit:volume"), {"type": "reading"}))


@pytest.mark.parametrize("query", [{}, {"jobs": "with"}, {"type": "reading"}, {"type": "note.taken"}])
def test_it_reads_along_the_indexes_until_there_are_enough(query: dict[str, str]) -> None:
    """The branches are merged in their order: nothing is sorted, so that the limit ends the reading."""
    insert_notes(3_000)
    filters = AuditFilter(QueryDict(urlencode(query)), User())
    sql, parameters = newest(filters.branches())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE audit_event")
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {sql}", parameters)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert plan.startswith("Limit")
    assert "Sort  (" not in plan, plan
    assert "Index" in plan


class TestPage:
    def test_the_list_loads_it_with_its_filters(self, auditor: Client) -> None:
        page = auditor.get(address(type="reading")).text
        assert f'hx-get="{reverse("audit:volume")}?type=reading"' in page

    def test_figures_of_the_chart_are_in_a_table_too(self, auditor: Client) -> None:
        insert_old("session.viewed", 2, 1_234)
        page = auditor.get(reverse("audit:volume"), {"type": "reading"}, headers={"HX-Request": "true"}).text
        assert "<html" not in page
        figures = json.loads(unescape(re.findall('data-figures="([^"]*)"', page)[0]))
        assert [series["label"] for series in figures["series"]] == ["Reading"]
        assert figures["series"][0]["data"][-3] == 1_234
        assert '<td class="num">1,234</td>' in page

    def test_each_colour_has_its_word(self, auditor: Client) -> None:
        insert_old("session.viewed", 2, 3)
        insert_old("memory.approved", 2, 3)
        page = " ".join(auditor.get(reverse("audit:volume"), {"jobs": "with"}).text.split())
        legend = page.partition('<ul class="legend')[2].partition("</ul>")[0]
        assert '<i class="ink-blue"></i>Reading' in legend
        assert '<i class="ink-purple"></i>Memories' in legend

    def test_a_part_for_htmx_and_a_page_without_it_say_the_same(self, auditor: Client) -> None:
        part = auditor.get(reverse("audit:volume"), headers={"HX-Request": "true"}).text
        assert part.strip() in auditor.get(reverse("audit:volume")).text

    def test_looking_at_counts_is_no_event(self, auditor: Client) -> None:
        auditor.get(reverse("audit:volume"))
        assert not AuditEvent.objects.filter(type__startswith="log.").exists()

    def test_wrong_filters_are_said(self, auditor: Client) -> None:
        answer = auditor.get(reverse("audit:volume"), {"type": "tea.poured"})
        assert answer.status_code == 400
        assert "is not a recorded event type" in answer.text
