"""Times of pages are in the reader's zone, which the browser names; in UTC by choice, and in Django admin."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from memadmin.web.templatetags.memadmin import ago, clock, day_and_clock, full_time
from memadmin.web.zones import begin_of, browser_zone, end_of, reader_zone
from sessions_app.models import SessionRecord
from tests.people import person

EVENING = datetime(2025, 12, 31, 21, 30, 5, tzinfo=UTC)


def zone_of(path: str = "/sessions/", **cookies: str) -> str:
    """Name of the zone that is active while a request is answered."""
    request = RequestFactory().get(path)
    request.COOKIES = cookies
    named: list[str] = []

    def respond(_: object) -> object:
        named.append(timezone.get_current_timezone_name())
        return None

    reader_zone(respond)(request)  # type: ignore[arg-type]
    return named[0]


def test_the_zone_is_the_browsers() -> None:
    assert zone_of(time_zone="Europe/Riga") == "Europe/Riga"
    assert timezone.get_current_timezone_name() == "UTC"


def test_utc_by_choice_in_django_admin_and_without_a_script() -> None:
    assert zone_of(time_zone="Europe/Riga", times="utc") == "UTC"
    assert zone_of("/admin/sessions_app/", time_zone="Europe/Riga") == "UTC"
    assert zone_of() == "UTC"


@pytest.mark.parametrize(
    "sent", ["", "Nowhere/Town", "../../etc/passwd", "/etc/localtime", "Europe", "a\0b", "é" * 300]
)
def test_a_cookie_that_names_no_zone_means_utc(sent: str) -> None:
    assert zone_of(time_zone=sent) == "UTC"
    request = RequestFactory().get("/")
    request.COOKIES = {"time_zone": sent}
    assert browser_zone(request) is None


def test_times_are_local_and_their_tooltip_is_utc() -> None:
    with timezone.override("Asia/Kathmandu"):
        assert ">1 Jan" in day_and_clock(EVENING)
        assert "03:15:05</time>" in day_and_clock(EVENING)
        assert clock(EVENING) == (
            '<time datetime="2025-12-31T21:30:05Z" title="31 Dec 2025, 21:30:05 UTC">03:15:05</time>'
        )
        assert "Thursday 1 January 2026, 03:15:05.000 +0545" in full_time(EVENING)
        assert "2025-12-31T21:30:05Z" in ago(EVENING)


def test_a_day_begins_and_ends_where_the_reader_is() -> None:
    day = date(2026, 3, 29)
    with timezone.override("Europe/Berlin"):
        assert begin_of(day) == datetime(2026, 3, 28, 23, 0, tzinfo=UTC)
        assert end_of(day) == datetime(2026, 3, 29, 21, 59, 59, 999_999, tzinfo=UTC)
    assert begin_of(day) == datetime(2026, 3, 29, tzinfo=UTC)


@pytest.mark.django_db
@pytest.mark.parametrize("day", [date.min, date.max])
def test_the_first_and_last_days_are_searched_too(day: date) -> None:
    for zone in ("Pacific/Kiritimati", "America/Adak"):
        with timezone.override(zone):
            assert not SessionRecord.objects.filter(last_activity_at__gte=end_of(date.max)).exists()
            assert not SessionRecord.objects.filter(last_activity_at__range=(begin_of(day), end_of(day))).exists()


@pytest.mark.django_db
def test_the_choice_is_kept_until_it_is_changed(client: Client) -> None:
    client.force_login(person("support"))
    client.cookies["time_zone"] = "Europe/Riga"
    page = client.get("/accounts/").text
    assert "In your time zone: Europe/Riga" in page
    assert 'title="Time zone of every time on this page: Europe/Riga"' in page

    assert client.post("/accounts/times/", {"times": "utc"}).url == "/accounts/"  # type: ignore[attr-defined]
    assert 'title="Time zone of every time on this page: UTC"' in client.get("/accounts/").text
    client.post("/accounts/times/", {"times": "browser"})
    assert 'title="Time zone of every time on this page: Europe/Riga"' in client.get("/accounts/").text
