"""Data of memories that the database takes and Python's decoder does not: no list, page or job ends with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.audit.log.event_details import as_text, parsed
from memadmin.runs.models import Run
from memories_app.admin import DataField
from memories_app.exchange.exporting import export_memories
from memories_app.learning.proposing import check_data
from memories_app.learning.screening import screen_memories
from memories_app.models import Memory
from memories_app.models.data import UNREADABLE
from memories_app.services.refusals import Unproposable
from sessions_app.audit_events import RedactReason
from sessions_app.models import Subject
from sessions_app.redaction.services import RedactionRequest, redact_about
from tests.builders import make_subject
from tests.memories.builders import proposed
from tests.runs.working import work_off

SECRET = "sk-live-4711"
ODD = {
    "levels": '{"a":' + "[" * 1_500 + f'"{SECRET}"' + "]" * 1_500 + "}",
    "digits": '{"a":' + "9" * 5_000 + f',"b":"{SECRET}"}}',
}


def with_data(data: str, subject: Subject) -> Memory:
    memory = proposed("Drinks tea.", subject=subject)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memories_app_memory SET data = %s::jsonb WHERE id = %s", [data, memory.pk])
    return memory


@pytest.fixture(params=ODD)
def memory(db: None, request: pytest.FixtureRequest) -> Memory:
    return with_data(ODD[request.param], make_subject("customer_1"))


def test_pages_jobs_and_exports_go_on(memory: Memory, reviewer: Client) -> None:
    beside = proposed("Prefers mail.", subject=memory.subject)
    assert memory.subject
    subject_page = memory.subject.get_absolute_url()
    for address in (reverse("memories:list"), reverse("reviews:list"), memory.get_absolute_url(), subject_page):
        assert reviewer.get(address).status_code == 200, address
    asked = {"subject": "customer_1", "query": "tea", "agent": "", "budget": "800"}
    previewed = reviewer.post(reverse("memories:recall"), asked)
    assert previewed.status_code == 200
    Memory.objects.update(screened_hash="")
    assert screen_memories() == 2
    lines = {line["statement"]: line["data"] for line in export_memories()}
    assert lines[beside.statement] == {}
    assert SECRET in lines["Drinks tea."][UNREADABLE]


def test_a_redaction_of_the_subject_removes_it(memory: Memory) -> None:
    assert memory.subject
    asked = redact_about(memory.subject, RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=None))
    work_off()
    asked.run.refresh_from_db()
    assert asked.run.state == Run.State.COMPLETE
    with connection.cursor() as cursor:
        cursor.execute("SELECT data::text FROM memories_app_memory")
        ((data,),) = cursor.fetchall()
    assert SECRET not in data


def test_data_that_a_marker_makes_too_long_goes_as_a_whole(db: None) -> None:
    """Markers are longer than a short text; the column takes no more, and the run would fail each time."""
    memory = with_data(json.dumps({"a": "key " * 9_000}), make_subject("customer_1"))
    assert memory.subject
    asked = redact_about(memory.subject, RedactionRequest("key", reason=RedactReason.LEAKED_SECRET, by=None))
    work_off()
    asked.run.refresh_from_db()
    assert asked.run.state == Run.State.COMPLETE
    memory.refresh_from_db()
    assert memory.data == {}


@pytest.mark.parametrize("levels", [101, 500, 900, 5_000])
def test_nested_data_is_refused_before_it_is_stored(levels: int) -> None:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    with pytest.raises(Unproposable, match="nested too deeply"):
        check_data({"a": value})
    check_data({"a": [["x"]]})


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_raw_edits_refuse_it_with_a_sentence(text: str) -> None:
    with pytest.raises(ValidationError, match=r"nested too deeply|thousands of digits"):
        DataField().clean(text)


def test_details_of_events_are_shown_whatever_a_row_contained() -> None:
    for text in ODD.values():
        assert SECRET in str(parsed(text))
    value: Any = "x"
    for _ in range(5_000):
        value = [value]
    assert as_text(value) == "nested too deeply to be shown"
