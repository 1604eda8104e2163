"""What distillers read, and what it cost, on a page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memories_app.learning.costs import costs_of_a_week
from memories_app.models import Distillation
from sessions_app.models import SessionRecord
from tests.builders import make_session

PAGE = reverse("memories:distillers")


def reading(record: SessionRecord | None = None, **columns: Any) -> Distillation:
    record = record or make_session()
    given = {"distiller": "agent:small/1", "outcome": "done", "model_calls": 1, "input_tokens": 900}
    return Distillation.objects.create(record_id=record.pk, session_id=record.session_id, **given | columns)


def test_a_week_is_added_up_for_each_distiller(db: None) -> None:
    for proposals in (2, 3):
        reading(proposal_count=proposals, output_tokens=40)
    reading(outcome="nonsense", model_calls=2)
    reading(began_at=now() - timedelta(days=8), input_tokens=1_000_000)
    reading(distiller="rules/1", model_calls=0, input_tokens=0)
    agent, rules = costs_of_a_week()
    assert (agent.readings, agent.failed, agent.proposals) == (3, 1, 5)
    assert (agent.model_calls, agent.input_tokens, agent.output_tokens) == (4, 2_700, 80)
    assert (rules.distiller, rules.readings, rules.input_tokens) == ("rules/1", 1, 0)


def test_each_reading_stands_there_with_its_session(operator: Client) -> None:
    record = make_session("chat-1", ticket="T-1")
    reading(record, proposal_count=2, input_tokens=12_345)
    gone = reading(outcome="timed_out")
    SessionRecord.objects.filter(pk=gone.record_id).update(erased_at=now())
    page = operator.get(PAGE)
    for words in (
        "T-1",
        "12,345",
        "timed out",
        "not available",
        reverse("memories:learned-from", args=[record.pk]),
    ):
        assert words in page.text, words
    assert record.get_absolute_url() in page.text


def test_its_cost_does_not_grow(operator: Client) -> None:
    def queries_for(count: int) -> int:
        for _ in range(count):
            reading()
        with CaptureQueriesContext(connection) as queries:
            assert len(operator.get(PAGE).context["readings"]) == 50
        return len(queries)

    operator.get(PAGE)
    assert queries_for(51) == queries_for(60)


def test_a_changed_page_link_is_told(operator: Client) -> None:
    page = operator.get(PAGE, {"cursor": "nonsense"})
    assert page.status_code == 400
    assert "is incomplete or was changed" in page.text


def test_nothing_read_yet_says_what_would(operator: Client) -> None:
    assert "No distillation runs yet" in operator.get(PAGE).text
