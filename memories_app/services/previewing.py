"""What an agent would be told, found by the very statement and the very rules that agents use. Records nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils.timezone import now

from memadmin.client import candidates, embedding, recalling
from memories_app.models import Memory
from sessions_app.models import Subject

HIDDEN_SHOWN = 20
"""How many of those that agents do not see are named, each with why."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A memory that the gate keeps from this run, and why."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True)
class Preview:
    choice: recalling.Choice
    hidden: list[Hidden]
    proposal_count: int
    embedder: str


@transaction.atomic
def preview_recall(
    query: str, *, subject: Subject | None, agent: str = "", budget: int, as_of: datetime | None = None
) -> Preview:
    """What this run would be told, and what it would not. Four queries, whatever there is to choose from."""
    embedder = embedding.load(settings.EMBEDDER)
    vector = embedder.embed([query])[0] if embedder else None
    name = embedder.name if embedder else ""
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk if subject else None, agent))
        cursor.execute(candidates.FIND, candidates.parameters(query, vector, embedder=name, agent=agent, as_of=as_of))
        found = candidates.read(cursor.fetchall())
        cursor.execute("SELECT set_config('memadmin.subject', '', true), set_config('memadmin.agent', '', true)")
    hidden, proposal_count = _hidden(subject, agent, as_of or now(), {each.id for each in found})
    return Preview(recalling.choose(found, budget=budget), hidden, proposal_count, name)


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
    return f"Only for {names}." if agent else f"Only for {names}, and no agent is named here."
