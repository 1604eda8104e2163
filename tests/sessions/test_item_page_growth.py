"""Pages of very long items: eight times the item is the same work and the same answer; the page says what it lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memadmin.web.masking import find_values
from memories_app.learning.proposing import ProposedQuote
from sessions_app import masking
from sessions_app.models import AgentMessage, SessionRecord, SessionStore
from tests.agents import add_items, assistant
from tests.builders import make_subject
from tests.memories.queue import a_reviewer, waiting
from tests.people import person, signed_in

MAIL = "anna{:06}@example.com"


def parts(number: int) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": f"part {i:06} of it"} for i in range(number)]}


def mails(number: int) -> dict[str, Any]:
    return {"role": "user", "content": " ".join(MAIL.format(i) for i in range(number))}


def members(number: int) -> dict[str, Any]:
    return {"type": "unheard_of", "k": {f"key {i:06}": "v" for i in range(number)}}


LONG = {parts: (4_000, 500), mails: (7_000, 1_200), members: (9_000, 1_100)}
"""Number of parts of an item that is longer than its own page shows, and than the page of its session."""


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("chat-1", "Before", "Long", assistant("After"))
    record = SessionRecord.objects.get(session_id="chat-1")
    record.subject = make_subject("cust_1")
    record.save(update_fields=["subject"])
    return record


@pytest.fixture
def item_id(record: SessionRecord) -> str:
    return str(AgentMessage.objects.order_by("id").values_list("id", flat=True)[1])


def store_item(item_id: str, value: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agent_messages SET message_data = %s WHERE id = %s", [json.dumps(value), item_id])


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of characters of each text that is searched for values to mask."""
    lengths: list[int] = []

    def counted(text: str, **options: Any) -> Any:
        lengths.append(len(text))
        return find_values(text, **options)

    monkeypatch.setattr(masking, "find_values", counted)
    return lengths


def work_of(get: Callable[[], Any], searched: list[int]) -> tuple[int, int]:
    """Characters searched for values to mask, and length of the answer without numbers, ids and tokens."""
    searched.clear()
    page = get()
    assert page.status_code == 200
    words = re.sub(r"[\w:=-]{16,}", "", re.sub(r"[\d,.]+", "1", page.text))
    return sum(searched), len(words)


def test_pages_do_the_same_work_for_eight_times_an_item(
    record: SessionRecord, item_id: str, searched: list[int]
) -> None:
    client, reviewer = signed_in(person("support")), signed_in(a_reviewer())
    neighbour = AgentMessage.objects.latest("id").pk
    quote = ProposedQuote(
        "After", record_id=record.pk, session_id="chat-1", item_id=str(neighbour), speaker="assistant"
    )
    memory = waiting("Tea.", subject=record.subject, evidence=[quote])
    why = {"reason": "payment"}
    item, session = reverse("sessions:item", args=[record.pk, item_id]), record.get_absolute_url()
    pages: dict[str, tuple[int, Callable[[], Any]]] = {
        "item": (0, lambda: client.get(item)),
        "its later parts": (0, lambda: client.get(item, {"part": 200})),
        "item, revealed": (0, lambda: client.post(reverse("sessions:reveal", args=[record.pk, item_id]), why)),
        "session": (1, lambda: client.get(session)),
        "session as Markdown": (1, lambda: client.get(session, {"form": "markdown"})),
        "refresh": (1, lambda: client.get(reverse("sessions:live", args=[record.pk]), {"state": "old"})),
        "session, revealed": (1, lambda: client.post(reverse("sessions:reveal-session", args=[record.pk]), why)),
        "evidence": (1, lambda: reviewer.get(reverse("reviews:review", args=[memory.pk]))),
        "list": (1, lambda: client.get(reverse("sessions:list"))),
    }
    faults = []
    for build, numbers in LONG.items():
        for what, (place, get) in pages.items():
            done = []
            for times in (1, 8):
                store_item(item_id, build(times * numbers[place]))
                get()  # the reveal before is told of once
                done.append(work_of(get, searched))
            (characters, length), (characters_often, length_often) = done
            if characters != characters_often or abs(length - length_often) > 200:
                faults.append(f"{what} of {build.__name__}: {done}")
    assert faults == []


def test_the_page_of_a_very_long_item_says_what_it_lacks(record: SessionRecord, item_id: str) -> None:
    client = signed_in(person("support"))
    store_item(item_id, parts(100_000))
    page = client.get(reverse("sessions:item", args=[record.pk, item_id]))
    assert "99,900 more parts in this item." in page.text
    assert "the download contains all" in page.text
    assert "too long or too deep" not in page.text
    last = client.get(reverse("sessions:item", args=[record.pk, item_id]), {"part": 99_900})
    assert "part 099999 of it" in last.text
    assert "more parts in this item" not in last.text
    store_item(item_id, members(50_000))
    page = client.get(reverse("sessions:item", args=[record.pk, item_id]))
    assert re.search(r"\d\d,\d{3} more values in these parts; the download contains all", page.text)


def test_the_session_says_of_a_part_of_an_item_that_there_are_more(record: SessionRecord, item_id: str) -> None:
    client = signed_in(person("support"))
    store_item(item_id, parts(4_000))
    page = client.get(record.get_absolute_url())
    assert "3,900 more parts in this item." in page.text
    store_item(item_id, parts(100_000))
    page = client.get(record.get_absolute_url())
    assert re.search(r"At least \d+ more parts in this item\.", page.text)


def test_the_download_of_a_very_long_item_is_complete(record: SessionRecord, item_id: str) -> None:
    client = signed_in(person("support"))
    store_item(item_id, parts(100_000))
    answer = client.get(reverse("sessions:item", args=[record.pk, item_id]), {"download": ""})
    assert json.loads(answer.content)["content"][-1]["text"] == "part 099999 of it"


def test_revealing_shows_a_part_and_counts_its_values_and_a_file_those_of_all(
    record: SessionRecord, item_id: str
) -> None:
    client = signed_in(person("support"))
    store_item(item_id, {"role": "user", "content": [MAIL.format(i) for i in range(9_000)]})
    address = reverse("sessions:reveal", args=[record.pk, item_id])
    page = client.post(address, {"reason": "payment"})
    assert page.status_code == 200
    assert MAIL.format(0) in page.text
    assert MAIL.format(8_999) not in page.text
    counted = AuditEvent.objects.filter(type="session.revealed").latest("at").counters["values"]
    # Of the stored text those that masking sees behind the part that is shown, too.
    shown = page.text.count("@example.com") - 100
    assert shown <= counted <= shown + 200
    answer: Any = client.post(address, {"reason": "payment", "download": "1"})
    assert MAIL.format(8_999) in answer.content.decode()
    assert AuditEvent.objects.filter(type="session.revealed").latest("at").counters["values"] == 9_000


def test_a_message_beside_evidence_is_shown_in_part(record: SessionRecord, item_id: str) -> None:
    reviewer: Client = signed_in(a_reviewer())
    store_item(item_id, {"role": "user", "content": "Where is my order? " * 10_000})
    neighbour = AgentMessage.objects.latest("id").pk
    quote = ProposedQuote(
        "After", record_id=record.pk, session_id="chat-1", item_id=str(neighbour), speaker="assistant"
    )
    memory = waiting("Tea.", subject=record.subject, evidence=[quote])
    page = reviewer.get(reverse("reviews:review", args=[memory.pk]))
    assert "Only the beginning of this message is shown." in page.text
    assert page.text.count("Where is my order?") < 1_000
