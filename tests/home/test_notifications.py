"""Notifications are what waits for a person, read until it says something new."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memadmin.home import parts
from memadmin.home.models import ReadNotification
from memadmin.home.notifications import mark_all_read, notifications_of
from memadmin.home.parts import HomeParts, Waiting, on_home
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[Waiting]:
    """What waits for everybody who may see sessions; a test changes it."""
    entries = [
        Waiting("DSR-0001 is due", "/requests/1/", "View", "user-check"),
        Waiting("R-2 failed", "/runs/2/", "View", "bell"),
    ]
    monkeypatch.setattr(parts, "_sources", [])
    on_home("Work", "sessions_app.read_content")(lambda user: HomeParts(waiting=list(entries)))
    return entries


@pytest.fixture
def somebody() -> User:
    return person("support")


def unread_of(user: User) -> list[str]:
    return [each.entry.title for each in notifications_of(user).shown if not each.is_read]


def test_what_waits_is_unread_until_it_is_marked_for_each_person(waiting: list[Waiting], somebody: User) -> None:
    other = person("compliance")
    assert unread_of(somebody) == ["DSR-0001 is due", "R-2 failed"]
    mark_all_read(somebody)
    mark_all_read(somebody)
    assert unread_of(somebody) == []
    assert len(notifications_of(somebody).shown) == 2, "it still waits"
    assert notifications_of(other).unread == 2


def test_something_new_is_unread_and_first(waiting: list[Waiting], somebody: User) -> None:
    mark_all_read(somebody)
    waiting[1] = Waiting("R-2 failed again", "/runs/2/", "View", "bell")
    shown = notifications_of(somebody)
    assert [each.entry.title for each in shown.shown] == ["R-2 failed again", "DSR-0001 is due"]
    assert shown.unread == 1


def test_what_no_longer_waits_is_forgotten_unless_a_source_failed(waiting: list[Waiting], somebody: User) -> None:
    mark_all_read(somebody)

    def broken(user: User) -> HomeParts:
        raise ZeroDivisionError

    waiting.pop()
    on_home("Broken", "sessions_app.read_content")(broken)
    mark_all_read(somebody)
    assert ReadNotification.objects.count() == 2
    assert notifications_of(somebody).failed == ["Broken"]
    parts._sources.pop()
    mark_all_read(somebody)
    assert ReadNotification.objects.count() == 1


def test_charts_are_not_asked(waiting: list[Waiting], somebody: User) -> None:
    def fails(user: User) -> HomeParts:
        raise AssertionError("nothing of it waits")

    on_home("Charts", "sessions_app.read_content", waits=False)(fails)
    assert notifications_of(somebody).failed == []


def test_panel_and_page(waiting: list[Waiting], somebody: User) -> None:
    client = signed_in(somebody)
    panel = client.get("/notifications/", headers={"HX-Request": "true"}).text
    assert "<html" not in panel
    assert 'hx-swap-oob="true"' in panel
    assert "2 unread" in panel
    answer = client.post("/notifications/read/", headers={"HX-Request": "true"}, follow=True)
    assert "none unread" in answer.text
    page = client.get("/notifications/").text
    assert "<html" in page
    assert "DSR-0001 is due" in page


def test_nothing_waits(client: Client) -> None:
    assert "Nothing waits for you" in signed_in(person()).get("/notifications/").text
