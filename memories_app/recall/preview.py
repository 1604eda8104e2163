"""What an agent would be told, found by the very statement and the very rules that agents use. Records nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils.timezone import now

from memadmin.client import candidates, embedding, recalling
from memadmin.client.vector_lookup import Near
from memories_app.models import Memory
from memories_app.recall import vectors
from sessions_app.models import Subject

logger = logging.getLogger("memadmin.previewing")

HIDDEN_SHOWN = 20
"""How many of those that agents do not see are named, each with why."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A memory that the gate keeps from this run, and why."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True)
class RecallPreview:
    choice: recalling.RecallSelection
    hidden: list[Hidden]
    proposal_count: int
    embedder: str


@transaction.atomic
def preview_recall(
    query: str, *, subject: Subject | None, agent: str = "", budget: int, as_of: datetime | None = None
) -> RecallPreview:
    """What this run would be told, and what it would not. Five queries, whatever there is to choose from."""
    vector, name = _vector_of(query)
    asked = candidates.parameters(query, vector, embedder=name, agent=agent, as_of=as_of)
    found = _candidates(asked, subject.pk if subject else None, vector)
    hidden, proposal_count = _hidden(subject, agent, as_of or now(), {each.id for each in found})
    return RecallPreview(recalling.choose(found, budget=budget), hidden, proposal_count, name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a run would be told with a proposal and without; `this` is how the proposal is called among them."""

    now: recalling.RecallSelection
    after: recalling.RecallSelection
    this: UUID
    agent: str
    embedder: str


@transaction.atomic
def preview_approval(memory: Memory, query: str, *, budget: int = recalling.DEFAULT_BUDGET) -> Comparison:
    """What agents would be told if a proposal was approved now, and what they are told today; for the first agent that
    it names. Four queries.

    It stands in for the memory that it would change. What says the opposite is weighed as agents weigh it.
    """
    agent = memory.agents[0] if memory.agents else ""
    vector, name = _vector_of(query)
    asked = candidates.parameters(query, vector, embedder=name, agent=agent)
    found = _candidates(asked, memory.subject_id, vector)
    with connection.cursor() as cursor:
        cursor.execute(candidates.THIS, asked | {"memory": memory.pk})
        [this] = candidates.read(cursor.fetchall())
    approved = replace(this, is_verified=True, decided_at=now())
    others = [each for each in found if each.id != memory.replaces_id]
    is_found = memory.subject_id is not None or approved.is_to_the_point
    return Comparison(
        recalling.choose(found, budget=budget),
        recalling.choose([*others, approved] if is_found else others, budget=budget),
        memory.pk,
        agent,
        name,
    )


def _vector_of(query: str) -> tuple[list[float] | None, str]:
    """And the embedder's name. None and no name where there is none, or a hosted one is away: words alone decide."""
    embedder = embedding.load(settings.EMBEDDER)
    if embedder is None:
        return None, ""
    try:
        return embedding.embed(embedder, [query])[0], embedder.name
    except Exception as problem:  # whatever a client of a hosted model raises
        logger.warning("The embedder fails (%s); a preview matches by words only.", type(problem).__name__)
        return None, ""


def _candidates(
    asked: Mapping[str, Any], subject: UUID | None, vector: Sequence[float] | None
) -> list[candidates.Candidate]:
    """What the gate lets a run about this subject see. Three queries, and one where another index is asked."""
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject, asked["agent"]))
        near = _near(asked, vector) if vector else None
        if near is None:
            cursor.execute(candidates.FIND, asked)
        else:
            cursor.execute(candidates.FIND_NAMED, {**asked, **candidates.naming(near)})
        found = candidates.read(cursor.fetchall())
        cursor.execute("SELECT set_config('memadmin.subject', '', true), set_config('memadmin.agent', '', true)")
    return found


def _near(asked: Mapping[str, Any], vector: Sequence[float]) -> list[Near] | None:
    """As for an agent: what another index names, or None where the database is to compare by itself."""
    index = vectors.outside()
    if index is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_run_subjects()")
        [subjects] = cursor.fetchone()
    try:
        return index.near(
            vector, subjects=subjects or [], **{name: asked[name] for name in ("embedder", "agent", "limit")}
        )
    except vectors.IndexAway as away:
        logger.warning("The index of vectors fails (%s); the database compares by itself.", away)
        return None


def _hidden(subject: Subject | None, agent: str, at: datetime, seen: set[UUID]) -> tuple[list[Hidden], int]:
    """Of a subject's own, and without one of the shared, those that the gate hides; and how many proposals wait."""
    theirs = Memory.objects.about(subject) if subject else Memory.objects.filter(subject__isnull=True)
    proposal_count = theirs.awaiting_review().order_by()[:1000].count()
    approved = theirs.filter(status=Memory.Status.APPROVED).exclude(pk__in=seen)
    outside = approved.filter(
        Q(valid_until__lte=at) | Q(valid_from__gt=at) | (~Q(agents=[]) & ~Q(agents__contains=[agent]))
    )
    return [Hidden(memory, _why(memory, agent, at)) for memory in outside.newest_first()[:HIDDEN_SHOWN]], proposal_count


def _why(memory: Memory, agent: str, at: datetime) -> str:
    if memory.valid_until and memory.valid_until <= at:
        return f"Expired on {memory.valid_until:%-d %B %Y}."
    if memory.valid_from and memory.valid_from > at:
        return f"Valid from {memory.valid_from:%-d %B %Y} on."
    names = ", ".join(memory.agents)
    return f"Only for {names}." if agent else f"Only for {names}, and no agent is given here."
