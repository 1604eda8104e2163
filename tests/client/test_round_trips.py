"""How often a run waits for the console's database, which may be in another data centre. Counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
from agents import SQLiteSession

from memadmin.client.hooks import MemoryHooks
from memadmin.client.learning import Evidence
from memadmin.client.memories import MemoryClient
from memadmin.client.prompt_context import memory_filter
from memories_app.models import Memory, Recall, Signal
from sessions_app.models import SessionRecord, SubjectKind
from sessions_app.services.subjects import subject_for_key
from tests.client.agents import Customer, client_at, in_agent, talk
from tests.client.conftest import address
from tests.client.round_trips import Relay
from tests.memories.builders import approved

pytestmark = pytest.mark.django_db(transaction=True)

TEA = "Drinks green tea, never coffee."


@pytest.fixture
def relay(dsn: str) -> Iterator[Relay]:
    made = Relay(dsn)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def known(dsn: str) -> None:
    approved(TEA, subject=subject_for_key(SubjectKind.USER, "ada"), is_embedded=True)


def counted(relay: Relay, work: Callable[[MemoryClient, str], Awaitable[Any]]) -> int:
    """Round trips of the second time: the first one opens the connection."""

    async def run() -> int:
        client = client_at(relay.dsn)
        await work(client, "first")
        with relay.counting() as trips:
            await work(client, "second")
        return trips[0]

    return in_agent(run)


async def one_run(client: MemoryClient, session_id: str, said: str = "What shall I drink?", **options: Any) -> None:
    session = client.session(SQLiteSession(session_id))
    filtering = memory_filter(client)
    model = await talk(session, said, context=Customer("ada"), call_model_input_filter=filtering, **options)
    assert TEA in (model.calls[0].system_instructions or "")


def test_a_run_asks_twice_for_its_registration_and_its_memories(relay: Relay) -> None:
    """One round trip for the registration. Two for the memories: found, then recorded, because agents rank them."""
    assert counted(relay, one_run) == 3
    assert Recall.objects.count() == SessionRecord.objects.count() == 2


def test_no_run_waits_for_its_signals(relay: Relay) -> None:
    """They are sent while nobody can store them: the runs end, and the signals are stored afterwards."""
    with psycopg.connect(address()) as other:
        other.execute("LOCK TABLE memories_app_signal")

        async def runs_with_hooks(client: MemoryClient, session_id: str) -> None:
            await one_run(client, session_id, "I prefer tea. What shall I drink?", hooks=MemoryHooks(client))
            if session_id == "second":
                other.rollback()

        counted(relay, runs_with_hooks)
    assert Counter(Signal.objects.values_list("kind", "session_id")) == {
        (kind, session_id): 1 for kind in ("preference", "outcome") for session_id in ("first", "second")
    }


def test_signals_are_one_round_trip_each(relay: Relay) -> None:
    async def one_with_signals(client: MemoryClient, session_id: str) -> None:
        await one_run(client, session_id, "I prefer tea. What shall I drink?", hooks=MemoryHooks(client))
        await client.flush()

    assert counted(relay, one_with_signals) == 3 + 2
    assert sorted(Signal.objects.values_list("kind", flat=True)) == ["outcome", "outcome", "preference", "preference"]


def test_a_wish_is_stored_although_the_run_fails(dsn: str) -> None:
    """It is sent at once: hooks see no end of such a run."""

    async def fail() -> None:
        client = client_at(dsn)
        session = client.session(SQLiteSession("failing"))
        with pytest.raises(ZeroDivisionError):
            await talk(
                session,
                "I prefer tea.",
                context=Customer("ada"),
                hooks=FailingAfterwards(client),
            )

    in_agent(fail)
    assert list(Signal.objects.values_list("kind", flat=True)) == ["preference"]


class FailingAfterwards(MemoryHooks):
    """A run that ends in an error after its first model call has begun."""

    async def on_llm_start(self, *args: Any, **options: Any) -> None:
        await super().on_llm_start(*args, **options)
        raise ZeroDivisionError


def test_a_proposal_with_its_evidence_is_one_round_trip(relay: Relay) -> None:
    async def propose(client: MemoryClient, said: str) -> None:
        assert await client.propose(f"Said {said}.", subject="ada", evidence=[Evidence(said)] * 5)

    assert counted(relay, propose) == 1
    assert Memory.objects.filter(status="proposed").count() == 2


def test_a_database_without_pgvector_is_not_asked_for_it_in_every_recall(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memadmin.client.candidates.HAS_VECTORS", "SELECT false")

    async def recall(client: MemoryClient, said: str) -> None:
        recalled = await client.recall("tea", "ada")
        assert TEA in recalled.text
        assert recalled.choice.chosen[0].place_by_meaning is None

    assert counted(relay, recall) == 2
