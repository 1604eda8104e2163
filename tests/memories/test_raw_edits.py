"""Memories in raw edits: with the permission and a reason, in the words that the gate lets stand, never by accident."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memories_app.admin import CHANGED_MEANWHILE
from memories_app.models import Evidence, Memory, MemoryVersion, Signal
from memories_app.raw_edits import EDITABLE, ONLY_PROPOSED, state_of
from tests.builders import make_subject
from tests.memories.builders import approved, one_of_each, proposed
from tests.people import person, signed_in
from tests.raw_edits import WHY

pytestmark = pytest.mark.django_db

SECRET = "zebra finch"


@pytest.fixture
def editor() -> Client:
    """Somebody of support who was given raw_edit, for as long as they need it."""
    user = person("support")
    user.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    return signed_in(user)


def address(verb: str, row: Any) -> str:
    return reverse(f"admin:memories_app_{row._meta.model_name}_{verb}", args=[row.pk])


def form_of(memory: Memory, **changes: Any) -> dict[str, Any]:
    """What a browser sends back from the form of a memory."""
    memory = Memory.objects.get(pk=memory.pk)
    sent = {name: getattr(memory, name) for name in EDITABLE}
    sent = {name: value for name, value in sent.items() if value is not None and name not in ("data", "agents")}
    return {**sent, "data": "{}", "agents": "", "opened_as": state_of(memory), **WHY, **changes}


def test_proposal_is_changed_with_a_reason(editor: Client) -> None:
    memory = proposed("Drinks tea.", subject=make_subject("customer_1"))
    page = editor.get(address("change", memory))
    assert "Drinks tea." in page.text
    assert state_of(memory) in page.text
    sent = form_of(memory, statement="Drinks\r\ngreen tea.", agents="support\r\nsales", confidence="0.75")
    assert editor.post(address("change", memory), sent).status_code == 302
    before = memory.content_hash
    memory.refresh_from_db()
    assert (memory.statement, memory.agents, memory.confidence) == ("Drinks\ngreen tea.", ["support", "sales"], 0.75)
    # The gate counted, and what looked for risks has to look again.
    assert memory.version == 2
    assert memory.content_hash != before == memory.screened_hash
    event = AuditEvent.objects.get(type="raw_edit.made")
    assert event.object_ref == memory.pk
    assert event.reason_code == WHY["why-reason"]


def test_opening_one_is_an_event_and_a_list_is_without_its_words(editor: Client) -> None:
    memory = approved(SECRET, data={"bird": SECRET})
    for row in one_of_each(memory, SECRET):
        page = editor.get(reverse(f"admin:memories_app_{row._meta.model_name}_changelist"))
        assert page.status_code == 200
        assert str(row) in page.text
        assert SECRET not in page.text
    assert not AuditEvent.objects.filter(type="memory.viewed").exists()
    assert SECRET in editor.get(address("change", memory)).text
    assert AuditEvent.objects.get(type="memory.viewed").object_ref == memory.pk


def test_what_stands_around_a_memory_shows_none_of_its_words(editor: Client) -> None:
    memory = approved(SECRET)
    rows = one_of_each(memory, SECRET)[1:]
    for row in rows:
        for verb in ("change", "history"):
            page = editor.get(address(verb, row))
            assert page.status_code == 200
            assert SECRET not in page.text
        assert SECRET not in editor.get(address("delete", row)).text


def test_memory_leads_to_what_stands_around_it(editor: Client) -> None:
    memory, other = approved("Drinks tea."), approved("Drinks coffee.")
    for link in re.findall(r'href="([^"]+\?memory=[^"]+)"', editor.get(address("change", memory)).text):
        page = editor.get(link)
        assert page.status_code == 200
        assert str(other.pk) not in page.text
    assert (
        f"version 1 of memory {memory.pk}"
        in editor.get(reverse("admin:memories_app_memoryversion_changelist", query={"memory": str(memory.pk)})).text
    )
    for nothing in ("none", "1"):
        address_of = reverse("admin:memories_app_evidence_changelist", query={"memory": nothing})
        assert editor.get(address_of).status_code == 200


def test_what_agents_recall_keeps_its_words_and_may_end_sooner(editor: Client) -> None:
    memory = approved("Drinks tea.")
    answer = editor.post(address("change", memory), form_of(memory, statement="Drinks coffee."))
    assert answer.status_code == 422
    assert ONLY_PROPOSED in answer.text
    assert "Drinks coffee." in answer.text, "what was typed is lost"
    memory.refresh_from_db()
    assert (memory.statement, memory.status) == ("Drinks tea.", Memory.Status.APPROVED)
    assert not AuditEvent.objects.filter(type="raw_edit.made").exists()
    assert not LogEntry.objects.exists()
    ending = form_of(memory, valid_until="2031-05-01 12:00")
    assert editor.post(address("change", memory), ending).status_code == 302
    memory.refresh_from_db()
    assert memory.valid_until is not None
    assert memory.status == Memory.Status.APPROVED


def test_what_is_no_memory_is_answered_in_a_sentence(editor: Client) -> None:
    memory = proposed("Drinks tea.")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"statement": "x" * 2_001}, "at most 2000 characters"),
        ({"statement": ""}, "This field is required."),
        ({"statement": "Drinks\0tea."}, "Null characters are not allowed."),
        ({"data": "[" * 9_000}, "nested too deeply"),
        *(({"data": f'{"{"}"cup": {"[" * depth}{"]" * depth}{"}"}'}, "nested too deeply") for depth in (990, 9_000)),
        ({"data": '{"cup": "\\u0000"}'}, "or contains characters that are not text."),
        ({"data": '{"cup": "\\ud800"}'}, "or contains characters that are not text."),
        ({"data": "[1, 2]"}, "Data must be a JSON object"),
        ({"data": '{"cup": '}, "Enter a valid JSON."),
        ({"data": f'{{"cup": "{"x" * 50_000}"}}'}, "longer than 20,000 characters"),
        ({"agents": "\n".join(f"agent {number}" for number in range(51))}, "no more than 50"),
        ({"confidence": "1.5"}, "less than or equal to 1"),
        ({"confidence": "nan"}, "Enter a number."),
        ({"kind": "rumour"}, "is not one of the available choices"),
        ({"key": "x" * 81}, "at most 80 characters"),
        (
            {"valid_from": "2031-05-01 12:00", "valid_until": "2030-05-01 12:00"},
            "The validity would end before it begins.",
        ),
        ({"valid_until": "tomorrow"}, "Enter a valid date/time."),
        ({"why-reason": ""}, "A raw edit needs a reason"),
    ]
    for changes, sentence in cases:
        sent = form_of(memory, **{"statement": "Drinks green tea."} | changes)
        answer = editor.post(address("change", memory), sent)
        assert answer.status_code == 422, (sentence, changes.keys())
        assert sentence in answer.text, (sentence, changes.keys())
        memory.refresh_from_db()
        assert memory.statement == "Drinks tea.", (sentence, changes.keys())
        assert memory.version == 1, (sentence, changes.keys())
        assert not AuditEvent.objects.filter(type="raw_edit.made").exists(), (sentence, changes.keys())


def test_form_that_is_out_of_date_saves_nothing(editor: Client) -> None:
    memory = proposed("Drinks tea.")
    sent = form_of(memory, statement="Drinks coffee.")
    Memory.objects.filter(pk=memory.pk).update(statement="Drinks water.")
    assert CHANGED_MEANWHILE in editor.post(address("change", memory), sent).text
    memory.refresh_from_db()
    assert memory.statement == "Drinks water."


def test_saving_a_form_leaves_what_a_job_wrote_meanwhile(editor: Client) -> None:
    memory = proposed("Drinks tea.")
    sent = form_of(memory, confidence="0.9")
    Memory.objects.filter(pk=memory.pk).update(risk_flags=["secret"], hints=["duplicate"])
    assert editor.post(address("change", memory), sent).status_code == 302
    memory.refresh_from_db()
    assert (memory.confidence, memory.risk_flags, memory.hints) == (0.9, ["secret"], ["duplicate"])


def test_form_without_a_change_is_no_event(editor: Client) -> None:
    memory = proposed("Drinks tea.", valid_until=datetime(2031, 5, 1, 12, 0, 0, 123_456, tzinfo=UTC), agents=["a", "b"])
    sent = form_of(memory, agents="a\r\nb", valid_until="2031-05-01 12:00:00")
    assert editor.post(address("change", memory), sent).status_code == 302
    assert not AuditEvent.objects.filter(type="raw_edit.made").exists()
    memory.refresh_from_db()
    assert memory.version == 1


def test_status_and_versions_are_not_to_be_changed_by_a_form(editor: Client) -> None:
    memory = proposed("Drinks tea.")
    forged = form_of(memory, confidence="0.9", status="approved", risk_flags="", screened_hash="x", source="operator")
    assert editor.post(address("change", memory), forged).status_code == 302
    memory.refresh_from_db()
    assert (memory.status, memory.source) == (Memory.Status.PROPOSED, Memory.Source.USER)
    version = MemoryVersion.objects.get(memory=memory)
    assert editor.post(address("change", version), {"statement": "Other words.", **WHY}).status_code == 403
    for row in (memory, version):
        assert editor.post(address("delete", row), {"post": "yes", **WHY}).status_code == 403
    assert Memory.objects.filter(pk=memory.pk).exists()


def test_evidence_and_signals_are_deleted_with_a_reason(editor: Client) -> None:
    memory = approved("Drinks tea.")
    signal = Signal.objects.create(kind="correction", text=SECRET)
    evidence = Evidence.objects.create(memory=memory, quote=SECRET, signal=signal)
    for row in (signal, evidence):
        assert editor.post(address("delete", row), {"post": "yes"}).status_code == 422
        assert type(row).objects.filter(pk=row.pk).exists()
        assert editor.post(address("delete", row), {"post": "yes", **WHY}).status_code == 302
        assert not type(row).objects.filter(pk=row.pk).exists()
        event = AuditEvent.objects.filter(type="raw_edit.made").latest("number")
        assert event.object_ref == row.pk
    assert SECRET not in " ".join(entry.object_repr + entry.change_message for entry in LogEntry.objects.all())


def test_raw_edit_alone_reads_no_memory() -> None:
    user = User.objects.create_user("editor")
    user.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    client, memory = signed_in(user), proposed("Drinks tea.")
    assert client.get(address("change", memory)).status_code == 403
    assert client.post(address("change", memory), form_of(memory, confidence="0.9")).status_code == 403
