"""A session with items that no SDK writes never takes a page or a job from the other sessions."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.runs.models import Run
from memories_app.learning.distillation import distil_quiet_sessions
from memories_app.models import Distillation
from sessions_app.audit_events import RedactReason
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.redaction import MARKER, services
from sessions_app.services.inspection import inspect_quiet_sessions
from tests.agents import add_items, in_sdk, user
from tests.builders import make_subject
from tests.odd_json import KNOWN, LEVELS
from tests.people import person, signed_in
from tests.runs.working import report_of, work_off

SECRET = "sk-live-4711"
SAYING_SO = "[" * LEVELS + f'"{SECRET}"' + "]" * LEVELS
TYPED_ODDLY = f'{{"type":["message"],"role":"user","content":[{{"type":["input_text"],"text":"{SECRET}"}}]}}'
AT_ONCE = timedelta(0)


@pytest.fixture
def subject(kept_main_store: SessionStore) -> Subject:
    """Whose sessions are an ordinary one, one for each odd item, and one with an item that nothing can redact."""
    add_items("ordinary", user(f"My key is {SECRET}"))
    odd = [raw for raw in KNOWN if raw.isascii()]
    for number, raw in enumerate([TYPED_ODDLY, *odd, SAYING_SO], start=1):
        add_items(f"odd-{number}", "first")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE agent_messages SET message_data = %s WHERE session_id = %s", [raw, f"odd-{number}"])
    subject = make_subject("customer_1")
    SessionRecord.objects.update(subject=subject)
    return subject


def said(session_id: str) -> list[Any]:
    return list(in_sdk(lambda tables: tables.session(session_id).get_items()))


def test_pages_show_the_other_sessions_and_each_odd_one(subject: Subject, operator: Client) -> None:
    for address in (reverse("sessions:list"), reverse("sessions:overview"), subject.get_absolute_url()):
        page = operator.get(address)
        assert page.status_code == 200
    listed = operator.get(reverse("sessions:list"))
    assert "My key is" in listed.text
    assert "First items are not readable" in listed.text
    found = operator.post(reverse("sessions:search"), {"q": "key"}, follow=True)
    assert found.status_code == 200
    for record in SessionRecord.objects.all():
        pages = [record.get_absolute_url(), reverse("sessions:item", args=[record.pk, item_of(record)])]
        pages += [reverse(f"sessions:export-{form}", args=[record.pk]) for form in ("jsonl", "markdown")]
        for address in pages:
            page = operator.get(address)
            assert page.status_code == 200, (record.session_id, address)
            assert page.streaming is False or b"".join(page)


def item_of(record: SessionRecord) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM agent_messages WHERE session_id = %s", [record.session_id])
        ((item_id,),) = cursor.fetchall()
    return str(item_id)


def test_raw_edits_show_each_odd_item(subject: Subject) -> None:
    editor = User.objects.create_user("editor")
    editor.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    client = signed_in(editor)
    for record in SessionRecord.objects.all():
        item = item_of(record)
        for verb in ("change", "delete"):
            page = client.get(reverse(f"admin:sessions_app_agentmessage_{verb}", args=[item]))
            assert page.status_code == 200, (record.session_id, verb)


def test_jobs_come_to_every_session(subject: Subject, settings: Any) -> None:
    settings.DISTIL_AFTER = AT_ONCE
    count = SessionRecord.objects.count()
    assert inspect_quiet_sessions(quiet=AT_ONCE) == count
    assert distil_quiet_sessions() == count - SessionRecord.objects.filter(is_encrypted=True).count()
    assert set(Distillation.objects.values_list("outcome", flat=True)) == {Distillation.Outcome.DONE}


def test_a_redaction_names_the_item_that_it_cannot_read_and_does_the_rest(subject: Subject) -> None:
    officer = person("compliance")
    request = services.RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=officer)
    preview = signed_in(officer).post(
        reverse("sessions:redact-subject", args=[subject.pk]), {"text": SECRET, "reason": "leaked_secret"}
    )
    assert "nested too deeply to be redacted" in preview.text
    asked = services.redact_about(subject, request)
    work_off()
    assert said("ordinary") == [user(f"My key is {MARKER}")]
    assert said("odd-1") == [json.loads(TYPED_ODDLY.replace(SECRET, MARKER))]
    asked.refresh_from_db()
    assert asked.run.state == Run.State.COMPLETE_WITH_EXCEPTIONS
    record = SessionRecord.objects.order_by("-registered_at").first()
    assert record
    place = f"item {item_of(record)} of /sessions/{record.pk}/"
    assert report_of(asked)["reasons"] == [["sealed", "main", 1], ["too_deep", place, 1]]
    page = signed_in(officer).get(asked.get_absolute_url())
    assert place in page.text
    assert SECRET not in page.text
