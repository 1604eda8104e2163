"""Memories for agents: recall before a run, and proposals from it.

Agents read approved memories and propose others; row policies and the trigger `gate` enforce that, not this module.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeVar
from uuid import UUID

from agents.memory import Session
from psycopg.types.json import Jsonb

from memadmin.client import candidates, embedding, learning, listing, recalling, runs, vector_lookup
from memadmin.client.background import BackgroundSender
from memadmin.client.candidates import Candidate
from memadmin.client.connection import SUBJECT_ID, Connection, Console, ConsoleUnavailable, RefusedByDatabase
from memadmin.client.learning import LONGEST_QUOTE, Evidence, Kind, SignalKind
from memadmin.client.listing import ApprovedMemory, MemoryPage
from memadmin.client.proposal_results import (
    Answer,
    Kept,
    ProposalRefused,
    RefusalReason,
    is_storable,
    refused_with,
    unfit,
)
from memadmin.client.recalling import DEFAULT_BUDGET, RecallSelection
from memadmin.client.runs import CurrentRun
from memadmin.client.sessions import GovernedSession
from memadmin.client.subjects import NOBODY, USER_ID, Finder, Named, Subject, find_subject, subject_of
from memadmin.client.vector_lookup import Near

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_BUDGET = 100_000
"""Most tokens of a recall, whatever budget a program has: more than all candidates together take."""

LONGEST_QUERY = 2000
"""Characters of the user's text that are used as query; a pasted document says no more about what to recall."""

MOST_THREADS = 2
"""Threads for embedders and vector indexes, which compute or call a service."""

NOTE_RECALL = f"""
INSERT INTO memories_app_recall (
    id, subject_id, record_id, session_id, agent, embedder, token_budget, token_count
) VALUES (
    %(id)s, {SUBJECT_ID}, %(record)s, %(session)s, %(agent)s, %(embedder)s, %(budget)s, %(tokens)s
)
"""

NOTE_RECALLED = """
INSERT INTO memories_app_recalledmemory (recall_id, memory_id, version, place, score)
SELECT %(recall)s, * FROM unnest(%(memories)s::uuid[], %(versions)s::int[], %(places)s::int[], %(scores)s::float8[])
"""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Memories for a run: `text` is empty if there are none, or if the database is not responding."""

    choice: RecallSelection = field(default_factory=RecallSelection)
    text: str = ""
    id: UUID | None = None
    """Id of the record of this recall; an empty recall is not recorded."""
    refused: ProposalRefused | None = None


class MemoryClient:
    """The memories of the console at `console`, an address or a `Console` that a program has already.

    `embedder` is the name of the console's embedder (`MEMADMIN_EMBEDDER`), or "none" to recall by words alone;
    `index` is that of its vector index (`MEMADMIN_VECTOR_INDEX`), with a key that may read.
    `subject_in` is the place of the subject in a run's context, as for GovernedSession.

    Nothing here raises into a run because of the console: a `ProposalRefused` contains the reason.
    """

    def __init__(
        self,
        console: Console | str,
        *,
        store: str = "main",
        embedder: embedding.Embedder | str = embedding.OFFLINE,
        subject_in: Finder = USER_ID,
        budget: int = DEFAULT_BUDGET,
        index: vector_lookup.Nearest | str = vector_lookup.INSIDE,
        index_key: str = "",
    ) -> None:
        self.console = Console(console) if isinstance(console, str) else console
        self.store, self.subject_in, self.budget = store, subject_in, budget
        self._embedder = embedding.load(embedder) if isinstance(embedder, str) else embedder
        self._is_embedder_away, self._embedder_rests_until = False, 0.0
        self._index = vector_lookup.load(index, index_key) if isinstance(index, str) else index
        self._index_rests_until = 0.0
        self._has_vectors, self._without_vectors_until = False, 0.0
        # Not the loop's own threads, which sessions of the SDK need: a hanging call would take all of them.
        self._threads = ThreadPoolExecutor(MOST_THREADS, "memadmin-client")
        self._background = BackgroundSender()

    def session(self, inner: Session, **options: Any) -> GovernedSession:
        """The SDK's session, registered in the console; options as of GovernedSession."""
        return GovernedSession(
            inner, **{"console": self.console, "store": self.store, "subject_in": self.subject_in, **options}
        )

    async def warm(self) -> None:
        """Loads the embedder in a thread, for which the first recall would wait: about half a second and 80 MB for the
        offline one, nothing for a hosted one. Never raises: an embedder that fails is tried again at the next recall.
        """
        if self._embedder is None:
            return
        load = partial(embedding.compare, self._embedder, "a", ["a"])
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, load)
        except Exception as problem:
            logger.warning("The embedder could not be loaded (%s).", type(problem).__name__)

    async def aclose(self) -> None:
        """Closes the connections of this event loop, after signals were sent that wait in the background."""
        await asyncio.to_thread(self._background.close)
        await self.console.aclose()

    # --- asking ------------------------------------------------------------------------------------------------------

    async def recall(
        self,
        query: str = "",
        subject: Named = None,
        budget: int | None = None,
        *,
        agent: str = "",
        top_k: int | None = None,
        threshold: float = 0.0,
    ) -> Recalled:
        """Memories for an agent and a query, recorded as a recall.

        The subject is that of the run if none is given; "" is none. Without one there are only shared memories.
        `top_k` limits their number, `threshold` is the least score, 0 to 1; `recalling.Ranked.score` explains it.
        """
        whose, run = self._whose(subject)
        query = "".join(character for character in query[:LONGEST_QUERY] if is_storable(character))
        vector = await self._vector_of(query)
        named = self._embedder.name if self._embedder and vector else ""
        given = candidates.parameters(query, vector, embedder=named, agent=agent[:200])
        most = max(0, min(self.budget if budget is None else budget, MOST_BUDGET))

        async def look_up(connection: Connection) -> Recalled:
            nonlocal vector, named, given
            if vector is not None and not await self._database_has_vectors(connection):
                vector, named = None, ""
                given = candidates.parameters(query, None, agent=agent[:200])
            found = await self._candidates(connection, given, vector)
            if vector:
                found = await self._with_likeness(found, query)
            choice = recalling.choose(found, budget=most, top_k=top_k, threshold=threshold)
            if not choice.chosen:
                return Recalled(choice)
            noted = [(each.memory.id, each.memory.version, each.place, each.score) for each in choice.chosen]
            values = {"agent": agent[:200], "embedder": named, "budget": most, "tokens": choice.tokens}
            recall = await _note_recall(connection, run, noted, values)
            return Recalled(choice, choice.text(whose.key if whose else ""), recall)

        answer = await self._ask_for_memories(whose, agent, look_up)
        return Recalled(refused=answer) if isinstance(answer, ProposalRefused) else answer

    async def get(
        self, memory: UUID | str, subject: Named = None, *, agent: str = ""
    ) -> ApprovedMemory | ProposalRefused:
        """One memory that this agent may use for this subject, recorded as a recall; or why there is none.

        The subject is that of the run if none is given; "" is none. A proposal, and a memory of another subject, are
        NOT_FOUND like one that does not exist. Raises ValueError for a text that is no id.
        """
        given = {"memory": UUID(str(memory)), "agent": agent[:200], "as_of": None}
        found = await self._read_approved(listing.GET, given, subject, agent, most=1)
        if isinstance(found, ProposalRefused):
            return found
        return found[0] if found else ProposalRefused(RefusalReason.NOT_FOUND)

    async def list(
        self,
        subject: Named = None,
        *,
        kinds: Sequence[Kind] = (),
        is_shared: bool = False,
        limit: int = 50,
        cursor: str = "",
        agent: str = "",
    ) -> MemoryPage:
        """A page of the memories about a subject that this agent may use, the latest approval first; recorded as a
        recall.

        The subject is that of the run if none is given; with `is_shared`, the shared memories instead. `kinds` are all
        if none is named. `cursor` is that of the previous page; raises ValueError for another. `limit` is at most 200.
        """
        if not is_shared and self._whose(subject)[0] is None:
            return MemoryPage(refused=ProposalRefused(RefusalReason.NO_SUBJECT))
        given = listing.parameters(kinds=kinds, limit=limit, cursor=cursor, agent=agent[:200])
        statement = listing.LIST_SHARED if is_shared else listing.LIST_OWN
        found = await self._read_approved(statement, given, subject, agent, most=listing.page_size(limit))
        return MemoryPage(refused=found) if isinstance(found, ProposalRefused) else listing.page(found, limit)

    # --- telling -----------------------------------------------------------------------------------------------------

    async def propose(
        self,
        statement: str,
        *,
        kind: Kind = "note",
        subject: Named = None,
        is_shared: bool = False,
        key: str = "",
        data: Mapping[str, Any] | None = None,
        evidence: Sequence[Evidence] = (),
        agents: Sequence[str] = (),
        provenance: Literal["explicit", "inferred"] = "inferred",
        source: Literal["user", "tool", "web"] = "user",
        confidence: float = 0.5,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        replaces: tuple[UUID, int] | None = None,
        extractor: str = "agent",
    ) -> Answer:
        """Proposes a statement to the reviewers, with its evidence.

        It is about the subject, or the run's if none is given; shared, about no subject, only if `is_shared` is true.
        `replaces` is an approved memory and the version of it that this one was written against.
        """
        whose, run = self._whose(None if is_shared else subject)
        whose = None if is_shared else whose
        if whose is None and not is_shared:
            return ProposalRefused(RefusalReason.NO_SUBJECT)
        if reason := learning.reason_to_refuse(statement, data or {}, evidence, agents):
            return ProposalRefused(reason)
        memory = uuid.uuid4()
        values = {
            "id": memory,
            "kind": kind,
            "key": key,
            "statement": statement,
            "data": Jsonb(dict(data or {})),
            "agents": list(agents),
            "provenance": provenance,
            "source": source,
            "confidence": confidence,
            "valid_from": valid_from,
            "valid_until": valid_until,
            "replaces": replaces[0] if replaces else None,
            "base_version": replaces[1] if replaces else None,
            "extractor": extractor,
        }

        async def insert(connection: Connection) -> Kept:
            await connection.execute(learning.PROPOSE, values)
            for one in evidence:
                await connection.execute(
                    learning.ADD_EVIDENCE, {"memory": memory, **learning.evidence_values(one, run)}
                )
            return Kept(memory)

        return await self._ask(whose, "", insert)

    async def signal(
        self,
        kind: SignalKind,
        text: str = "",
        *,
        value: int | None = None,
        subject: Named = None,
        agent: str = "",
        memory: UUID | None = None,
        item_id: str = "",
    ) -> Answer:
        """Sends a signal: a correction or a wish, the outcome of a run (-1, 1), a rating (1 to 5)."""
        whose, run = self._whose(subject)
        if text and (reason := unfit(text, LONGEST_QUOTE)):
            return ProposalRefused(reason)
        given = learning.signal_values(run, kind, text, value=value, agent=agent, memory=memory, item_id=item_id)
        return await self._ask(whose, agent, partial(learning.give_signal, given))

    def signal_later(
        self, kind: SignalKind, text: str = "", *, value: int | None = None, subject: Named = None, agent: str = ""
    ) -> None:
        """Sends a signal from a thread, so that no run waits for it. `flush` waits for all of them, and so does the end
        of the program, no longer than for an answer. Texts that `signal` would refuse are not sent.
        """
        whose, run = self._whose(subject)
        if text and unfit(text, LONGEST_QUOTE):
            return
        given = learning.signal_values(run, kind, text, value=value, agent=agent)
        request = partial(self.console.ask_in_run, whose, agent, partial(learning.give_signal, given))
        self._background.send(self.console, request)

    async def flush(self) -> None:
        """Waits for signals that are sent in the background, no longer than for an answer."""
        await asyncio.to_thread(self._background.flush)

    async def forget(self, what: str, *, subject: Named = None, memory: UUID | None = None, agent: str = "") -> Answer:
        """Asks the reviewers to retire a memory, because someone wants it forgotten."""
        if reason := unfit(what, LONGEST_QUOTE - len(learning.FORGET)):
            return ProposalRefused(reason)
        return await self.signal(
            "correction", learning.FORGET + what, value=-1, subject=subject, memory=memory, agent=agent
        )

    # --- within --------------------------------------------------------------------------------------------------

    def subject_in_run(self, context: Any) -> Subject:
        """The subject of the run's session, or else of its context object; NOBODY if neither has one."""
        run = runs.current_in(context)
        if run and run.subject:
            return run.subject
        try:
            return find_subject(context, self.subject_in) or NOBODY
        except Exception as problem:
            logger.warning("No subject could be found in a run's context (%s).", type(problem).__name__)
            return NOBODY

    def _whose(self, subject: Named) -> tuple[Subject | None, CurrentRun | None]:
        """The subject, and the run if it is of this subject."""
        whose, run = subject_of(subject), runs.current()
        if whose is None:
            return (run.subject if run else None), run
        return whose or None, run if run and run.subject in (None, whose) else None

    async def _ask(
        self, whose: Subject | None, agent: str, work: Callable[[Connection], Awaitable[T]]
    ) -> T | ProposalRefused:
        try:
            return await self.console.ask_in_run(whose, agent, work)
        except ConsoleUnavailable:
            return ProposalRefused(RefusalReason.AWAY)
        except RefusedByDatabase as refusal:
            return refused_with(refusal.sqlstate)

    async def _ask_for_memories(
        self, whose: Subject | None, agent: str, look_up: Callable[[Connection], Awaitable[T]]
    ) -> T | ProposalRefused:
        answer = await self._ask(whose, agent, look_up)
        if isinstance(answer, ProposalRefused) and answer.reason is RefusalReason.NOT_ALLOWED:
            # One of them was retired, or expired, after it was found: nothing is returned that is not recorded.
            answer = await self._ask(whose, agent, look_up)
        return answer

    async def _read_approved(
        self, statement: str, given: Mapping[str, Any], subject: Named, agent: str, *, most: int
    ) -> Sequence[ApprovedMemory] | ProposalRefused:
        """Memories found by a statement of `listing`. Records the first `most` of them, as a recall without a query."""
        whose, run = self._whose(subject)

        async def look_up(connection: Connection) -> Sequence[ApprovedMemory]:
            rows = await (await connection.execute(statement, given)).fetchall()
            found = [ApprovedMemory(*row) for row in rows]
            if some := found[:most]:
                noted = [(each.id, each.version, place, 0.0) for place, each in enumerate(some, start=1)]
                tokens = sum(recalling.count_tokens(each.statement) for each in some)
                values = {"agent": agent[:200], "embedder": "", "budget": tokens, "tokens": tokens}
                await _note_recall(connection, run, noted, values)
            return found

        return await self._ask_for_memories(whose, agent, look_up)

    async def _candidates(
        self, connection: Connection, given: Mapping[str, Any], vector: Sequence[float] | None
    ) -> Sequence[Candidate]:
        if vector is None:
            asked = await connection.execute(candidates.FIND_BY_WORDS, given)
            return candidates.read(await asked.fetchall())
        near = await self._near(connection, given, vector)
        statement = candidates.FIND if near is None else candidates.FIND_NAMED
        asked = await connection.execute(statement, {**given, **candidates.naming(near or ())})
        return candidates.read(await asked.fetchall())

    async def _with_likeness(self, found: Sequence[Candidate], query: str) -> Sequence[Candidate]:
        """The candidates with their likeness to the query, computed in a thread; unchanged if that fails."""
        assert self._embedder is not None
        compare = partial(candidates.with_likeness, found, query, self._embedder)
        try:
            compared = asyncio.get_running_loop().run_in_executor(self._threads, compare)
            return await asyncio.wait_for(compared, self.console.seconds)
        except Exception as problem:
            logger.warning("Memories could not be compared (%s).", type(problem).__name__)
            return found

    async def _database_has_vectors(self, connection: Connection) -> bool:
        """Whether the database has pgvector. While it has not, asks only now and then: each answer is a round trip."""
        if not self._has_vectors and time.monotonic() >= self._without_vectors_until:
            row: Any = await (await connection.execute(candidates.HAS_VECTORS)).fetchone()
            self._has_vectors = row[0]
            self._without_vectors_until = time.monotonic() + self.console.rest_seconds
        return self._has_vectors

    async def _near(
        self, connection: Connection, given: Mapping[str, Any], vector: Sequence[float] | None
    ) -> Sequence[Near] | None:
        """Memories returned by an external index; None if there is none, or it does not respond in half the
        time: the database has all vectors itself.
        """
        index = self._index
        if index is None or vector is None or time.monotonic() < self._index_rests_until:
            return None
        row: Any = await (await connection.execute("SELECT memadmin_run_subjects()")).fetchone()
        scope = {name: given[name] for name in ("embedder", "agent", "limit")}
        ask = partial(index.near, vector, subjects=row[0] or [], **scope)
        asking = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        try:
            return await asyncio.wait_for(asking, self.console.seconds / 2)
        except Exception as problem:
            logger.warning(
                "The vector index failed (%s); the database compares the vectors instead.", type(problem).__name__
            )
            self._index_rests_until = time.monotonic() + self.console.rest_seconds
            return None

    async def _vector_of(self, query: str) -> Sequence[float] | None:
        """The vector, computed in a thread, because it computes or calls a service. Words alone are better than no
        memories.
        """
        if not self._embedder or not query.strip() or time.monotonic() < self._embedder_rests_until:
            return None
        try:
            embed = partial(embedding.embed, self._embedder, [query])
            asked = asyncio.get_running_loop().run_in_executor(self._threads, embed)
            (vector,) = await asyncio.wait_for(asked, self.console.seconds)
        except Exception as problem:
            self._embedder_rests_until = time.monotonic() + self.console.rest_seconds
            if not self._is_embedder_away:
                logger.warning("The embedder failed (%s); memories are recalled by words only.", type(problem).__name__)
            self._is_embedder_away = True
            return None
        self._is_embedder_away = False
        return vector


async def _note_recall(
    connection: Connection,
    run: CurrentRun | None,
    noted: Sequence[tuple[UUID, int, int, float]],
    values: Mapping[str, Any],
) -> UUID:
    """Id of a recall that it records: for each memory its id, version, place and score; agent, embedder, budget and
    tokens in `values`.
    """
    recall = uuid.uuid4()
    await connection.execute(NOTE_RECALL, {"id": recall, **runs.values(run), **values})
    memories, versions, places, scores = map(list, zip(*noted, strict=True))
    given = {"recall": recall, "memories": memories, "versions": versions, "places": places, "scores": scores}
    await connection.execute(NOTE_RECALLED, given)
    return recall
