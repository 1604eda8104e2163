"""What is redacted is what was shown: anything else is left, and the difference is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord, SessionStore
from sessions_app.redaction import TextToRedact, services
from sessions_app.redaction.previews import PLACES_SHOWN, find_places
from sessions_app.redaction.services import RedactionRequest
from tests.agents import add_items, assistant, in_sdk, user
from tests.builders import make_subject
from tests.people import person, signed_in
from tests.runs.working import report_of, work_off

SECRET = "sk-live-4711"
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABo"}
GIVEN = {"text": SECRET, "reason": "leaked_secret"}


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", user(f"My key is {SECRET}"), assistant("Thank you."))
    SessionRecord.objects.filter(session_id="s").update(subject=make_subject("customer_1"))
    return SessionRecord.objects.select_related("subject", "store").get(session_id="s")


@pytest.fixture
def officer(record: SessionRecord) -> User:
    return person("compliance")


@pytest.fixture
def console(officer: User) -> Client:
    return signed_in(officer)


def read(session_id: str = "s") -> list[Any]:
    return list(in_sdk(lambda tables: tables.session(session_id).get_items()))


def asked_as_shown(record: SessionRecord, officer: User, **given: Any) -> Redaction:
    preview = find_places([record], TextToRedact.parse(SECRET), by=officer, granted=())
    request = RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=officer, preview=preview, **given)
    return services.redact_in_session(record, request)


def rewrite(position: int, item: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agent_messages SET message_data = %s"
            " WHERE id = (SELECT id FROM agent_messages WHERE session_id = 's' ORDER BY id OFFSET %s LIMIT 1)",
            [json.dumps(item), position],
        )


def test_shown_items_are_redacted_and_nothing_else_is_left_of_the_preview(record: SessionRecord, officer: User) -> None:
    asked = asked_as_shown(record, officer)
    assert (asked.shown_places, asked.is_limited) == (1, True)
    work_off()
    asked.refresh_from_db()
    assert read() == [user("My key is [redacted]"), assistant("Thank you.")]
    assert asked.shown == {}
    assert report_of(asked)["reasons"] == []


def changes_it() -> None:
    rewrite(0, user(f"Another text with {SECRET}"))


def writes_more() -> None:
    add_items("s", user(f"Again: {SECRET}"))


@pytest.mark.parametrize(("meanwhile", "places"), [(changes_it, 0), (writes_more, 1)], ids=["changed item", "new item"])
def test_item_that_was_not_shown_stays_and_is_told(
    record: SessionRecord, officer: User, console: Client, meanwhile: Callable[[], None], places: int
) -> None:
    asked = asked_as_shown(record, officer)
    meanwhile()
    work_off()
    report = report_of(asked)
    assert report["places"] == places
    assert [reason[0] for reason in report["reasons"]] == ["not_shown"]
    assert sum(SECRET in json.dumps(item) for item in read()) == 1
    told = console.get(asked.get_absolute_url()).text
    assert "was not in the preview, or changed since" in told


def test_items_that_moved_are_known_by_their_content(record: SessionRecord, officer: User) -> None:
    """In a store without item ids others move to their places, as here by hand."""
    asked_as_shown(record, officer)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agent_messages SET message_data = other.message_data FROM agent_messages AS other"
            " WHERE agent_messages.session_id = 's' AND other.session_id = 's' AND other.id <> agent_messages.id"
        )
    work_off()
    assert read() == [assistant("Thank you."), user("My key is [redacted]")]


def test_session_that_began_after_the_preview_is_left(record: SessionRecord, officer: User) -> None:
    assert record.subject
    records = SessionRecord.objects.about(record.subject).with_names()
    preview = find_places(records, TextToRedact.parse(SECRET), by=officer, granted=())
    request = RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=officer, preview=preview)
    asked = services.redact_about(record.subject, request)
    add_items("later", user(f"My key is {SECRET}"))
    SessionRecord.objects.filter(session_id="later").update(subject=record.subject)
    work_off()
    assert read()[0] == user("My key is [redacted]")
    assert read("later")[0] == user(f"My key is {SECRET}")
    assert [reason[0] for reason in report_of(asked)["reasons"]] == ["not_shown"]


def test_compaction_block_that_was_not_shown_stays(record: SessionRecord, officer: User) -> None:
    asked = asked_as_shown(record, officer, takes_compactions=True)
    add_items("s", COMPACTION)
    work_off()
    assert read()[-1] == COMPACTION
    assert [reason[0] for reason in report_of(asked)["reasons"]] == ["compacted"]
    # It is part of the next preview, as one more place.
    add_items("s", user(f"My key is {SECRET}"), {**COMPACTION, "id": "cmp_2"})
    asked = asked_as_shown(record, officer, takes_compactions=True)
    assert asked.shown_places == 3
    work_off()
    assert all(item.get("type") != "compaction" or item["id"] == "cmp_1" for item in read())


def test_empty_list_of_shown_items_means_none(record: SessionRecord, officer: User) -> None:
    asked = asked_as_shown(record, officer)
    Redaction.objects.filter(pk=asked.pk).update(shown={})
    work_off()
    assert read()[0] == user(f"My key is {SECRET}")


def test_change_between_preview_and_submit_is_told_and_marked(record: SessionRecord, console: Client) -> None:
    address = reverse("sessions:redact-session", args=[record.pk])
    form = {**GIVEN, "looked": console.post(address, GIVEN).context["token"], "redact": "yes"}
    writes_more()
    page = console.post(address, form)
    told = " ".join(page.text.split())
    assert "changed since the preview: 1 occurrence in 1 item then, 2 in 2 now" in told
    assert told.count("changed since</span>") == 1
    assert not Redaction.objects.exists()
    form["looked"] = page.context["token"]
    assert console.post(address, form).status_code == 302
    work_off()
    assert SECRET not in json.dumps(read())


def test_places_beyond_the_shown_ones_are_counted(record: SessionRecord, console: Client) -> None:
    add_items("s", *(user(f"{number}: {SECRET} <b>") for number in range(PLACES_SHOWN + 12)))
    page = console.post(reverse("sessions:redact-session", args=[record.pk]), GIVEN)
    told = " ".join(page.text.split())
    assert f"first {PLACES_SHOWN} of {PLACES_SHOWN + 13}" in told
    assert "and 13 more places, which are redacted as well" in told
    assert told.count("<del>") == PLACES_SHOWN
    assert "&lt;b&gt;" in told
    assert "<ins>[redacted]</ins> <b>" not in page.text


def test_preview_is_recorded_with_the_sessions_that_it_shows(record: SessionRecord, console: Client) -> None:
    console.post(reverse("sessions:redact-session", args=[record.pk]), GIVEN)
    event = AuditEvent.objects.get(type="redaction.previewed")
    assert record.pk in event.shown
