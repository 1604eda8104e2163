"""How many pages were answered, and how quickly, from the counts that Prometheus reads as well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf

import pytest
from django.test import Client
from prometheus_client import CollectorRegistry, Counter, Histogram

from memadmin.deploy.counts.responses import Responses, responses, responses_in
from memadmin.deploy.system import components

BEGAN = datetime(2026, 5, 1, 9, tzinfo=UTC)


def counted(*answers: tuple[str, str, float]) -> Responses:
    """Of answers, each with page, status and seconds."""
    registry = CollectorRegistry()
    number = Counter("memadmin_requests", "", ["page", "method", "status"], registry=registry)
    seconds = Histogram("memadmin_request_seconds", "", ["page"], buckets=(0.1, 0.5, 2), registry=registry)
    for page, status, took in answers:
        number.labels(page, "GET", status).inc()
        seconds.labels(page).observe(took)
    return responses_in(registry.collect(), BEGAN)


def test_pages_are_counted_and_not_files_or_probes() -> None:
    found = counted(
        *[("sessions:list", "200", 0.05)] * 18,
        ("sessions:detail", "404", 0.05),
        ("sessions:detail", "500", 1.5),
        *[(page, "200", 30) for page in ("static", "healthz", "readyz", "metrics", "unknown")],
    )
    assert (found.answered, found.failed, found.within) == (20, 1, 0.1)


@pytest.mark.parametrize(("slow", "within"), [(0, 0.1), (1, 0.1), (2, 2), (20, 2)])
def test_nineteen_of_twenty_answers_began_within(slow: int, within: float) -> None:
    answers = [("home", "200", 0.05)] * (20 - slow) + [("home", "200", 1.5)] * slow
    assert counted(*answers).within == within


def test_without_answers_and_above_all_bounds() -> None:
    assert counted().within is None
    assert counted(("home", "200", 9)).within == inf


def test_the_average_counts_a_minute_at_least() -> None:
    found = counted(*[("home", "200", 0.05)] * 30)
    assert found.per_minute(BEGAN + timedelta(seconds=2)) == 30
    assert found.per_minute(BEGAN + timedelta(minutes=10)) == 3


@pytest.mark.parametrize(
    ("bound", "text"),
    [(0.25, "95 % within 250 ms"), (2.5, "95 % within 2.5 s"), (inf, "more than 5 % take over 30 s")],
)
def test_durations_in_words(bound: float, text: str) -> None:
    assert components.response_in_words(bound) == text


@pytest.mark.django_db
def test_the_system_page_shows_them(administrator: Client) -> None:
    administrator.get("/system/")  # an answer is counted after it
    before = responses().answered
    page = administrator.get("/system/").text
    for name in ("Requests", "Response", "Failed requests", "a minute"):
        assert name in page
    assert responses().answered == before + 1
