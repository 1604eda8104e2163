"""Whoever sees what people said is recorded before it leaves; where that fails nothing leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memadmin.audit.log.event_names import is_read
from memadmin.audit.models import AuditActor, AuditEvent
from sessions_app.models import AgentMessage, SessionRecord, TextSearch
from tests.agents import add_items, attach_main_store, run_sql
from tests.builders import make_subject
from tests.people import person, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent_tables")]

SECRET = "the heron lands at seven"


@pytest.fixture
def session() -> SessionRecord:
    attach_main_store()
    add_items("chat-heron", SECRET, SECRET)
    record = SessionRecord.objects.get()
    record.subject = make_subject("cust_heron")
    record.save(update_fields=["subject"])
    return record


@pytest.fixture
def reader(session: SessionRecord) -> Client:
    return signed_in(person("support"))


def item_url(session: SessionRecord, **query: str) -> str:
    item = AgentMessage.objects.earliest("pk")
    return reverse("sessions:item", args=[session.pk, str(item.pk)], query=query or None)


def search(session: SessionRecord) -> TextSearch:
    by = User.objects.get(username="support")
    return TextSearch.objects.create(text="heron", searched_by=by, expires_at="2100-01-01T00:00Z")


READS: dict[str, Callable[[SessionRecord], tuple[str, str]]] = {
    "timeline": lambda s: (s.get_absolute_url(), "session.viewed"),
    "live": lambda s: (reverse("sessions:live", args=[s.pk]), "session.followed"),
    "item": lambda s: (item_url(s), "item.viewed"),
    "item as a file": lambda s: (item_url(s, download="1"), "item.downloaded"),
    "JSON Lines": lambda s: (reverse("sessions:export-jsonl", args=[s.pk]), "session.downloaded"),
    "Markdown": lambda s: (reverse("sessions:export-markdown", args=[s.pk]), "session.downloaded"),
    "list": lambda s: (reverse("sessions:list"), "session.listed"),
    "overview": lambda s: (reverse("sessions:overview"), "session.listed"),
    "subject": lambda s: (s.subject.get_absolute_url(), "subject.viewed"),  # type: ignore[union-attr]
    "subjects": lambda s: (reverse("sessions:subjects"), "subject.listed"),
    "found names": lambda s: (reverse("sessions:search-results", args=[search(s).pk]), "search.shown"),
    "found words": lambda s: (reverse("sessions:search-messages", args=[search(s).pk]), "search.shown"),
    "list of found": lambda s: (reverse("sessions:list", query={"search": str(search(s).pk)}), "search.shown"),
}


def content_of(response: Any) -> str:
    parts = response.streaming_content if response.streaming else [response.content]
    return b"".join(parts).decode()


def test_each_read_is_recorded_with_what_was_shown(session: SessionRecord, reader: Client) -> None:
    for place, read in READS.items():
        url, event_type = read(session)
        before = AuditEvent.objects.latest("number").number
        text = content_of(reader.get(url))
        assert "heron" in text, place
        [event] = AuditEvent.objects.filter(type=event_type, number__gt=before)
        assert is_read(event.type), place
        assert AuditActor.objects.get(ref=event.actor_ref).label == "support", place
        named = {event.object_ref, event.subject_ref, *event.shown}
        assert session.subject_id in named, place
        if place not in ("subjects", "found names"):
            assert session.pk in named, place


def shown_without_the_log(session: SessionRecord, reader: Client) -> set[str]:
    """Places that answer although their event cannot be written."""
    urls = {place: read(session)[0] for place, read in READS.items()}
    run_sql("ALTER TABLE audit_event ADD CONSTRAINT nothing_fits CHECK (id IS NULL) NOT VALID")
    try:
        answers = {place: (answer := reader.get(url), content_of(answer)) for place, url in urls.items()}
    finally:
        run_sql("ALTER TABLE audit_event DROP CONSTRAINT nothing_fits")
    refused = {
        place
        for place, (answer, text) in answers.items()
        if answer.status_code == 503 and "heron" not in text and "The audit log is not available" in text
    }
    return set(READS) - refused


def test_without_the_log_nothing_is_shown(session: SessionRecord, reader: Client) -> None:
    assert shown_without_the_log(session, reader) == set()


def test_counts_say_how_much_was_shown(session: SessionRecord, reader: Client) -> None:
    reader.get(session.get_absolute_url())
    assert AuditEvent.objects.get(type="session.viewed").counters == {"items": 2}
    reader.get(reverse("sessions:list"))
    assert AuditEvent.objects.get(type="session.listed").counters == {"sessions": 1}


def test_a_page_that_finds_nothing_new_shows_nothing(session: SessionRecord, reader: Client) -> None:
    live = reader.get(session.get_absolute_url()).context["live_url"]
    for _ in range(3):
        assert reader.get(live).status_code == 204
    assert not AuditEvent.objects.filter(type="session.followed").exists()
    add_items("chat-heron", "and one more")
    assert reader.get(live).status_code == 200
    assert AuditEvent.objects.get(type="session.followed").counters == {"items": 3}


def test_an_empty_list_shows_nobody(reader: Client) -> None:
    reader.get(reverse("sessions:list", query={"ticket": "none has it"}))
    assert not AuditEvent.objects.filter(type="session.listed").exists()


def test_the_words_of_a_search_are_not_in_the_log(reader: Client) -> None:
    reader.post(reverse("sessions:search"), {"q": "the heron"})
    event = AuditEvent.objects.get(type="search.made")
    assert event.object_ref == TextSearch.objects.get().pk
    assert event.commitment is None


def test_every_page_says_that_reads_are_recorded(session: SessionRecord, reader: Client) -> None:
    assert "content is recorded" in reader.get(session.get_absolute_url()).text
