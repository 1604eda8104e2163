"""The list of memories as a table: texts only where they are asked for, and then under the rules of reading."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memadmin.web.downloads import BYTE_ORDER_MARK
from tests.builders import make_subject
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

WORDS = "Drinks tea with oat milk."


def table(client: Client, **query: Any) -> list[dict[str, str]]:
    answer: Any = client.get(reverse("memories:table"), query)
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(StringIO(text.removeprefix(BYTE_ORDER_MARK), newline="")))


def exported() -> AuditEvent:
    return AuditEvent.objects.get(type="memory.table_exported")


def test_it_has_the_memories_of_the_list_without_their_texts(reviewer: Client) -> None:
    subject = make_subject("cust_1")
    memory = approved(WORDS, subject=subject)
    proposed("Something else.")
    (row,) = table(reviewer, status="approved", subject=str(subject.pk))
    assert (row["id"], row["status"], row["subject"]) == (str(memory.pk), "approved", "cust_1")
    assert WORDS not in str(row)
    made = exported()
    assert (made.counters, made.subject_ref) == ({"memories": 1, "statements": 0}, subject.pk)
    assert json.loads(made.detail.details) == {"filter": f"status=approved&subject={subject.pk}"}


def test_texts_are_masked_as_in_the_list(reviewer: Client) -> None:
    proposed("Pays with card 4111 1111 1111 1111.")
    proposed("=1+1 is a formula.")
    texts = [row["statement, masked"] for row in table(reviewer, statements=1)]
    assert "4111 1111 1111 1111" not in str(texts)
    assert any("Pays with card" in text for text in texts)
    assert "'=1+1 is a formula." in texts
    assert exported().counters == {"memories": 2, "statements": 1}


def test_texts_need_a_purpose_and_the_rest_does_not(reviewer: Client, settings: Any) -> None:
    settings.PURPOSE_REQUIRED = True
    proposed(WORDS)
    answer = reviewer.get(reverse("memories:table"), {"statements": "1"})
    assert reverse("accounts:purpose") in answer.headers.get("Location", "") + answer.text
    assert WORDS not in answer.text
    assert not AuditEvent.objects.filter(type="memory.table_exported").exists()
    assert len(table(reviewer)) == 1


def test_who_may_read_no_memory_gets_none(auditor: Client) -> None:
    proposed(WORDS)
    for client in (auditor, signed_in(person("administrator"))):
        assert client.get(reverse("memories:table")).status_code == 403
    assert not AuditEvent.objects.filter(type="memory.table_exported").exists()


def test_the_list_links_to_both(reviewer: Client) -> None:
    page = reviewer.get(reverse("memories:list"), {"status": "approved"}).text
    address = reverse("memories:table")
    assert f'href="{address}?status=approved"' in page
    assert f'href="{address}?status=approved&amp;statements=1"' in page
