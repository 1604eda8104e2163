"""Pages of very long items: only the beginning is masked and rendered, and the page says so."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from sessions_app.items import StoredItem
from sessions_app.masked_reader import BEGINNING_CHARACTERS, PAGE_CHARACTERS
from sessions_app.masking import Masker
from sessions_app.models import AgentMessage, SessionRecord, SessionStore
from tests.agents import add_items
from tests.people import person, signed_in

LONG = {
    "1,000 parts": [{"type": "input_text", "text": f"part {number} of it"} for number in range(1_000)],
    "10,000 parts": [{"type": "input_text", "text": f"part {number} of it"} for number in range(10_000)],
    "100,000 parts": [{"type": "input_text", "text": f"part {number} of it"} for number in range(100_000)],
    "1 MB": "Where is my order? " * 52_000,
    "20 MB": "Where is my order? " * 1_050_000,
}


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    for content in LONG.values():
        add_items("chat-1", {"role": "user", "content": content})
    return SessionRecord.objects.get(session_id="chat-1")


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of characters of each item that is masked."""
    lengths: list[int] = []
    original = Masker.file_item

    def counted(self: Masker, stored: StoredItem) -> StoredItem:
        lengths.append(len(stored.raw) + len(stored.raw_tail))
        return original(self, stored)

    monkeypatch.setattr(Masker, "file_item", counted)
    return lengths


def test_the_page_of_a_very_long_item_shows_its_beginning_and_says_so(record: SessionRecord, masked: list[int]) -> None:
    client = signed_in(person("support"))
    item_ids = AgentMessage.objects.order_by("id").values_list("id", flat=True)
    for (what, content), item_id in zip(LONG.items(), item_ids, strict=True):
        page = client.get(reverse("sessions:item", args=[record.pk, item_id]))
        assert page.status_code == 200
        assert "too long or too deep" not in page.text
        assert ("the download contains all" in page.text) == (len(json.dumps(content)) > BEGINNING_CHARACTERS), what
        assert masked.pop() <= PAGE_CHARACTERS, what
        assert len(page.text) < PAGE_CHARACTERS, what


def test_the_download_of_a_very_long_item_is_complete(record: SessionRecord) -> None:
    client = signed_in(person("support"))
    item = AgentMessage.objects.order_by("id")[2]
    answer = client.get(reverse("sessions:item", args=[record.pk, item.pk]), {"download": ""})
    assert json.loads(answer.content)["content"][-1]["text"] == "part 99999 of it"
