"""Agents whose server is in another time zone, and stores times without one: `AGENT_TIMEZONE` says which it is."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from sessions_app import registry
from sessions_app.models import SessionRecord
from tests.agents import add_items, attach_main_store, value_of

pytestmark = pytest.mark.usefixtures("agent_tables")


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_pages_and_the_registry_have_the_time_at_which_it_was_said(
    zone: str, settings: Settings, operator: Client
) -> None:
    settings.AGENT_TIMEZONE = zone
    store = attach_main_store()
    before = value_of("SELECT clock_timestamp()")
    add_items("far-away", "Good morning", timezone=zone)
    after = value_of("SELECT clock_timestamp()")
    record = SessionRecord.objects.get()
    assert before <= record.last_activity_at <= after
    assert registry.check(store).problems == ()

    said = times_on(operator.get(record.get_absolute_url()).text)
    assert said
    assert any(before.replace(microsecond=0) <= time <= after for time in said)
    assert all(time <= value_of("SELECT clock_timestamp()") for time in said), "nothing is in the future"
    shown = times_on(operator.get(reverse("sessions:list")).text)
    assert any(before.replace(microsecond=0) <= time <= after for time in shown)


def times_on(page: str) -> list[datetime]:
    return [datetime.fromisoformat(text) for text in re.findall(r'<time[^>]* datetime="([^"]+)"', page)]
