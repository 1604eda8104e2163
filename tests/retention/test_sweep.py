"""A sweep from the policy to what is left, on real tables of agents."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.timezone import now

from memadmin.retention.models import SweepResult, UnfinishedExpiry
from memadmin.retention.targets.after_sessions import HANGING
from memadmin.runs.models import Run
from memories_app.models import Evidence, Memory, Recall, Signal
from sessions_app.models import AgentMessage, AgentSession, FenceOutbox, SessionFinding, SessionRecord, SessionStore
from sessions_app.services.erasing_subjects import fence_subject
from tests.agents import add_items, value_of
from tests.builders import make_subject
from tests.memories.builders import approved as approved_memory
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force, swept


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


def test_old_sessions_go_and_young_ones_stay(kept_main_store: SessionStore) -> None:
    for name, days in (("old", 40), ("young", 20)):
        add_items(name, *(f"item {number}" for number in range(3)))
        age(name, timedelta(days=days))
    in_force("Chats", days=30)
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    assert value_of("SELECT string_agg(DISTINCT session_id, ',') FROM agent_messages") == "young"
    assert list(SessionRecord.objects.values_list("session_id", flat=True)) == ["young"]
    result = SweepResult.objects.get()
    assert (result.previewed, result.previewed_items, result.taken, result.items) == (1, 3, 1, 3)
    assert (result.backlog, result.state) == (0, "done")


def test_a_session_that_expired_can_begin_again(kept_main_store: SessionStore) -> None:
    add_items("old", "first")
    age("old", timedelta(days=40))
    before = SessionRecord.objects.get()
    in_force()
    swept()
    add_items("old", "again")
    again = SessionRecord.objects.get()
    assert again.pk != before.pk
    assert value_of("SELECT count(*) FROM agent_messages") == 1


def test_a_held_session_stays(kept_main_store: SessionStore, officer: User) -> None:
    for name in ("held", "free"):
        add_items(name, "text")
        age(name, timedelta(days=40))
    make_hold(SessionRecord.objects.get(session_id="held"), by=officer)
    in_force()
    run = swept()
    assert run.state == Run.State.COMPLETE
    assert SessionRecord.objects.get().session_id == "held"
    assert SweepResult.objects.get().held == 1


def test_a_long_session_goes_in_chunks(kept_main_store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add_items("long", *(f"item {number}" for number in range(250)))
    age("long", timedelta(days=40))
    in_force()
    run = swept()
    assert run.state == Run.State.COMPLETE
    assert value_of("SELECT count(*) FROM agent_messages") == 0
    assert not SessionRecord.objects.exists()
    result = SweepResult.objects.get()
    assert (result.taken, result.items) == (1, 250)


@pytest.mark.parametrize("is_begun", [True, False])
def test_an_erasure_that_has_begun_takes_over(kept_main_store: SessionStore, is_begun: bool) -> None:
    """The row of the session stays as its fence, also where a sweep had begun with it."""
    add_items("old", "text")
    age("old", timedelta(days=40))
    subject = make_subject("ada")
    SessionRecord.objects.update(subject=subject)
    version = in_force()
    if is_begun:
        SessionRecord.objects.update(erased_at=now())
        UnfinishedExpiry.objects.create(record_id=SessionRecord.objects.get().pk, version=version)
    with transaction.atomic():
        fence_subject(subject)
    assert swept().state == Run.State.COMPLETE
    assert SessionRecord.objects.get().session_id == "old"
    assert not UnfinishedExpiry.objects.exists()


def test_every_table_that_names_a_session_has_an_outcome() -> None:
    # The sessions themselves, what is being deleted, and refused writes to erased sessions until they are in the log.
    others = {SessionRecord, AgentSession, AgentMessage, UnfinishedExpiry, FenceOutbox}
    fields = [field for model in apps.get_models() for field in model._meta.concrete_fields]
    naming = {field.model for field in fields if field.name in ("record_id", "session_id")}
    assert naming - others == set(HANGING)
    assert not [field for field in fields if field.related_model is SessionRecord]


def test_what_hung_on_a_session_has_its_outcome(kept_main_store: SessionStore) -> None:
    add_items("old", "text")
    age("old", timedelta(days=40))
    record = SessionRecord.objects.get()
    kept, summary = approved_memory("likes tea"), approved_memory("talked of tea", kind=Memory.Kind.SUMMARY)
    for memory in (kept, summary):
        Evidence.objects.create(memory=memory, record_id=record.pk, session_id="old", item_id="1", quote="tea")
    Signal.objects.create(record_id=record.pk, session_id="old", kind="preference", text="tea")
    recall = Recall.objects.create(record_id=record.pk, session_id="old")
    SessionFinding.objects.create(record_id=record.pk, session_id="old", kind="orphan", item_id="1")
    in_force()
    swept()
    assert list(Memory.objects.all()) == [kept]
    quote = Evidence.objects.get()
    assert (quote.quote, quote.record_id, quote.session_id, quote.item_id) == ("", None, "", "")
    assert quote.gone_at is not None
    recall.refresh_from_db()
    assert (recall.record_id, recall.session_id) == (None, "")
    assert not Signal.objects.exists()
    assert not SessionFinding.objects.exists()
