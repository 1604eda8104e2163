"""What a reviewer sees of what agents would then be told: places with and without a proposal, for what was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.client import candidates, embedding, recalling
from memories_app.learning.proposing import ProposedQuote
from memories_app.learning.screening import embed_memories
from memories_app.models import Memory
from memories_app.pages.view_models import ShownQuote
from memories_app.recall.preview import preview_recall
from memories_app.review import recall_change
from memories_app.review.decisions import approve_memory
from memories_app.review.recall_change import RecallChange
from sessions_app.models import Subject
from tests.builders import make_session, make_subject
from tests.memories.queue import a_reviewer, approved, waiting
from tests.people import signed_in

pytestmark = pytest.mark.django_db

SAID = "How do I get my money back for the pot?"


@pytest.fixture
def ada(db: None) -> User:
    return a_reviewer("ada")


@pytest.fixture
def subject(db: None) -> Subject:
    return make_subject()


def seen(memory: Memory, reader: User, question: str = "") -> RecallChange:
    embed_memories()
    return recall_change.recall_change(Memory.objects.get(pk=memory.pk), reader=reader, question=question)


def places(change: RecallChange) -> dict[str, tuple[int | None, int | None]]:
    return {place.statement: (place.now, place.after) for place in change.places}


def test_it_takes_its_place_among_what_agents_know(ada: User, subject: Subject) -> None:
    approved("Flies with a cat.", subject=subject)
    approved("Drinks tea in the morning.", subject=subject)
    memory = waiting("Wants money back to the card.", subject=subject, evidence=[ProposedQuote(SAID, speaker="user")])
    change = seen(memory, ada)
    assert change.question == SAID
    assert places(change)["Wants money back to the card."] == (None, 1)
    assert [place.after for place in change.places] == [1, 2, 3]
    assert {place.now for place in change.places} == {None, 1, 2}
    assert change.summary == "Agents would read it first, of 3."
    assert Memory.objects.get(pk=memory.pk).status == "proposed"


def test_it_says_what_approving_then_does(ada: User, subject: Subject) -> None:
    """What was foretold is what the agents' own statement answers afterwards."""
    for number in range(8):
        approved(f"Asked about seat {number} on a long trip.", subject=subject)
    memory = waiting("Prefers an aisle seat.", subject=subject)
    change = seen(memory, ada, "Which seat on a long trip?")
    approve_memory(memory, by=ada, content_hash=memory.content_hash)
    told = preview_recall("Which seat on a long trip?", subject=subject, budget=recalling.DEFAULT_BUDGET)
    after = {place.memory_id: place.after for place in change.places}
    assert {each.memory.id: each.place for each in told.choice.chosen if each.memory.id in after} == after
    assert len(told.choice.chosen) == len(change.places) + change.more


def test_what_has_the_same_topic_stays_and_what_it_changes_is_replaced(ada: User, subject: Subject) -> None:
    approved("Is allergic to penicillin.", subject=subject, key="allergy")
    known = approved("Drinks tea.", subject=subject)
    topic = seen(waiting("Is allergic to peanuts.", subject=subject, key="allergy"), ada)
    assert all(place.after for place in topic.places)
    assert len(topic.places) == 3
    changes = seen(waiting("Drinks green tea.", replaces=known), ada, "Tea?")
    [out] = [place for place in changes.places if place.statement == "Drinks tea."]
    assert (out.after, out.why) == (None, "Replaced by this proposal.")
    assert places(changes)["Drinks green tea."][1] is not None


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"valid_from": datetime(2999, 1, 1, tzinfo=UTC)}, "on, agents would read only this memory."),
        ({"shared": True}, "Agents would not recall this proposal for this query."),
        ({"agents": ["refunds"]}, "Agents would read only this memory."),
    ],
)
def test_what_agents_would_not_be_told(ada: User, values: dict[str, Any], told: str) -> None:
    change = seen(waiting("Kiosk B prints tags.", **values), ada, "zzz qqq")
    assert told in change.summary
    assert change.agent == "".join(values.get("agents", []))


def test_what_is_over_is_said_to_be(ada: User) -> None:
    memory = waiting("Is in Porto.")
    Memory.objects.filter(pk=memory.pk).update(valid_until=now() - timedelta(days=1))
    assert seen(memory, ada).summary.startswith("Expired on")


def test_a_long_one_does_not_fit(ada: User) -> None:
    change = seen(waiting("Prefers tea. " * 140), ada)
    [this] = change.places
    assert this.after is None
    assert "tokens" in this.why


def test_words_of_a_locked_session_and_values_are_not_asked_with(ada: User) -> None:
    locked = make_session("customer_1:ticket_1")
    type(locked).objects.filter(pk=locked.pk).update(is_sensitive=True)
    memory = waiting(
        "Wants refunds.", evidence=[ProposedQuote("My secret words.", record_id=locked.pk, speaker="user")]
    )
    assert seen(memory, ada).question == "Wants refunds."
    memory = waiting("Pays by card.", evidence=[ProposedQuote("It is 4111 1111 1111 1111.", speaker="user")])
    assert "4111" not in seen(memory, ada).question


def test_a_mask_that_is_left_out_would_be_seen(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it is `quotes_for` which keeps words back: with the bare quotes they are asked with."""
    memory = waiting("Pays by card.", evidence=[ProposedQuote("It is 4111 1111 1111 1111.", speaker="user")])

    def bare(user: User, evidence: Any) -> Any:
        return [ShownQuote(each, each.quote, None) for each in evidence]

    monkeypatch.setattr(recall_change, "quotes_for", bare)
    assert "4111" in seen(memory, ada).question


def test_what_the_person_said_comes_before_what_others_did(ada: User) -> None:
    memory = waiting(
        evidence=[ProposedQuote("Shall I refund you?", speaker="assistant"), ProposedQuote(SAID, speaker="user")]
    )
    assert seen(memory, ada).question == SAID


def test_an_embedder_that_is_away_leaves_words(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        name = "openai:away-256"

        def embed(self, texts: Any) -> Any:
            raise ConnectionError

    memory = waiting("Wants money back.", evidence=[ProposedQuote(SAID, speaker="user")])
    monkeypatch.setattr(embedding, "load", lambda name: Away())
    change = recall_change.recall_change(memory, reader=ada)
    assert change.embedder == ""
    assert change.summary == "Agents would read only this memory."


def test_the_statement_for_one_says_of_a_memory_what_the_statement_for_all_says(subject: Subject) -> None:
    memory = approved("Drinks green tea.", subject=subject)
    embed_memories()
    embedder = embedding.load("wordllama")
    assert embedder is not None
    asked = candidates.parameters("Tea?", embedder.embed(["Tea?"])[0], embedder=embedder.name)
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk))
        cursor.execute(candidates.FIND, asked)
        found = candidates.read(cursor.fetchall())
        cursor.execute(candidates.THIS, asked | {"memory": memory.pk})
        assert candidates.read(cursor.fetchall()) == found


class TestPage:
    def test_the_page_asks_for_it_after_itself(self, ada: User) -> None:
        memory = waiting("Wants money back.", evidence=[ProposedQuote(SAID, speaker="user")])
        desk, address = signed_in(ada), reverse("reviews:recall", args=[memory.pk])
        page = desk.get(reverse("reviews:review", args=[memory.pk])).text
        assert f'hx-get="{address}?"' in page
        assert "gents would read only this memory" not in page
        part = desk.get(address, headers={"hx-request": "true"}).text
        assert "Agents would read only this memory." in part
        assert SAID in part
        assert "<html" not in part
        assert "hx-trigger" not in part
        whole = desk.get(address).text
        assert "<html" in whole
        assert "Agents would read only this memory." in whole
        event = AuditEvent.objects.filter(type="recall.previewed").latest("number")
        assert (event.subject_ref, event.shown) == (memory.subject_id, [memory.pk])

    def test_something_else_can_be_asked(self, ada: User) -> None:
        memory = waiting("Wants money back.", shared=True)
        desk, address = signed_in(ada), reverse("reviews:recall", args=[memory.pk])
        asked = {"question": "May I bring a cat?"}
        assert "May I bring a cat?" in desk.post(address, asked, headers={"hx-request": "true"}).text
        refused = desk.post(address, {"question": "x" * 1001}, headers={"hx-request": "true"})
        assert (refused.status_code, "at most 1,000 characters" in refused.text) == (422, True)

    def test_what_was_decided_is_not_foretold(self, ada: User) -> None:
        memory = approved("Drinks tea.")
        part = signed_in(ada).get(reverse("reviews:recall", args=[memory.pk]), headers={"hx-request": "true"})
        assert "Agents would read" not in part.text

    def test_it_asks_as_much_for_many_as_for_few(self, ada: User, subject: Subject, client: Client) -> None:
        memory = waiting("Wants money back.", subject=subject, evidence=[ProposedQuote(SAID, speaker="user")])
        desk, address = signed_in(ada), reverse("reviews:recall", args=[memory.pk])
        counts = []
        for _ in range(2):
            for _ in range(4):
                approved(subject=subject)
            with CaptureQueriesContext(
                connection,
            ) as asked:
                desk.get(address, headers={"hx-request": "true"})
            counts.append(len(asked))
        assert counts[0] == counts[1]
