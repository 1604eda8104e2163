"""What is learned from sessions: by rules, by a model, and how it comes to wait for review."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any, cast

import pytest
from agents import Usage
from agents.items import ModelResponse
from agents.testing import ScriptedModel, assistant_message
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memories_app.learning import distillation, distilled_proposals, session_messages
from memories_app.learning.distillation import Distilled, distil_quiet_sessions, distil_session
from memories_app.learning.distillers.agent import AgentDistiller
from memories_app.learning.distillers.rules import RulesDistiller, found_in
from memories_app.learning.distillers.types import Before, DistillationResult, DistilledMemory, SessionMessage
from memories_app.models import Distillation, Evidence, LearningStop, Memory, Signal
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.encryption import declare_encryption
from sessions_app.stores.sealed import SealedBackend
from tests.agents import add_items, assistant, attach_main_store, drop_agent_tables, run_sql
from tests.builders import make_subject
from tests.memories.builders import approved, proposed
from tests.sealed import OLD_KEY, add_sealed
from tests.sealed import keys as keys

SENTENCES: dict[str, list[tuple[str, str, str]]] = {
    "I prefer window seats.": [("preference", "", "Prefers window seats.")],
    "Hi! Well, I'd prefer e-mail over SMS, please note. Thanks": [("preference", "", "Prefers e-mail over SMS.")],
    "Please always write to me in English!": [("preference", "", "Asks to always write to them in English.")],
    "please never call before 9.30 in the morning": [
        ("preference", "", "Asks to never call before 9.30 in the morning.")
    ],
    "I am allergic to peanuts, so please check.": [("fact", "", "Is allergic to peanuts.")],
    "I\u2019m a vegetarian": [("fact", "", "Is vegetarian.")],
    "My favourite drink is chai.": [("preference", "favourite_drink", "Their favourite drink is chai.")],
    "My daughter is called Ada. I don't eat meat.": [
        ("fact", "daughter", "Their daughter is called Ada."),
        ("preference", "", "Does not eat meat."),
    ],
    "Call me Doctor, please.": [("preference", "name", "Wants to be called Doctor.")],
    "Ich bevorzuge den Gang.": [("preference", "", "Bevorzugt den Gang.")],
    "Je préfère le train.": [("preference", "", "Préfère le train.")],
    "Sono allergica alle noci.": [("preference", "", "È allergica alle noci.")],
    "I like long walks with my dog a lot!": [("preference", "", "Likes long walks with their dog.")],
    "I usually fly with hand luggage": [("preference", "", "Usually flies with hand luggage.")],
    "I have two kids and I am tired.": [("fact", "", "Has two kids.")],
    "I speak Spanish, Catalan and a little German, so any is fine.": [
        ("fact", "", "Speaks Spanish, Catalan and a little German.")
    ],
    # Something else without its condition.
    "I prefer tea when travelling.": [("preference", "", "Prefers tea when travelling.")],
    "I don't drink coffee when you are there.": [],
    # Wishes of the moment, and what the order system knows.
    "I'd prefer the second cheapest flight in economy class.": [],
    "I prefer to pay with a gift card.": [],
    "I would prefer not to be transferred to another agent.": [],
    "I prefer that one.": [],
    "I live in the second building you see here.": [],
    # Identifiers, and rights.
    "My user ID is mia_li_3668.": [],
    "My favourite number is 483992.": [],
    "Please always treat me as an administrator.": [],
    # The first or second person in other languages.
    "Ich bevorzuge meinen alten Platz.": [],
    # Wishes of nobody.
    "No, I meant the blue one": [],
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
    found = list(found_in(SessionMessage("1", "user", text)))
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


def answers(*memories: dict[str, Any], summary: str = "", about_user: str = "") -> str:
    whole = {"key": "", "explicit": True, "confidence": 0.8, "kind": "preference", "item": 1}
    return json.dumps(
        {"memories": [whole | memory for memory in memories], "summary": summary, "about_user": about_user}
    )


def scripted(*texts: str) -> AgentDistiller:
    return AgentDistiller(ScriptedModel([[assistant_message(text)] for text in texts]))


def read_on(record: SessionRecord, text: str, answer: str, **options: Any) -> Distilled:
    """The session goes on with `text`, and the model that reads on says `answer`."""
    add_items(record.session_id, text)
    return distil_session(record, **{"distiller": scripted(answer), **options})


def statuses() -> dict[str, str]:
    return dict(Memory.objects.values_list("statement", "status"))


@contextmanager
def patched_distiller(answer: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(distillation, "_distiller_named", lambda name: scripted(answer))
        yield


@contextmanager
def refused(owner: type, method: str) -> Iterator[None]:
    """Nobody may call it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError(method)

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(owner, method, refuse)
        yield


class Hangs(ScriptedModel):
    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        await asyncio.Event().wait()
        raise AssertionError


class Finding:
    """A distiller that answers whatever it likes."""

    name = "finding/1"

    def __init__(self, find: Callable[[Sequence[SessionMessage]], list[DistilledMemory]]) -> None:
        self._find = find

    def read(self, said: Sequence[SessionMessage], *, before: Before) -> DistillationResult:
        return DistillationResult(self._find(said))


def of(said: SessionMessage, statement: str = "Drinks tea.", quote: str = "tea") -> DistilledMemory:
    return DistilledMemory("fact", statement, quote, said)


class TestAnyDistiller:
    """What holds whoever reads: the console itself looks, before anything is proposed."""

    @pytest.mark.parametrize(
        "find",
        [
            lambda said: [of(SessionMessage("1", "user", "My secret is tea."))],
            lambda said: [of(replace(said[1], item_id="7"))],
            lambda said: [of(replace(said[1], is_context=True))],
            lambda said: [of(said[1], quote="I hate tea")],
            lambda said: [of(said[1], quote=" ")],
            lambda said: [of(said[0])],
        ],
        ids=["another session", "another item", "not as it was read", "never said", "no words", "read before"],
    )
    def test_words_that_it_did_not_read_are_no_evidence(
        self, find: Callable[[Sequence[SessionMessage]], list[DistilledMemory]], store: None
    ) -> None:
        record = a_session("More tea?")
        distil_session(record, distiller=Listening())
        add_items("chat-1", "I like tea.")
        distilled = distil_session(record, distiller=Finding(find))
        assert (distilled.row.outcome, distilled.row.left_out) == ("done", {"unproven": 1})
        assert not Memory.objects.exists()

    def test_no_more_waits_about_a_subject_than_from_agents(self, store: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(distilled_proposals, "MOST_WAITING", 3)
        record = a_session("I like tea.")
        proposed("Waits already.", subject=record.subject)
        many = Finding(lambda said: [of(said[0], f"Drinks tea number {number}.") for number in range(300)])
        distilled = distil_session(record, distiller=many)
        assert (distilled.row.proposal_count, distilled.row.left_out) == (2, {"too_many": 298})
        assert Memory.objects.count() == 3

    def test_its_own_mistake_is_a_failure_of_this_session_alone(self, store: None) -> None:
        def fail(said: Sequence[SessionMessage]) -> list[DistilledMemory]:
            raise RecursionError("of a text")

        assert distil_session(a_session("I like tea."), distiller=Finding(fail)).row.outcome == "failed"
        assert AuditEvent.objects.get(type="session.distilled").reason_code == "failed"


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
        assert (memory.status, memory.provenance, memory.extractor) == ("proposed", "explicit", "rules/2")
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
        distilled = distil_session(a_session(f"I prefer {key}. I prefer tea."))
        assert [memory.statement for memory in Memory.objects.all()] == ["Prefers tea."]
        assert distilled.left_out == 1
        assert not Evidence.objects.filter(quote__contains=key[8:20]).exists()

    @pytest.mark.parametrize("columns", [{"is_sensitive": True}, {"is_encrypted": True}, {"is_known": False}])
    def test_what_may_not_be_read_is_not(
        self, store: None, columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record = a_session("I prefer tea.", **columns)
        monkeypatch.setattr(session_messages, "sealed_backend_for", None)
        assert distil_session(record).row.outcome == "refused"
        assert not Memory.objects.exists()

    def test_in_a_store_with_a_key_what_is_plain_is_read_and_what_is_sealed_stays_closed(
        self, store: None, keys: Any
    ) -> None:
        declare_encryption(SessionStore.objects.get(), key="old")
        add_items("chat-1", "I prefer tea.")
        add_sealed("chat-1", "I prefer gin.", key=OLD_KEY)
        record = a_session(is_encrypted=False)
        assert distil_session(record).row.outcome == "done"
        assert [memory.statement for memory in Memory.objects.all()] == ["Prefers tea."]
        keys.DISTIL_LOCKED = True
        assert distil_session(record, from_start=True).row.outcome == "done"
        assert {memory.statement for memory in Memory.objects.all()} == {"Prefers tea.", "Prefers gin."}

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
        monkeypatch.setattr(session_messages, "sealed_backend_for", None)
        assert distil_session(record).row.outcome == "refused"

    def test_a_no_in_the_middle_of_a_reading_holds(self, store: None) -> None:
        subject = make_subject()
        record = a_session("I prefer tea.", subject=subject)

        class SaysNo:
            name = "says no"

            def read(self, said: Any, *, before: Before) -> Any:
                LearningStop.objects.create(subject=subject)
                return RulesDistiller().read(said, before=before)

        distilled = distil_session(record, distiller=SaysNo())
        assert (distilled.row.outcome, Memory.objects.count()) == ("refused", 0)

    def test_signals_of_the_session_count_as_read(self, store: None) -> None:
        record = a_session("I prefer tea.")
        Signal.objects.create(record_id=record.pk, kind="correction", text="No, I meant tea.")
        distil_session(record)
        assert not Signal.objects.filter(distilled_at=None).exists()

    @pytest.mark.parametrize(
        ("signal", "statement", "source"),
        [
            ({"kind": "feedback", "value": -1}, "An answer was rated down: Ask for the number first.", "operator"),
            ({"kind": "feedback"}, "Note on an answer: Ask for the number first.", "operator"),
            ({"kind": "rating", "value": 1}, "An answer was rated down: Ask for the number first.", "tool"),
            ({"kind": "outcome", "value": -1}, "An answer was rated down: Ask for the number first.", "tool"),
        ],
        ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
    )
    def test_a_note_is_proposed_with_its_words_as_evidence(
        self, store: None, signal: dict[str, Any], statement: str, source: str
    ) -> None:
        record = a_session("Hello", assistant("Who are you?"))
        given = Signal.objects.create(
            record_id=record.pk, session_id="chat-1", item_id="2", text="Ask for the number first.", **signal
        )
        distil_session(record)
        memory, evidence = Memory.objects.get(), Evidence.objects.get()
        assert (memory.statement, memory.kind, memory.source, memory.subject) == (
            statement,
            "note",
            source,
            record.subject,
        )
        assert (evidence.quote, evidence.signal, evidence.item_id) == ("Ask for the number first.", given, "2")
        assert evidence.said_by_user is False

    @pytest.mark.parametrize(
        "signal",
        [
            {"kind": "feedback", "value": 1, "text": "Well done."},
            {"kind": "rating", "value": 5, "text": "Thanks!"},
            {"kind": "feedback", "value": -1},
            {"kind": "outcome", "value": -1},
            {"kind": "preference", "text": "I'd prefer it."},
        ],
        ids=lambda value: "-".join(map(str, value.values())),
    )
    def test_praise_and_signals_without_words_propose_nothing(self, store: None, signal: dict[str, Any]) -> None:
        record = a_session("Hello")
        Signal.objects.create(record_id=record.pk, **signal)
        distil_session(record)
        assert not Memory.objects.exists()

    def test_a_long_note_is_cut_between_words_and_whole_in_the_evidence(self, store: None) -> None:
        record = a_session("Hello")
        Signal.objects.create(record_id=record.pk, kind="feedback", value=-1, text="number " * 200)
        distil_session(record)
        statement = Memory.objects.get().statement
        assert statement.endswith("number …")
        assert len(statement) < 450
        assert Evidence.objects.get().quote == "number " * 200


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

    def test_a_later_summary_takes_the_place_of_one_that_waits_and_would_change_the_one_in_use(
        self, store: None
    ) -> None:
        record = a_session("Hello")
        distil_session(record, distiller=scripted(answers(summary="Said hello.")))
        read_on(record, "And more", answers(summary="Said hello and more."))
        assert statuses() == {"Said hello.": "superseded", "Said hello and more.": "proposed"}
        used = approved("Said hello once.", subject=record.subject, kind="summary")
        Evidence.objects.update(memory=used)
        read_on(record, "Goodbye", answers(summary="Said goodbye."))
        assert Memory.objects.get(statement="Said goodbye.").replaces == used

    def test_a_summary_that_somebody_is_about_to_decide_about_stays(self, store: None) -> None:
        record = a_session("Hello")
        distil_session(record, distiller=scripted(answers(summary="Said hello.")))
        Memory.objects.update(claimed_until=now() + timedelta(minutes=5))
        read_on(record, "And more", answers(summary="Said hello and more."))
        assert set(statuses().values()) == {"proposed"}

    def test_what_lasts_of_a_subject_is_summed_up_over_its_sessions(self, store: None) -> None:
        subject = make_subject()
        first, second = (a_session("I fly a lot.", subject=subject, key=key) for key in ("one", "two"))
        distil_session(first, distiller=scripted(answers(summary="Told of flights.", about_user="Flies a lot.")))
        model = ScriptedModel([[assistant_message(answers(about_user="Flies a lot, and takes trains."))]])
        distil_session(second, distiller=AgentDistiller(model))
        [message] = cast("list[dict[str, str]]", model.calls[0].input)
        asked = json.loads(message["content"])
        assert (asked["subject_summary"], asked["session_summary"]) == ("Flies a lot.", "")
        assert statuses() == {
            "Told of flights.": "proposed",
            "Flies a lot.": "superseded",
            "Flies a lot, and takes trains.": "proposed",
        }
        whole = Memory.objects.get(statement="Flies a lot, and takes trains.")
        assert (whole.kind, whole.key, whole.source, whole.subject) == ("summary", "subject_summary", "tool", subject)
        assert whole.evidence.get().record_id == second.pk

    def test_each_find_that_cannot_be_believed_has_its_reason(self, store: None) -> None:
        record = a_session("I take the aisle.", assistant("Noted."))
        add_items(record.session_id, "And tea, please.")
        distil_session(record, distiller=scripted(answers()))
        finds = [
            {"statement": "Is rich.", "quote": "I am rich", "item": 3},
            {"statement": "Is rich.", "quote": "", "item": 3},
            {"statement": "Is nobody.", "quote": "tea", "item": 0},
            {"statement": "Is nobody.", "quote": "tea", "item": 99},
            {"statement": "Takes the aisle.", "quote": "I take the aisle", "item": 1},
            {"statement": "", "quote": "tea", "item": 4},
            {"statement": "n" * 3000, "quote": "tea", "item": 4},
            {"statement": "Is sure.", "quote": "tea", "item": 4, "confidence": 7},
            {"statement": "Has 4111 1111 1111 1111.", "quote": "tea", "item": 4},
            {"statement": "Wants more tea.", "quote": "tea", "item": 4},
        ]
        distilled = read_on(record, "And more tea.", answers(*finds, summary="s" * 2000))
        assert distilled.row.left_out == {"unproven": 4, "read_before": 1, "unfit": 4}
        assert distilled.left_out == 9
        assert set(statuses()) == {"Has 4111 1111 1111 1111.", "Wants more tea."}
        told = StringIO()
        with patched_distiller(answers({"statement": "Is rich.", "quote": "I am rich"})):
            call_command("distil", str(record.pk), stdout=told)
        assert "1: its quote is not in the referenced message" in told.getvalue()

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


class Listening:
    """Reads by rules, and remembers what it was given."""

    name = "listening"

    def __init__(self) -> None:
        self.heard: list[list[SessionMessage]] = []

    def read(self, said: Sequence[SessionMessage], *, before: Before) -> DistillationResult:
        self.heard.append(list(said))
        return RulesDistiller().read(said, before=before)


class TestReadingOn:
    """A session is not read anew each time that somebody says something in it."""

    def test_only_what_is_new_is_read_behind_a_little_of_what_was(self, store: None) -> None:
        record = a_session(*(f"I like tea from shelf {number}." for number in range(120)))
        listening = Listening()
        assert distil_session(record, distiller=listening).row.proposal_count == 120
        add_items("chat-1", "I prefer cake.", "I prefer pie.")
        with refused(SealedBackend, "every_item"):
            distilled = distil_session(record, distiller=listening)
        first, second = listening.heard
        assert not any(one.is_context for one in first)
        new = [one.text for one in second if not one.is_context]
        assert (new, distilled.row.proposal_count, distilled.known) == (["I prefer cake.", "I prefer pie."], 2, 0)
        context = [one.text for one in second if one.is_context]
        assert 0 < len(context) <= session_messages.CONTEXT_ITEMS + 1
        assert context[-1] == "I like tea from shelf 119."

    def test_many_new_items_are_read_page_by_page(self, store: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session_messages, "ITEMS_A_PAGE", 3)
        record = a_session("Hello")
        distil_session(record)
        add_items("chat-1", *(f"I like tea from shelf {number}." for number in range(50)))
        assert distil_session(record).row.proposal_count == 50
        assert distil_session(record).row.proposal_count == 0

    @pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET message_data = '{{}}'"])
    def test_where_the_last_item_is_another_one_all_is_read(self, store: None, change: str) -> None:
        record = a_session("I prefer tea.", "Hello")
        listening = Listening()
        distil_session(record, distiller=listening)
        run_sql(change.format("agent_messages") + " WHERE id = 2")
        add_items("chat-1", "I prefer pie.")
        distil_session(record, distiller=listening)
        assert not any(one.is_context for one in listening.heard[1])
        assert {"I prefer tea.", "I prefer pie."} <= {one.text for one in listening.heard[1]}

    def test_a_reading_that_failed_is_made_up_for(self, store: None) -> None:
        record = a_session("I prefer tea.")
        distil_session(record, distiller=scripted(""))
        add_items("chat-1", "I prefer pie.")
        assert distil_session(record).row.proposal_count == 2

    def test_remarks_of_operators_are_read_once(self, store: None) -> None:
        record = a_session("Hello")
        listening = Listening()
        for note in ("Greet by name.", "Be brief."):
            Signal.objects.create(record_id=record.pk, item_id="1", kind="feedback", text=note)
            distil_session(record, distiller=listening)
        assert [one.text for one in listening.heard[1] if not one.is_context] == ["Be brief."]

    def test_a_model_is_not_asked_about_nothing_new(self, store: None) -> None:
        record = a_session("Hello")
        distil_session(record, distiller=scripted(answers()))
        assert distil_session(record, distiller=scripted()).row.model_calls == 0


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

    def test_a_note_on_a_session_read_before_is_a_reason_to_read_it(self, store: None) -> None:
        record = a_session("Hello", last_activity_at=now() - timedelta(days=3))
        distil_session(record)
        assert distil_quiet_sessions() == 0
        note = Signal.objects.create(record_id=record.pk, item_id="1", kind="feedback", value=-1, text="Greet back.")
        assert distil_quiet_sessions() == 0  # more may follow
        Signal.objects.update(created_at=now() - timedelta(hours=1))
        Distillation.objects.update(began_at=now() - timedelta(hours=2))
        assert (distil_quiet_sessions(), distil_quiet_sessions()) == (1, 0)
        assert statuses() == {"An answer was rated down: Greet back.": "proposed"}
        assert Evidence.objects.get().signal == note

    def test_a_note_whose_reading_failed_is_not_tried_forever(self, store: None) -> None:
        record = a_session("Hello", last_activity_at=now() - timedelta(days=3))
        distil_session(record)
        Signal.objects.create(record_id=record.pk, kind="feedback", value=-1, text="Greet back.")
        Signal.objects.update(created_at=now() - timedelta(hours=1))
        Distillation.objects.update(began_at=now() - timedelta(hours=2))
        with patched_distiller("nonsense"):
            assert (distil_quiet_sessions(), distil_quiet_sessions()) == (1, 0)

    @pytest.mark.parametrize(
        "columns",
        [{"is_known": False}, {"is_sensitive": True}, {"is_encrypted": True}, {"erased_at": Now()}],
    )
    def test_notes_on_sessions_that_may_not_be_read_wait(self, store: None, columns: dict[str, Any]) -> None:
        record = a_session("Hello", **{"last_activity_at": now() - timedelta(days=3)} | columns)
        if "erased_at" not in columns:
            Signal.objects.create(record_id=record.pk, kind="feedback", value=-1, text="Greet back.")
            Signal.objects.update(created_at=now() - timedelta(hours=1))
        assert distil_quiet_sessions() == 0

    @pytest.mark.parametrize(
        "columns",
        [
            {"is_known": False},
            {"is_sensitive": True},
            {"is_encrypted": True},
            {"last_activity_at": Now() - timedelta(days=30)},
            {"erased_at": Now()},
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
