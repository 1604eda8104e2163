"""Recall preview with the same statement and rules that agents use. Records nothing."""

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
from memories_app.vector_column import has_vectors
from sessions_app.models import Subject

logger = logging.getLogger("memadmin.previewing")

HIDDEN_SHOWN = 20
"""Maximum of hidden memories listed with their reason."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A memory that this run may not see, with the reason."""

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
    """Memories that this run would recall, and those it would not. Six queries, for any number of memories."""
    vector, name = _vector_of(query)
    asked = candidates.parameters(query, vector, embedder=name, agent=agent, as_of=as_of)
    found = _with_likeness(_candidates(asked, subject.pk if subject else None, vector), query, name)
    hidden, proposal_count = _hidden(subject, agent, as_of or now(), {each.id for each in found})
    return RecallPreview(recalling.choose(found, budget=budget), hidden, proposal_count, name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Recalls with and without a proposal; `this` is the proposal's id among them."""

    now: recalling.RecallSelection
    after: recalling.RecallSelection
    this: UUID
    agent: str
    embedder: str


@transaction.atomic
def preview_approval(memory: Memory, query: str, *, budget: int = recalling.DEFAULT_BUDGET) -> Comparison:
    """Recalls after an approval of the proposal and now, for the first of its agents. Five queries.

    It replaces the memory that it would change. Contradictions are resolved as for agents.
    """
    agent = memory.agents[0] if memory.agents else ""
    vector, name = _vector_of(query)
    asked = candidates.parameters(query, vector, embedder=name, agent=agent)
    found = _candidates(asked, memory.subject_id, vector)
    with connection.cursor() as cursor:
        cursor.execute(candidates.THIS if vector else candidates.THIS_BY_WORDS, asked | {"memory": memory.pk})
        [this] = candidates.read(cursor.fetchall())
    approved = replace(this, is_verified=True, decided_at=now())
    others = [each for each in found if each.id != memory.replaces_id]
    is_found = memory.subject_id is not None or approved.is_to_the_point
    after = [*others, approved] if is_found else others
    return Comparison(
        recalling.choose(_with_likeness(found, query, name), budget=budget),
        recalling.choose(_with_likeness(after, query, name), budget=budget),
        memory.pk,
        agent,
        name,
    )


def _vector_of(query: str) -> tuple[list[float] | None, str]:
    """The vector and the embedder's name; None and an empty name without one, without a query as for agents, in a
    database without vectors, or if it fails: then only words count.
    """
    embedder = embedding.load(settings.EMBEDDER)
    if embedder is None or not query.strip() or not has_vectors():
        return None, ""
    try:
        return embedding.embed(embedder, [query])[0], embedder.name
    except Exception as problem:  # clients of hosted models raise any exception
        logger.warning("The embedder failed (%s); the preview matches by words only.", type(problem).__name__)
        return None, ""


def _with_likeness(found: list[candidates.Candidate], query: str, embedder: str) -> list[candidates.Candidate]:
    """The candidates, compared as by agents; as they are without a vector of the query."""
    loaded = embedding.load(settings.EMBEDDER) if embedder else None
    return candidates.with_likeness(found, query, loaded) if loaded else found


def _candidates(
    asked: Mapping[str, Any], subject: UUID | None, vector: Sequence[float] | None
) -> list[candidates.Candidate]:
    """Memories visible to a run about this subject. Three queries, and one with an external index."""
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject, asked["agent"]))
        near = _near(asked, vector) if vector else None
        if near is None:
            cursor.execute(candidates.FIND if vector else candidates.FIND_BY_WORDS, asked)
        else:
            cursor.execute(candidates.FIND_NAMED, {**asked, **candidates.naming(near)})
        found = candidates.read(cursor.fetchall())
        cursor.execute("SELECT set_config('memadmin.subject', '', true), set_config('memadmin.agent', '', true)")
    return found


def _near(asked: Mapping[str, Any], vector: Sequence[float]) -> list[Near] | None:
    """Results of the external index, as for agents; None if the database compares vectors itself."""
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
        logger.warning("The vector index failed (%s); the database compares vectors itself.", away)
        return None


def _hidden(subject: Subject | None, agent: str, at: datetime, seen: set[UUID]) -> tuple[list[Hidden], int]:
    """Hidden memories of a subject, or shared ones without a subject; and the number of waiting proposals."""
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
    return f"Only for {names}." if agent else f"Only for {names}; no agent was specified."
