"""A text that is redacted in a session is not to be read on in what was learned there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memories_app.models import Evidence, Memory, MemoryVersion, Review, Signal
from sessions_app.audit_events import RedactReason
from sessions_app.models import AgentMessage, Redaction, SessionRecord, SessionStore
from sessions_app.redaction import derived_copies, services
from sessions_app.redaction.services import RedactionRequest
from tests.agents import add_items
from tests.builders import make_subject
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in
from tests.runs.working import report_of, work_off

PLACE = "Kalju 4, Tallinn"


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", f"Send it to {PLACE}.", "I drink tea.")
    SessionRecord.objects.update(subject=make_subject("cust_1"), ticket="T-1")
    return SessionRecord.objects.select_related("subject", "store").get()


@pytest.fixture
def officer(record: SessionRecord) -> User:
    return person("compliance")


def first_item() -> str:
    return str(AgentMessage.objects.order_by("pk")[0].pk)


def asked(text: str = PLACE, *, by: User) -> RedactionRequest:
    return RedactionRequest(text, reason=RedactReason.MISTAKE, by=by)


def done(wanted: Redaction) -> Any:
    work_off()
    wanted.refresh_from_db()
    assert wanted.ended_at
    return report_of(wanted)


def everything() -> str:
    """All that memories keep, as text."""
    models = (Memory, MemoryVersion, Evidence, Signal, Review)
    return "\n".join(serializers.serialize("json", model._base_manager.defer(None)) for model in models)


def learned(record: SessionRecord, statement: str = f"Orders go to {PLACE}.") -> Memory:
    """Approved, from the first item, with the address in everything that a memory has."""
    memory = approved(statement, subject=record.subject, key=f"to {PLACE}", data={PLACE: [PLACE, {"at": PLACE}]})
    quote = f"Send it to {PLACE}."
    Evidence.objects.create(memory=memory, record_id=record.pk, item_id=first_item(), quote=quote)
    Evidence.objects.create(memory=memory, record_id=record.pk, quote=quote, speaker="nobody knows the item yet")
    Review.objects.update(note=f"I know {PLACE}.")
    Signal.objects.create(
        kind="correction", subject=record.subject, record_id=record.pk, item_id=first_item(), text=f"No, {PLACE}!"
    )
    return memory


def test_a_text_goes_from_all_that_was_learned_in_its_session(record: SessionRecord, officer: User) -> None:
    memory = learned(record)
    other = approved("Drinks tea.", subject=record.subject)
    assert PLACE in everything()
    report = done(services.redact_in_session(record, asked(by=officer)))
    assert PLACE not in everything()
    memory.refresh_from_db()
    assert memory.statement == "Orders go to [redacted]."
    assert memory.data == {"[redacted]": ["[redacted]", {"at": "[redacted]"}]}
    assert [one.quote for one in memory.evidence.all()] == ["Send it to [redacted]."] * 2
    assert [(version.number, bool(version.erased_at)) for version in memory.versions.order_by("number")] == [
        (1, True),
        (2, False),
    ]
    # Nobody approved these words: agents are not told them.
    assert memory.status == "needs_revalidation"
    assert memory.embedding is None
    assert not memory.is_screened
    assert report["copies"] == 2
    event = AuditEvent.objects.get(type="memory.redacted")
    assert (event.object_ref, event.counters) == (memory.pk, {"quotes": 2, "versions": 1, "notes": 1, "changed": 1})
    other.refresh_from_db()
    assert (other.statement, other.status) == ("Drinks tea.", "approved")
    assert not AuditEvent.objects.filter(detail__details__contains="Kalju").exists()


def test_without_it_the_address_would_go_on_standing_there(
    record: SessionRecord, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived_copies, "_redactors", [])
    learned(record)
    done(services.redact_in_session(record, asked(by=officer)))
    assert PLACE in everything()


def test_its_page_does_not_show_it_any_more(record: SessionRecord, officer: User) -> None:
    memory, client = learned(record), signed_in(officer)
    assert PLACE in client.get(memory.get_absolute_url()).text
    wanted = services.redact_in_session(record, asked(by=officer))
    done(wanted)
    page = client.get(memory.get_absolute_url()).text
    assert "Kalju" not in page
    assert "Send it to [redacted]." in page
    told = " ".join(client.get(wanted.get_absolute_url()).text.split())
    assert "removed from 2 memories and signals learned from these sessions" in told


def test_all_text_of_an_item_takes_its_quotes_and_what_repeats_them(record: SessionRecord, officer: User) -> None:
    memory = proposed(f"Said: Send it to {PLACE}.", subject=record.subject)
    item = first_item()
    Evidence.objects.create(memory=memory, record_id=record.pk, item_id=item, quote=f"Send it to {PLACE}.")
    elsewhere = Evidence.objects.create(memory=memory, record_id=record.pk, item_id="999", quote="I drink tea.")
    Signal.objects.create(kind="correction", record_id=record.pk, item_id=item, text=f"No, {PLACE}!")
    done(services.redact_item(record, item, asked("", by=officer)))
    assert PLACE not in everything()
    memory.refresh_from_db()
    assert (memory.statement, memory.status) == ("Said: [redacted]", "proposed")
    gone, kept = memory.evidence.get(item_id=item), Evidence.objects.get(pk=elsewhere.pk)
    assert (gone.quote, gone.gone_at is not None) == ("", True)
    assert (kept.quote, kept.gone_at) == ("I drink tea.", None)


def test_of_another_item_and_another_session_the_words_stay(record: SessionRecord, officer: User) -> None:
    memory = learned(record, "Moves house.")
    stays = Evidence.objects.create(memory=memory, record_id=record.pk, item_id="999", quote=PLACE)
    add_items("other", PLACE)
    other = SessionRecord.objects.get(session_id="other")
    theirs = approved(f"Lives at {PLACE}.", subject=record.subject)
    Evidence.objects.create(memory=theirs, record_id=other.pk, quote=PLACE)
    done(services.redact_item(record, first_item(), asked(by=officer)))
    stays.refresh_from_db()
    theirs.refresh_from_db()
    assert (stays.quote, theirs.statement) == (PLACE, f"Lives at {PLACE}.")
    assert Evidence.objects.filter(quote__contains=PLACE).count() == 2


def test_a_subjects_redaction_takes_what_nobody_knows_the_source_of(record: SessionRecord, officer: User) -> None:
    learned(record)
    approved(f"Imported: lives at {PLACE}.", subject=record.subject)
    stranger = approved(f"Also lives at {PLACE}.", subject=make_subject("cust_2"))
    assert record.subject
    done(services.redact_about(record.subject, asked(by=officer)))
    assert everything().count(PLACE) == 2  # the other person's memory, and its version
    stranger.refresh_from_db()
    assert stranger.status == "approved"


def test_they_go_also_where_the_store_is_away(
    record: SessionRecord, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(record)
    wanted = services.redact_in_session(record, asked(by=officer))
    SessionStore.objects.update(messages_table="not_there")
    assert done(wanted)["reasons"]
    assert PLACE not in everything()


def test_what_nobody_carried_out_in_time_takes_nothing(record: SessionRecord, officer: User) -> None:
    learned(record)
    wanted = services.redact_in_session(record, asked(by=officer))
    Redaction.objects.update(expires_at=now() - timedelta(minutes=1))
    done(wanted)
    assert PLACE in everything()


def test_a_reviewer_decides_about_the_new_words(record: SessionRecord, officer: User, reviewer: Client) -> None:
    memory = learned(record)
    done(services.redact_in_session(record, asked(by=officer)))
    assert memory in Memory.objects.awaiting_review()
