"""What agents read of memories without a query: one by its id, all of a subject, and the best few."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import chain
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from django.utils.timezone import now

from memadmin.client import listing
from memadmin.client.listing import ApprovedMemory, MemoryPage
from memadmin.client.memories import MemoryClient, Recalled
from memadmin.client.prompt_context import RecallCache
from memadmin.client.proposal_results import ProposalRefused, RefusalReason
from memadmin.client.subjects import NOBODY
from memories_app.models import Memory, Recall
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import merge_subjects, subject_for_key
from tests.client.agents import client_at, in_agent
from tests.client.conftest import address
from tests.memories.builders import approved, proposed
from tests.people import person

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")

BY_ITSELF = "The shop opens at nine."


@pytest.fixture
def ada(dsn: str) -> Subject:
    return subject_for_key(SubjectKind.USER, "ada")


def asked(dsn: str, work: Callable[[MemoryClient], Awaitable[T]], **options: Any) -> T:
    async def run() -> T:
        return await work(client_at(dsn, **options))

    return in_agent(run)


def memories_out_of_reach(ada: Subject) -> dict[str, Memory]:
    """Memories that an agent does not recall for Ada, by the reason."""
    other = subject_for_key(SubjectKind.USER, "bob")
    retired = approved("Liked coffee.", subject=ada)
    retired.status = Memory.Status.RETIRED
    retired.save(update_fields=["status"])
    return {
        "proposed": proposed("Owns the shop.", subject=ada),
        "of another subject": approved("Bob likes coffee.", subject=other),
        "expired": approved("Is ill.", subject=ada, valid_until=now() - timedelta(days=1)),
        "not valid yet": approved("Moves to Rome.", subject=ada, valid_from=now() + timedelta(days=1)),
        "for another agent": approved("Has a discount.", subject=ada, agents=["Sales"]),
        "retired": retired,
    }


def test_a_memory_is_read_by_its_id_and_recorded(dsn: str, ada: Subject) -> None:
    tea = approved("Drinks tea.", subject=ada, data={"cups": 2}, key="drink")

    async def get(client: MemoryClient) -> ApprovedMemory | ProposalRefused:
        return await client.get(str(tea.pk), "ada", agent="Support")

    found = asked(dsn, get)
    assert isinstance(found, ApprovedMemory)
    assert (found.id, found.version, found.statement, found.data) == (tea.pk, 1, "Drinks tea.", {"cups": 2})
    assert (found.kind, found.key, found.is_shared, found.is_verified) == ("fact", "drink", False, True)
    recall = Recall.objects.get()
    assert (recall.subject, recall.agent, recall.token_count) == (ada, "Support", 3)
    assert list(recall.memories.values_list("memory", "version", "place")) == [(tea.pk, 1, 1)]


@pytest.mark.parametrize("role", ["agents", "owner"])
def test_nothing_is_read_that_could_not_be_recalled(dsn: str, ada: Subject, role: str) -> None:
    """Under the agents' role by the row policies; a program with more rights is bound by the statements alone."""
    shown = [approved("Drinks tea.", subject=ada), approved("For support.", subject=ada, agents=["Support"])]
    shared = approved(BY_ITSELF)
    hidden = memories_out_of_reach(ada)

    async def read(client: MemoryClient) -> tuple[MemoryPage, dict[str, Any], Any]:
        page = await client.list("ada", agent="Support")
        got = {why: await client.get(memory.pk, "ada", agent="Support") for why, memory in hidden.items()}
        return page, got, await client.get(shared.pk, "ada", agent="Support")

    page, got, of_all = asked(dsn if role == "agents" else address(), read)
    assert {each.id for each in page.memories} == {each.pk for each in shown}
    assert got == dict.fromkeys(hidden, ProposalRefused(RefusalReason.NOT_FOUND))
    assert isinstance(of_all, ApprovedMemory)
    assert of_all.is_shared
    assert Recall.objects.count() == 2


def test_row_policies_hold_whatever_the_statement_asks_for(
    dsn: str, ada: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories_out_of_reach(ada)
    everything = f"SELECT {listing.COLUMNS} FROM memories_app_memory WHERE %(limit)s > 0"
    monkeypatch.setattr(listing, "LIST_OWN", everything)

    async def read(client: MemoryClient) -> MemoryPage:
        return await client.list("ada", agent="Support")

    assert asked(dsn, read) == MemoryPage()


def test_a_subject_is_listed_in_pages_the_last_approved_first(dsn: str, ada: Subject) -> None:
    """Those without a time of approval, as an import may leave them, come at the end."""
    for number in range(5):
        memory = approved(f"Statement {number}.", subject=ada)
        if number < 3:
            Memory.objects.filter(pk=memory.pk).update(decided_at=now() - timedelta(days=3 - number))
    approved(BY_ITSELF)

    async def read(client: MemoryClient) -> list[list[str]]:
        pages, cursor = list[list[str]](), ""
        while not pages or cursor:
            page = await client.list("ada", limit=2, cursor=cursor)
            pages.append([each.statement for each in page.memories])
            cursor = page.cursor
        return pages

    pages = asked(dsn, read)
    assert list(map(len, pages)) == [2, 2, 1]
    listed = [*chain.from_iterable(pages)]
    assert listed[:3] == ["Statement 2.", "Statement 1.", "Statement 0."]
    assert sorted(listed[3:]) == ["Statement 3.", "Statement 4."]
    # Those of a page, and not the one more that was read to know that there is another page.
    assert sorted(each.memories.count() for each in Recall.objects.all()) == [1, 2, 2]


def test_kinds_shared_memories_and_merged_subjects(dsn: str, ada: Subject) -> None:
    approved("Likes tea.", subject=ada, kind=Memory.Kind.PREFERENCE)
    approved("Has a dog.", subject=subject_for_key(SubjectKind.USER, "ada-2"))
    merge_subjects(subject_for_key(SubjectKind.USER, "ada-2"), into=ada, by=person("administrator"))
    approved(BY_ITSELF)

    async def read(client: MemoryClient) -> list[list[str]]:
        pages = [
            await client.list("ada", kinds=["preference"]),
            await client.list("ada"),
            await client.list(is_shared=True),
            await client.list("nobody-knows"),
        ]
        assert (await client.list()).refused == ProposalRefused(RefusalReason.NO_SUBJECT)
        assert (await client.list(NOBODY)).refused == ProposalRefused(RefusalReason.NO_SUBJECT)
        return [sorted(each.statement for each in page.memories) for page in pages]

    assert asked(dsn, read) == [["Likes tea."], ["Has a dog.", "Likes tea."], [BY_ITSELF], []]


def test_a_cursor_or_an_id_that_is_none_is_a_mistake_of_the_program(dsn: str, ada: Subject) -> None:
    async def read(client: MemoryClient) -> None:
        with pytest.raises(ValueError, match="badly formed"):
            await client.list("ada", cursor="page 2")
        with pytest.raises(ValueError, match="isoformat"):
            await client.list("ada", cursor=f"abc|{uuid4()}")
        with pytest.raises(ValueError, match="badly formed"):
            await client.get("7", "ada")

    asked(dsn, read)


def test_without_the_console_there_is_a_reason() -> None:
    async def read(client: MemoryClient) -> tuple[object, MemoryPage]:
        return await client.get(uuid4(), "ada"), await client.list("ada")

    got, page = asked("host=/nowhere", read)
    assert got == page.refused == ProposalRefused(RefusalReason.AWAY)


def test_no_more_are_recalled_than_asked_for_and_none_below_the_threshold(dsn: str, ada: Subject) -> None:
    for text in ("Drinks green tea.", "Drinks tea in the morning.", "Has a bicycle in the cellar."):
        approved(text, subject=ada, is_embedded=True)

    async def recall(client: MemoryClient) -> list[Recalled]:
        return [
            await client.recall("Does she drink green tea?", "ada", **options)
            for options in ({}, {"top_k": 1}, {"threshold": 0.4}, {"threshold": 1.1}, {"top_k": 0})
        ]

    everything, best, near, nothing, none = asked(dsn, recall)
    scores = [each.score for each in everything.choice.chosen]
    assert len(scores) == 3
    assert [each.memory.statement for each in best.choice.chosen] == ["Drinks green tea."]
    assert {each.reason for each in best.choice.left_out} == {"No more than 1 were asked for."}
    assert [each.score for each in near.choice.chosen] == [score for score in scores if score >= 0.4]
    assert 0 < len(near.choice.chosen) < 3
    assert f"Its score {scores[2]:.2f} is below 0.4." in {each.reason for each in near.choice.left_out}
    assert nothing.text == none.text == ""
    assert Recall.objects.count() == 3


def test_a_filter_passes_its_limits_on(dsn: str, ada: Subject) -> None:
    for text in ("Drinks green tea.", "Has a bicycle in the cellar."):
        approved(text, subject=ada, is_embedded=True)

    async def told(client: MemoryClient) -> str:
        cache = RecallCache(client, None, top_k=1)
        return await cache.text_for({"user_id": "ada"}, "Support", [{"role": "user", "content": "Green tea?"}])

    said = asked(dsn, told)
    assert "Drinks green tea." in said
    assert "bicycle" not in said
