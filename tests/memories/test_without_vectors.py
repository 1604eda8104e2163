"""Memories in a database without pgvector: everything works, by words alone, until a `migrate` finds the extension."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse

from memadmin.client.memories import MemoryClient
from memadmin.deploy.checks import operation
from memories_app import vector_column
from memories_app.dedup.candidates import compared_with
from memories_app.dedup.compare import compare_approved
from memories_app.learning.screening import embed_memories
from memories_app.models import Memory
from memories_app.recall.preview import preview_approval, preview_recall
from memories_app.review.context import neighbours_of
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import subject_for_key
from tests.agents import run_sql, value_of
from tests.builders import make_subject
from tests.client.agents import client_at, in_agent
from tests.client.conftest import dsn, main_store  # noqa: F401
from tests.memories.builders import approved, proposed
from tests.memories.queue import a_reviewer, waiting
from tests.people import signed_in

TEA = "Drinks green tea, never coffee."
AS_WITHOUT = """
DROP INDEX memory_shared_vectors;
ALTER TABLE memories_app_memory ALTER COLUMN embedding TYPE text USING NULL;
DROP EXTENSION vector;
"""


@pytest.fixture
def plain(db: None) -> None:
    """The tables as `migrate` makes them without pgvector, until the end of the test's transaction."""
    run_sql(AS_WITHOUT)


@pytest.fixture
def plain_for_all(transactional_db: None) -> Iterator[None]:
    run_sql(AS_WITHOUT)
    yield
    vector_column.make_when_possible(using="default")


def test_recall_and_its_preview_go_by_words(plain: None) -> None:
    subject = make_subject()
    memory, other = approved(TEA, subject=subject), approved("Flies with a cat.", subject=subject)
    preview = preview_recall("green tea, please", subject=subject, budget=500)
    assert preview.embedder == ""
    assert [chosen.memory.id for chosen in preview.choice.chosen] == [memory.pk, other.pk]
    proposal = proposed("Drinks green tea with milk.", subject=subject)
    change = preview_approval(proposal, "green tea, please")
    assert proposal.pk in [chosen.memory.id for chosen in change.after.chosen]


def test_jobs_compute_no_vectors_and_still_compare(plain: None) -> None:
    subject = make_subject()
    memory, twin = (approved(TEA, subject=subject, key=key) for key in ("drink", "drinks"))
    proposed("Wants tea.", subject=subject)
    assert embed_memories() == 0
    assert {(one.id, two.id) for one, two, _ in compared_with([memory.pk], statuses=["approved"])} == {
        (memory.pk, twin.pk)
    }
    compare_approved()
    assert not Memory.objects.exclude(compared_hash__gt="").filter(status="approved").exists()


def test_review_page_shows_similar_memories_by_words(plain: None) -> None:
    ada: User = a_reviewer("ada")
    subject = make_subject()
    other = approved(TEA, subject=subject)
    memory = waiting("Drinks green tea at night.", subject=subject)
    assert [near.memory.pk for near in neighbours_of(memory, str)] == [other.pk]
    page = signed_in(ada).get(reverse("reviews:review", args=[memory.pk]))
    assert page.status_code == 200


def test_migrate_makes_vectors_of_the_column_when_it_can(plain: None) -> None:
    memory = approved(TEA, subject=make_subject())
    run_sql("SET CONSTRAINTS ALL IMMEDIATE; CREATE ROLE stranger")
    run_sql("SET LOCAL SESSION AUTHORIZATION stranger")
    assert "stranger may not create the extension vector in" in vector_column.missing_vectors()
    assert "CREATE EXTENSION vector; as an administrator" in next(operation.vectors()).hint
    run_sql("RESET SESSION AUTHORIZATION")
    assert (vector_column.missing_vectors(), vector_column.has_vectors()) == ("", False)
    [found] = operation.vectors()
    assert found.hint.endswith("Run `memadmin migrate` as the migrator.")
    vector_column.make_when_possible(using="default")
    assert list(operation.vectors()) == []
    assert vector_column.has_vectors()
    vector_column.make_when_possible(using="default")
    assert embed_memories() == 1
    assert Memory.objects.get(pk=memory.pk).embedding is not None


@pytest.mark.django_db
def test_column_and_index_are_those_of_the_model() -> None:
    """The statements that make them are written by hand."""
    field = Memory._meta.get_field("embedding")
    assert field.db_type(connection) in vector_column.AS_VECTORS[0]
    [index] = [each for each in Memory._meta.indexes if each.name == "memory_shared_vectors"]
    shown = value_of("SELECT pg_get_indexdef('memory_shared_vectors'::regclass)")
    run_sql("DROP INDEX memory_shared_vectors")
    with connection.schema_editor() as editor:
        editor.add_index(Memory, index)
    assert value_of("SELECT pg_get_indexdef('memory_shared_vectors'::regclass)") == shown


@pytest.mark.django_db(transaction=True)
def test_agents_recall_by_words_with_an_embedder_of_their_own(dsn: str, plain_for_all: None) -> None:  # noqa: F811
    ada: Subject = subject_for_key(SubjectKind.USER, "ada")
    approved(TEA, subject=ada)
    approved("Offer green tea first.")
    client: MemoryClient = client_at(dsn)

    async def run() -> list[str]:
        recalled = await client.recall("Is there green tea?", "ada")
        return [chosen.memory.statement for chosen in recalled.choice.chosen]

    assert set(in_agent(run)) == {TEA, "Offer green tea first."}
