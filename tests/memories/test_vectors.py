"""Indexes of vectors: one contract for each, and how another than the database's is filled, emptied, never trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils.timezone import now
from pytest_django import Settings

from memadmin import environment
from memadmin.client import candidates, embedding, vector_lookup
from memadmin.client.memories import MemoryClient
from memadmin.client.recalling import choose
from memadmin.client.vector_lookup import IndexAway, Near
from memadmin.deploy.roles import Roles
from memories_app import jobs
from memories_app.audit_events import RetireReason
from memories_app.learning.screening import embed_memories
from memories_app.models import Memory, VectorNote
from memories_app.recall import indexing, vectors
from memories_app.recall.preview import preview_recall
from memories_app.recall.vectors import Vector, VectorIndex
from memories_app.recall.vectors.pgvector import PgVectorIndex
from memories_app.recall.vectors.qdrant import QdrantIndex
from memories_app.review.decisions import approve_memory
from memories_app.services.retiring import retire_memory
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import subject_for_key
from tests.builders import make_subject
from tests.client.agents import console_at, in_agent
from tests.client.conftest import dsn, main_store  # noqa: F401
from tests.deploy.conftest import in_force  # noqa: F401
from tests.deploy.connecting import connected_as
from tests.memories.builders import approved, proposed, reviewer_number

pytestmark = pytest.mark.django_db

LOCAL = "qdrant::memory:"
TEA, TRAIN = "Drinks green tea.", "Travels by train."


def vector_of(text: str) -> list[float]:
    embedder = embedding.load("wordllama")
    assert embedder is not None
    return embedder.embed([text])[0]


NAME = "wordllama-256"


@pytest.fixture
def index(settings: Settings) -> Iterator[VectorIndex]:
    """Qdrant within this process is the index that is configured, and empty."""
    settings.VECTOR_INDEX = LOCAL
    vectors._outside.cache_clear()
    found = vectors.outside()
    assert found is not None
    yield found
    vectors._outside.cache_clear()


def likest(index: vector_lookup.Nearest, text: str, *subjects: Subject, agent: str = "", limit: int = 10) -> list[UUID]:
    keys = [subject.pk for subject in subjects]
    near = index.near(vector_of(text), embedder=NAME, subjects=keys, agent=agent, limit=limit)
    return [each.id for each in near]


def carry() -> None:
    while indexing.carry_vectors():
        pass


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=[PgVectorIndex, lambda: QdrantIndex(LOCAL)], ids=["pgvector", "qdrant"])
def any_index(request: pytest.FixtureRequest, new_vector_index: None) -> VectorIndex:
    made: VectorIndex = request.param()
    return made


def kept(index: VectorIndex, memory: Memory, text: str = "") -> Vector:
    vector = Vector(
        memory.pk, memory.subject_id, memory.agents, NAME, memory.content_hash, vector_of(text or memory.statement)
    )
    index.put([vector])
    return vector


def test_an_index_names_the_nearest_of_a_subject_and_of_what_all_share(any_index: VectorIndex) -> None:
    ada, bob = make_subject(), make_subject()
    tea, train = approved(TEA, subject=ada), approved(TRAIN, subject=ada)
    shared = approved("Offer tea first.")
    theirs = approved("Drinks black tea.", subject=bob)
    for memory in (tea, train, shared, theirs):
        kept(any_index, memory)
    assert set(likest(any_index, "tea", ada)) == {tea.pk, train.pk, shared.pk}
    assert likest(any_index, "tea", ada, limit=1) == [tea.pk, shared.pk]
    assert set(likest(any_index, "tea", ada, bob)) == {tea.pk, train.pk, theirs.pk, shared.pk}
    assert likest(any_index, "tea") == [shared.pk]
    (near, _) = any_index.near(vector_of(TEA), embedder=NAME, subjects=[ada.pk], agent="", limit=1)
    assert (near.id, near.content_hash) == (tea.pk, tea.content_hash)
    assert near.likeness == pytest.approx(1, abs=1e-4)
    assert any_index.near(vector_of(TEA), embedder="another", subjects=[ada.pk], agent="", limit=1) == []


def test_an_index_names_only_what_is_for_this_agent(any_index: VectorIndex) -> None:
    ada = make_subject()
    bills = approved("Pays bills late.", subject=ada, agents=["billing"])
    kept(any_index, bills)
    assert likest(any_index, "bills", ada) == likest(any_index, "bills", ada, agent="sales") == []
    assert likest(any_index, "bills", ada, agent="billing") == [bills.pk]


def test_an_index_replaces_forgets_and_tells_what_it_has(any_index: VectorIndex) -> None:
    ada = make_subject()
    memories = [approved(f"Wish number {number}.", subject=ada) for number in range(5)]
    for memory in memories:
        kept(any_index, memory)
    kept(any_index, memories[0], "something else")  # once more: no second one
    pages = list(any_index.pages(2))
    assert {key: value for page in pages for key, value in page.items()} == {
        memory.pk: memory.content_hash for memory in memories
    }
    assert all(len(page) <= 2 for page in pages)
    gone = [memories[0].pk, memories[1].pk]
    any_index.drop([*gone, uuid4()])
    any_index.drop(gone)
    assert set(any_index.held([memory.pk for memory in memories])) == {memory.pk for memory in memories[2:]}
    assert not set(gone) & set(likest(any_index, "wish", ada))


# --- filled and emptied -----------------------------------------------------------------------------------------------


def test_what_is_approved_lies_in_the_other_index_and_nothing_else(index: VectorIndex) -> None:
    ada = make_subject()
    waiting, tea = proposed("Owns a shop.", subject=ada), approved(TEA, subject=ada)
    carry()
    assert index.held([waiting.pk, tea.pk]) == {}  # no vector was made yet
    embed_memories()
    assert VectorNote.objects.get().memory_id == tea.pk
    jobs.carry_vectors(timestamp=2**40)
    assert index.held([waiting.pk, tea.pk]) == {tea.pk: tea.content_hash}
    assert not VectorNote.objects.exists()
    assert likest(index, "tea", ada) == [tea.pk]


def test_no_text_lies_in_the_other_index(index: VectorIndex) -> None:
    approved("Drinks green tea.", subject=make_subject("ada@example.com"), key="drink", is_embedded=True)
    carry()
    assert isinstance(index, QdrantIndex)
    (point,), _ = index.client.scroll(index.collection, with_payload=True)
    assert set(point.payload or {}) == {"subject", "agents", "embedder", "content_hash"}
    assert "tea" not in str(point.payload)
    assert "ada@" not in str(point.payload)


def test_what_is_retired_or_erased_leaves_it(index: VectorIndex) -> None:
    ada = make_subject()
    retired, erased, stays = (approved(text, subject=ada, is_embedded=True) for text in (TEA, TRAIN, "Is patient."))
    carry()
    retire_memory(retired, by=reviewer_number(0), reason=RetireReason.WRONG)
    with connection.cursor() as cursor:
        # Whoever deletes the row, and however.
        cursor.execute("DELETE FROM memories_app_review WHERE memory_id = %s", [erased.pk])
        cursor.execute("DELETE FROM memories_app_memoryversion WHERE memory_id = %s", [erased.pk])
        cursor.execute("DELETE FROM memories_app_memory WHERE id = %s", [erased.pk])
    carry()
    assert set(index.held([retired.pk, erased.pk, stays.pk])) == {stays.pk}
    assert indexing.compare_vectors() == indexing.Compared(held=1)


def test_a_changed_text_is_carried_over_anew(index: VectorIndex) -> None:
    ada = make_subject()
    memory = approved(TEA, subject=ada, is_embedded=True)
    carry()
    before = memory.content_hash
    change = proposed(TRAIN, subject=ada, replaces=memory, base_version=1)
    approve_memory(change, by=reviewer_number(0), content_hash=change.content_hash, base_version=1)
    memory.refresh_from_db()
    assert memory.content_hash != before
    embed_memories()
    carry()
    assert index.held([memory.pk]) == {memory.pk: memory.content_hash}
    assert indexing.compare_vectors().is_alike


def test_what_changes_while_it_is_carried_over_stays_noted(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    tea = approved(TEA, subject=make_subject(), is_embedded=True)
    put = index.put

    def put_and_retire(made: Sequence[Vector]) -> None:
        put(made)
        if made:
            retire_memory(tea, by=reviewer_number(0), reason=RetireReason.WRONG)

    monkeypatch.setattr(index, "put", put_and_retire)
    indexing.carry_vectors()
    assert index.held([tea.pk])
    assert VectorNote.objects.exists()
    indexing.carry_vectors()
    assert index.held([tea.pk]) == {}


def test_an_index_that_is_away_loses_nothing(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    tea = approved(TEA, subject=make_subject(), is_embedded=True)

    def away(*_: Any) -> None:
        raise IndexAway("ConnectError")

    with monkeypatch.context() as broken:
        broken.setattr(index, "put", away)
        jobs.carry_vectors(timestamp=2**40)
        assert VectorNote.objects.exists()
    carry()
    assert index.held([tea.pk])


def test_without_another_index_notes_go_and_there_is_nothing_to_compare() -> None:
    approved(TEA, subject=make_subject(), is_embedded=True)
    assert VectorNote.objects.count() == 1
    carry()
    assert not VectorNote.objects.exists()
    with pytest.raises(CommandError, match="MEMADMIN_VECTOR_INDEX"):
        call_command("check_vectors")


def test_leftovers_are_found_and_mended(index: VectorIndex) -> None:
    ada = make_subject()
    lacking, outdated, stays = (approved(text, subject=ada, is_embedded=True) for text in (TEA, TRAIN, "Is patient."))
    carry()
    stranger = uuid4()
    index.drop([lacking.pk])
    index.put(
        [
            Vector(stranger, ada.pk, [], NAME, "a" * 64, vector_of(TEA)),
            Vector(outdated.pk, ada.pk, [], NAME, "b" * 64, vector_of(TEA)),
        ]
    )
    found = {"held": 3, "lacking": 1, "outdated": 1, "left_over": 1}
    told = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_vectors", as_json=True, stdout=told)
    assert json.loads(told.getvalue()) == {"mended": False, **found}
    call_command("check_vectors", mend=True, stdout=told)
    assert indexing.compare_vectors() == indexing.Compared(held=3)
    assert index.held([stranger]) == {}
    assert set(likest(index, "tea", ada)) == {lacking.pk, outdated.pk, stays.pk}


# --- asked, and never trusted -----------------------------------------------------------------------------------------


class Lying:
    """An index that names whatever it is told to, as one that is stale, or that somebody tampered with."""

    def __init__(self, *named: Memory | UUID, likeness: float = 1.0) -> None:
        self.named, self.likeness = named, likeness

    def near(self, *_: Any, **__: Any) -> list[Near]:
        return [
            Near(each.pk, self.likeness, each.content_hash)
            if isinstance(each, Memory)
            else Near(each, self.likeness, "")
            for each in self.named
        ]


@pytest.fixture
def hidden(agents_role: Roles) -> tuple[Subject, list[Memory]]:
    """Whatever this run must not be told."""
    ada, bob = make_subject(), make_subject()
    retired = approved("Ada has a dog.", subject=ada, is_embedded=True)
    retire_memory(retired, by=reviewer_number(0), reason=RetireReason.WRONG)
    return ada, [
        retired,
        proposed("Ada owns the shop.", subject=ada),
        approved("Bob drinks coffee.", subject=bob, is_embedded=True),
        approved("Ada was ill.", subject=ada, valid_until=now() - timedelta(days=1), is_embedded=True),
        approved("Ada owes money.", subject=ada, agents=["billing"], is_embedded=True),
    ]


def named_by(index: vector_lookup.Nearest, subject: Subject) -> list[str]:
    given = candidates.parameters("dog shop coffee ill money", vector_of("dog"), embedder=NAME)
    near = index.near(vector_of("dog"), embedder=NAME, subjects=[subject.pk], agent="", limit=10)
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk))
        cursor.execute(candidates.FIND_NAMED, given | candidates.naming(near))
        return [chosen.memory.statement for chosen in choose(candidates.read(cursor.fetchall())).chosen]


@pytest.mark.parametrize("likeness", [1.0, 5.0, float("nan"), float("inf"), -1.0])
def test_a_lying_index_shows_nothing_that_the_gate_hides(
    hidden: tuple[Subject, list[Memory]], agents_role: Roles, likeness: float
) -> None:
    ada, memories = hidden
    tea = approved(TEA, subject=ada, is_embedded=True)
    lying = Lying(*memories, tea, uuid4(), likeness=likeness)
    assert named_by(lying, ada) == [TEA]
    with connected_as(agents_role["agents"]):
        assert named_by(lying, ada) == [TEA]
        # The row policies alone: a statement that forgets every condition finds no more.
        assert without_conditions([*memories, tea], ada) == {TEA}
    assert len(without_conditions([*memories, tea], ada)) == 6, "whom no policy binds, it would show them all"


def without_conditions(memories: Sequence[Memory], subject: Subject) -> set[str]:
    """What a statement that trusts the index would read."""
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk))
        named = [memory.pk for memory in memories]
        cursor.execute("SELECT statement FROM memories_app_memory WHERE id = ANY (%s)", [named])
        return {statement for (statement,) in cursor.fetchall()}


def test_what_an_index_says_of_another_text_does_not_count() -> None:
    ada = make_subject()
    tea, train = approved(TEA, subject=ada, is_embedded=True), approved(TRAIN, subject=ada, is_embedded=True)

    class Stale(Lying):
        def near(self, *_: Any, **__: Any) -> list[Near]:
            return [Near(tea.pk, 1.0, "0" * 64), Near(train.pk, 0.5, train.content_hash)]

    assert named_by(Stale(), ada) == [TRAIN, TEA]
    assert named_by(Lying(tea), ada) == [TEA, TRAIN]


def test_both_indexes_lead_to_the_same_choice(index: VectorIndex) -> None:
    ada = make_subject()
    for text in (TEA, TRAIN, "Wants refunds to the original card.", "Is patient.", "Has two cats."):
        approved(text, subject=ada, is_embedded=True)
    approved("Offer the original payment first when a flight is refunded.", is_embedded=True)
    approved("The kiosk in hall B prints tags.", is_embedded=True)
    carry()
    for query in ("I want my money back", "What shall I drink?", "kiosk", "xyzzy"):
        inside = _told(query, ada, None)
        assert _told(query, ada, index) == inside
        shown = preview_recall(query, subject=ada, budget=1000)
        assert [(each.memory.statement, each.place) for each in shown.choice.chosen] == inside


OFFLINE = embedding.WordLlamaEmbedder()


def _told(query: str, subject: Subject, index: VectorIndex | None) -> list[tuple[str, int]]:
    vector = vector_of(query)
    given = candidates.parameters(query, vector, embedder=NAME)
    statement, named = candidates.FIND, {}
    if index:
        statement = candidates.FIND_NAMED
        named = candidates.naming(
            index.near(vector, embedder=NAME, subjects=[subject.pk], agent="", limit=candidates.LIMIT)
        )
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk))
        cursor.execute(statement, given | named)
        found = candidates.with_likeness(candidates.read(cursor.fetchall()), query, OFFLINE)
    chosen = choose(found, budget=1000).chosen
    return [(each.memory.statement, each.place) for each in chosen]


# --- configured -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["qdrant", "qdrant:", "qdrant:http://vectors:6333", "qdrant:https://", "redis", "qdrant:https://a/b/c"]
)
def test_a_wrong_index_stops_the_start_with_a_sentence(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MEMADMIN_VECTOR_INDEX", value)
    with pytest.raises(ImproperlyConfigured, match="MEMADMIN_VECTOR_INDEX must be pgvector or qdrant:https"):
        environment.vector_index("MEMADMIN_VECTOR_INDEX")


@pytest.mark.parametrize(
    "value",
    ["pgvector", "qdrant:https://vectors:6333", "qdrant:http://localhost:6333/other", "qdrant:https://q.example"],
)
def test_an_index_is_named_as_its_client_takes_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MEMADMIN_VECTOR_INDEX", value)
    found = vector_lookup.load(environment.vector_index("MEMADMIN_VECTOR_INDEX"))
    assert (found is None) == (value == "pgvector")
    if isinstance(found, vector_lookup.QdrantNearest):
        assert found.collection == ("other" if value.endswith("other") else "memadmin_memories")


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_agent_asks_the_index_and_does_without_it_when_it_is_away(
    dsn: str,  # noqa: F811
    index: VectorIndex,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ada = subject_for_key(SubjectKind.USER, "ada")
    tea = approved(TEA, subject=ada, is_embedded=True)
    approved(TRAIN, subject=ada, is_embedded=True)
    carry()
    asked: list[Mapping[str, Any]] = []

    class Listening:
        is_away = False

        def near(self, vector: Sequence[float], **scope: Any) -> list[Near]:
            asked.append(scope)
            if self.is_away:
                raise IndexAway("ConnectError")
            return index.near(vector, **scope)

    listening = Listening()
    client = MemoryClient(console_at(dsn, seconds=60, rest_seconds=3600), index=listening)

    async def recall() -> list[str]:
        recalled = await client.recall("What tea is to be served?", "ada")
        return [chosen.memory.statement for chosen in recalled.choice.chosen]

    async def run() -> list[list[str]]:
        both = [await recall()]
        listening.is_away = True
        both += [await recall(), await recall()]
        return both

    first, without, resting = in_agent(run)
    assert first == without == resting == [TEA, TRAIN]
    assert asked[0]["subjects"] == [ada.pk]
    assert len(asked) == 2, "after a failure it rests"
    assert caplog.text.count("the database compares the vectors instead") == 1
    assert tea.statement not in caplog.text
