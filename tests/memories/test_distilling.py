"""What is learned from sessions: by rules, by a model, and how it comes to wait for review."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from agents import Usage
from agents.items import ModelResponse
from agents.testing import ScriptedModel, assistant_message
from django.core.management import CommandError, call_command
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memories_app.distilling.agent import AgentDistiller
from memories_app.distilling.rules import RulesDistiller, found_in
from memories_app.distilling.saying import Said
from memories_app.models import Distillation, Evidence, LearningStop, Memory, Signal
from memories_app.services import distilling
from memories_app.services.distilling import distil_quiet_sessions, distil_session
from sessions_app.models import SessionRecord, Subject
from tests.agents import add_items, assistant, attach_main_store, drop_agent_tables
from tests.builders import make_subject
from tests.memories.builders import approved, proposed

SENTENCES: dict[str, list[tuple[str, str, str]]] = {
    "I prefer window seats.": [("preference", "", "Prefers window seats.")],
    "Hi! Well, I'd prefer e-mail over SMS, please note. Thanks": [("preference", "", "Prefers e-mail over SMS.")],
    "Please always write to me in English!": [("preference", "", "Asks to always write to me in English.")],
    "please never call before 9.30 in the morning": [
        ("preference", "", "Asks to never call before 9.30 in the morning.")
    ],
    "I am allergic to peanuts, so please check.": [("fact", "", "Is allergic to peanuts.")],
    "I\u2019m a vegetarian": [("fact", "", "Is vegetarian.")],
    "No, I meant the blue one": [("fact", "", "Meant the blue one, and was misunderstood.")],
    "My favourite drink is chai.": [("preference", "favourite_drink", "Their favourite drink is chai.")],
    "My daughter is called Ada. I don't eat meat.": [
        ("fact", "daughter", "Their daughter is called Ada."),
        ("preference", "", "Does not eat meat."),
    ],
    "Call me Doctor, please.": [("preference", "name", "Wants to be called Doctor.")],
    "Ich bevorzuge den Gang.": [("preference", "", "Said: Ich bevorzuge den Gang.")],
    "Je préfère le train.": [("preference", "", "Said: Je préfère le train.")],
    # No wishes.
    "Do you think I prefer tea?": [],
    "My order is late.": [],
    "My password is hunter2.": [],
    "If I prefer tea, then what.": [],
    "> I prefer window seats.": [],
    "```\nI prefer tabs.\n```": [],
    "I like it.": [],
    "I meant that.": [],
    "": [],
    "I prefer " + "x" * 500: [],
    "我喜欢喝茶。": [],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_what_rules_find(text: str) -> None:
    found = list(found_in(Said("1", "user", text)))
    assert [(one.kind, one.key, one.statement) for one in found] == SENTENCES[text]
    assert all(one.quote in text for one in found)


@pytest.fixture
def store(transactional_db: None) -> Iterator[None]:
    attach_main_store()
    yield
    drop_agent_tables()


def a_session(
    *items: Any, subject: Subject | None = None, is_known: bool = True, key: str = "chat-1", **columns: Any
) -> SessionRecord:
    """As an agent wrote it, about a subject, or about nobody who is known."""
    add_items(key, *items)
    about = {"subject": subject or make_subject(f"cust_{key}")} if is_known else {}
    SessionRecord.objects.filter(session_id=key).update(**about | columns)
    return SessionRecord.objects.select_related("store", "subject").get(session_id=key)


def answers(*memories: dict[str, Any], summary: str = "") -> str:
    whole = {"key": "", "explicit": True, "confidence": 0.8, "kind": "preference", "item": 1}
    return json.dumps({"memories": [whole | memory for memory in memories], "summary": summary})


def scripted(*texts: str) -> AgentDistiller:
    return AgentDistiller(ScriptedModel([[assistant_message(text)] for text in texts]))


class Hangs(ScriptedModel):
    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        await asyncio.Event().wait()
        raise AssertionError


class TestRules:
    def test_what_a_user_says_is_proposed_with_its_words(self, store: None) -> None:
        record = a_session("I prefer window seats. Where is my order?", assistant("I prefer aisles. On its way."))
        distilled = distil_session(record)
        memory = Memory.objects.get()
        assert (memory.statement, memory.kind, memory.subject) == (
            "Prefers window seats.",
            "preference",
            record.subject,
        )
        assert (memory.status, memory.provenance, memory.extractor) == ("proposed", "explicit", "rules/1")
        quote = Evidence.objects.get()
        assert (quote.quote, quote.speaker, quote.record_id) == ("I prefer window seats.", "user", record.pk)
        assert (quote.item_id, quote.session_id) == ("1", "chat-1")
        assert quote.said_at is not None
        row = distilled.row
        assert (row.outcome, row.proposal_count, row.model_calls) == ("done", 1, 0)
        event = AuditEvent.objects.get(type="session.distilled")
        assert (event.object_ref, event.reason_code) == (record.pk, "done")
        assert event.counters["proposed"] == 1

    def test_the_same_is_never_proposed_twice_whatever_was_decided(self, store: None) -> None:
        subject = make_subject()
        first = a_session("I prefer tea. I prefer tea!", subject=subject)
        assert distil_session(first).row.proposal_count == 1
        Memory.objects.update(status="rejected")
        other = a_session("I prefer  Tea", subject=subject, key="chat-2")
        distilled = distil_session(other)
        assert (distilled.row.proposal_count, distilled.known) == (0, 1)
        assert Memory.objects.count() == 1

    def test_what_is_true_again_is_proposed_again(self, store: None) -> None:
        subject = make_subject()
        memory = proposed("Prefers tea.", subject=subject)
        Memory.objects.filter(pk=memory.pk).update(status="superseded")
        assert distil_session(a_session("I prefer tea.", subject=subject)).row.proposal_count == 1

    def test_somebody_elses_wish_is_no_duplicate(self, store: None) -> None:
        proposed("Prefers tea.", subject=make_subject())
        assert distil_session(a_session("I prefer tea.")).row.proposal_count == 1

    def test_secrets_are_not_learned(self, store: None) -> None:
        key = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9bC1dE3fG5hJ7k"
        distilled = distil_session(a_session(f"My deploy key is {key}. I prefer tea."))
        assert [memory.statement for memory in Memory.objects.all()] == ["Prefers tea."]
        assert distilled.left_out == 1
        assert not Evidence.objects.filter(quote__contains=key[8:20]).exists()

    @pytest.mark.parametrize("columns", [{"is_sensitive": True}, {"is_encrypted": True}, {"is_known": False}])
    def test_what_may_not_be_read_is_not(
        self, store: None, columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record = a_session("I prefer tea.", **columns)
        monkeypatch.setattr(distilling, "sealed_backend_for", None)
        assert distil_session(record).row.outcome == "refused"
        assert not Memory.objects.exists()

    def test_locked_sessions_are_read_where_the_console_is_told_so(self, store: None, settings: Any) -> None:
        settings.DISTIL_LOCKED = True
        assert distil_session(a_session("I prefer tea.", is_sensitive=True)).row.proposal_count == 1
        # Without the key there is nothing to read.
        assert distil_session(a_session("I prefer tea.", key="2", is_encrypted=True)).row.outcome == "refused"

    def test_nothing_is_read_of_who_said_no_under_any_of_their_ids(
        self, store: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        subject = make_subject()
        record = a_session("I prefer tea.", subject=subject)
        merged = make_subject()
        merged.merged_into = subject
        merged.save()
        LearningStop.objects.create(subject=merged)
        monkeypatch.setattr(distilling, "sealed_backend_for", None)
        assert distil_session(record).row.outcome == "refused"

    def test_a_no_in_the_middle_of_a_reading_holds(self, store: None) -> None:
        subject = make_subject()
        record = a_session("I prefer tea.", subject=subject)

        class SaysNo:
            name = "says no"

            def read(self, said: Any) -> Any:
                LearningStop.objects.create(subject=subject)
                return RulesDistiller().read(said)

        distilled = distil_session(record, distiller=SaysNo())
        assert (distilled.row.outcome, Memory.objects.count()) == ("refused", 0)

    def test_signals_of_the_session_count_as_read(self, store: None) -> None:
        record = a_session("I prefer tea.")
        Signal.objects.create(record_id=record.pk, kind="correction", text="No, I meant tea.")
        distil_session(record)
        assert not Signal.objects.to_distil().exists()


class TestModel:
    def test_proposes_what_it_can_show(self, store: None) -> None:
        record = a_session("I always take the aisle.", assistant("Noted, and your knee?"))
        distilled = distil_session(
            record,
            distiller=scripted(
                answers(
                    {"statement": "Takes the aisle.", "quote": "ALWAYS take  the aisle", "key": "Seat"},
                    {"statement": "Has a bad knee.", "quote": "my knee hurts", "item": 1, "kind": "fact"},
                    {"statement": "Has a knee.", "quote": "your knee", "item": 2, "kind": "fact"},
                    {"statement": "Is nobody.", "quote": "aisle", "item": 7, "kind": "fact"},
                    summary="Chose a seat.",
                )
            ),
        )
        assert (distilled.row.outcome, distilled.row.model_calls, distilled.left_out) == ("done", 1, 2)
        found = {memory.statement: memory for memory in Memory.objects.all()}
        assert set(found) == {"Takes the aisle.", "Has a knee.", "Chose a seat."}
        assert (found["Takes the aisle."].key, found["Takes the aisle."].source) == ("seat", "user")
        # Words of an assistant may come from a page: inferred, and approved by no rule.
        assert (found["Has a knee."].provenance, found["Has a knee."].source) == ("inferred", "tool")
        assert found["Chose a seat."].kind == "summary"

    def test_a_later_summary_would_change_the_one_in_use_and_waits_for_no_other(self, store: None) -> None:
        record = a_session("Hello")
        distil_session(record, distiller=scripted(answers(summary="Said hello.")))
        distil_session(record, distiller=scripted(answers(summary="Said hello and more.")))
        assert Memory.objects.get().statement == "Said hello."
        used = approved("Said hello once.", subject=record.subject, kind="summary")
        Evidence.objects.update(memory=used)
        distil_session(record, distiller=scripted(answers(summary="Said goodbye.")))
        assert Memory.objects.get(statement="Said goodbye.").replaces == used

    def test_what_operators_wrote_is_read_too(self, store: None) -> None:
        record = a_session("Hello")
        signal = Signal.objects.create(record_id=record.pk, item_id="1", kind="feedback", text="Greet by first name.")
        distil_session(
            record,
            distiller=scripted(answers({"statement": "Greet by first name.", "quote": "first name", "item": 2})),
        )
        assert Memory.objects.get().source == "operator"
        assert Evidence.objects.get().signal == signal

    @pytest.mark.parametrize("answer", ["I would rather not.", '{"memories": 7}', '{"memories": [{"item": "x"}]}', ""])
    def test_nonsense_is_an_outcome_and_proposes_nothing(self, store: None, answer: str) -> None:
        distilled = distil_session(a_session("I prefer tea."), distiller=scripted(answer))
        assert (distilled.row.outcome, distilled.row.model_calls) == ("nonsense", 1)
        assert not Memory.objects.exists()
        assert AuditEvent.objects.get(type="session.distilled").reason_code == "nonsense"

    def test_a_model_that_hangs_is_given_up(self, store: None) -> None:
        distilled = distil_session(a_session("I prefer tea."), distiller=AgentDistiller(Hangs(), seconds=0.05))
        assert (distilled.row.outcome, distilled.row.model_calls) == ("timed_out", 1)

    def test_a_model_that_is_away_is_a_failure(self, store: None) -> None:
        distiller = AgentDistiller(ScriptedModel([ConnectionError("no route")]))
        assert distil_session(a_session("I prefer tea."), distiller=distiller).row.outcome == "failed"

    def test_tokens_are_counted(self, store: None) -> None:
        usage = Usage(requests=1, input_tokens=120, output_tokens=30, total_tokens=150)
        model = ScriptedModel([[assistant_message(answers())]], default_usage=usage)
        row = distil_session(a_session("Hello"), distiller=AgentDistiller(model)).row
        assert (row.input_tokens, row.output_tokens) == (120, 30)


class TestWhatWaits:
    def test_a_quiet_session_is_read_once_and_again_when_it_goes_on(self, store: None, settings: Any) -> None:
        settings.DISTIL_AFTER = timedelta(minutes=10)
        record = a_session("I prefer tea.")
        assert distil_quiet_sessions() == 0
        SessionRecord.objects.update(last_activity_at=now() - timedelta(hours=1))
        assert (distil_quiet_sessions(), distil_quiet_sessions()) == (1, 0)
        add_items("chat-1", "I prefer coffee.")
        SessionRecord.objects.update(last_activity_at=now() - timedelta(hours=1))
        assert distil_quiet_sessions() == 1
        assert {memory.statement for memory in Memory.objects.all()} == {"Prefers tea.", "Prefers coffee."}
        assert Distillation.objects.filter(record_id=record.pk).count() == 2

    @pytest.mark.parametrize(
        "columns",
        [
            {"is_known": False},
            {"is_sensitive": True},
            {"is_encrypted": True},
            {"last_activity_at": now() - timedelta(days=30)},
            {"erased_at": now()},
        ],
    )
    def test_others_do_not_wait(self, store: None, columns: dict[str, Any]) -> None:
        a_session("I prefer tea.", **{"last_activity_at": now() - timedelta(hours=1)} | columns)
        assert distil_quiet_sessions() == 0

    def test_none_learns_nothing(self, store: None, settings: Any) -> None:
        settings.DISTILLER = "none"
        a_session("I prefer tea.", last_activity_at=now() - timedelta(hours=1))
        assert distil_quiet_sessions() == 0
        with pytest.raises(CommandError, match="none"):
            call_command("distil")

    def test_the_command_says_what_came_of_each(self, store: None) -> None:
        record = a_session("I prefer tea.", last_activity_at=now() - timedelta(days=90))
        told = StringIO()
        call_command("distil", "--json", stdout=told)
        report = json.loads(told.getvalue())
        assert (report["session"], report["proposed"], report["outcome"]) == (str(record.pk), 1, "done")
        told = StringIO()
        call_command("distil", str(record.pk), stdout=told)
        assert "0 proposed, 1 known" in told.getvalue()

    def test_the_command_names_what_it_does_not_know(self, store: None) -> None:
        with pytest.raises(CommandError, match="no session"):
            call_command("distil", "00000000-0000-0000-0000-000000000000")
