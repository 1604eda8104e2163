"""Context of a proposal for its review: difference, evidence, similar memories and risk checks.

Values are masked for all users, as in timelines, and quotes of locked sessions need a grant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db.models import F
from django.utils.timezone import now
from pgvector.django import CosineDistance

from memadmin.accounts.approvals.models import Approval
from memadmin.accounts.approvals.services import digest_of
from memories_app.learning.risk_detection import risks_of
from memories_app.models import Memory, MemoryVersion
from memories_app.pages.risk_labels import CHECKS
from memories_app.pages.view_models import ShownQuote, quotes_for, with_surroundings
from memories_app.pages.word_diff import Piece, changes
from memories_app.review.claiming import name_of
from memories_app.review.decisions import first_approval, shown_of
from sessions_app.masking import Masker

MOST_LIKE = 5
LIKE_ENOUGH = 0.6
"""Cosine similarity from which two texts are shown as similar."""

SHOWN_EVIDENCE = 20

TELLING_WORDS = 12
"""Number of words by which a text without a vector is compared."""

WORD = re.compile(r"\w{2,40}")

Show = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    memory: Memory
    text: str
    has_same_topic: bool
    likeness: float | None


@dataclass(frozen=True, slots=True)
class Check:
    sentence: str
    is_risk: bool


@dataclass(frozen=True, slots=True)
class TextDifference:
    """A text of the memory that a proposal would change, as a difference to the one before."""

    title: str
    pieces: list[Piece]


@dataclass(frozen=True, slots=True)
class ReviewContext:
    statement: str
    base: Memory | None
    is_base_changed: bool
    difference: list[TextDifference]
    hidden: list[str]
    is_over: bool
    evidence: list[ShownQuote]
    neighbours: list[SimilarMemory]
    checks: list[Check]
    first: Approval | None
    """The first of two approvals."""
    digest: str
    """Digest of what the second person sees."""
    proposed_by: str


def review_context(memory: Memory, *, reader: User) -> ReviewContext:
    """The context of a proposal. About ten queries, for any number of memories."""
    show: Show = Masker().text
    base = memory.replaces
    first = first_approval(memory)
    evidence = list(memory.evidence.order_by("said_at", "pk")[:SHOWN_EVIDENCE])
    return ReviewContext(
        statement=show(memory.statement),
        base=base,
        is_base_changed=base is not None and base.version != memory.base_version,
        difference=difference(memory, base, show) if base else [],
        hidden=hidden_by_approval(memory, base, show) if base else [],
        is_over=is_over(memory),
        evidence=with_surroundings(quotes_for(reader, evidence), reader),
        neighbours=neighbours_of(memory, show),
        checks=checks_of(memory),
        first=first,
        digest=digest_of(shown_of(memory)) if first else "",
        proposed_by=proposer(memory),
    )


def difference(memory: Memory, base: Memory, show: Show) -> list[TextDifference]:
    """The version it was written against, the current one if different, and the proposal."""
    written_against = MemoryVersion.objects.filter(memory=base, number=memory.base_version or 0).first()
    texts = [(f"v{memory.base_version}, its base", written_against.statement if written_against else "")]
    if base.version != memory.base_version:
        texts.append((f"v{base.version}, now", base.statement))
    texts.append(("Proposed", memory.statement))
    shown = [(title, show(text)) for title, text in texts]
    first = TextDifference(shown[0][0], [Piece("kept", shown[0][1] or "erased")])
    return [
        first,
        *(TextDifference(title, changes(before, text)) for (_, before), (title, text) in pairwise(shown)),
    ]


def hidden_by_approval(memory: Memory, base: Memory, show: Show) -> list[str]:
    """Sentences about what agents recall now and would no longer recall after an approval of this change."""
    if base.status != Memory.Status.APPROVED or is_over(base):
        return []
    if is_over(memory):
        return ["Approval ends this memory. Agents no longer recall it."]
    sentences = []
    if base.statement != memory.statement:
        sentences.append(f"Agents no longer recall: “{show(base.statement)}”")
    if memory.valid_from and memory.valid_from > now():
        sentences.append(f"Until {memory.valid_from:%-d %B %Y} agents recall neither the old nor the new version.")
    if memory.agents and not (base.agents and set(base.agents) <= set(memory.agents)):
        sentences.append(f"Some agents no longer recall it: all but {', '.join(memory.agents)}.")
    return sentences


def is_over(memory: Memory) -> bool:
    """Whether the end of its validity has passed."""
    return memory.valid_until is not None and memory.valid_until <= now()


def neighbours_of(memory: Memory, show: Show) -> list[SimilarMemory]:
    """Memories with the same topic first, then similar ones: by vectors if both have one, else by words."""
    others = Memory.objects.filter(status__in=Memory.CURRENT).exclude(
        pk__in=[key for key in (memory.pk, memory.replaces_id) if key]
    )
    others = others.exclude(replaces=memory).defer("embedding", "words", "data")
    others = others.filter(subject=None) if memory.subject is None else others.about(memory.subject)
    found: dict[Any, SimilarMemory] = {}
    if memory.key:
        for other in others.filter(kind=memory.kind, key=memory.key).order_by("-decided_at", "pk")[:MOST_LIKE]:
            found[other.pk] = SimilarMemory(other, show(other.statement), True, None)
    for other in like(memory, others)[:MOST_LIKE]:
        likeness = getattr(other, "likeness", None)
        found.setdefault(other.pk, SimilarMemory(other, show(other.statement), False, likeness))
    return list(found.values())


def like(memory: Memory, others: Any) -> list[Memory]:
    if memory.embedding is not None and memory.embedded_hash == memory.content_hash:
        if memory.subject_id is None:
            # The condition of the vector index.
            others = others.filter(status=Memory.Status.APPROVED)
        distance = CosineDistance("embedding", memory.embedding)
        near = others.filter(embedder=memory.embedder).annotate(distance=distance).order_by("distance")[:MOST_LIKE]
        alike = [other for other in near if 1 - other.distance >= LIKE_ENOUGH]
        for other in alike:
            other.likeness = round(1 - other.distance, 2)
        return alike
    words = sorted(set(WORD.findall(memory.statement.lower())), key=len)[-TELLING_WORDS:]
    query = SearchQuery(" OR ".join(words), search_type="websearch", config="english")
    return list(
        others.filter(words=query).annotate(fit=SearchRank(F("words"), query)).order_by("-fit", "pk")[:MOST_LIKE]
    )


def checks_of(memory: Memory) -> list[Check]:
    """Checks of its text: findings with reasons, and checks without findings."""
    risks = {risk.flag: risk for risk in risks_of(memory.statement, memory.data, regions=settings.PHONE_REGIONS)}
    checks = []
    for sentence, flags in CHECKS:
        found = [risks[flag] for flag in risks if flag in flags]
        checks += [Check(risk.sentence, True) for risk in found] or [Check(sentence, False)]
    if memory.subject_id is None:
        checks.append(Check("Shared: agents would read it for every subject", True))
    if memory.source in (Memory.Source.TOOL, Memory.Source.WEB):
        whence = "a tool" if memory.source == Memory.Source.TOOL else "a web page"
        checks.append(Check(f"Source is {whence}, not a person", True))
    return checks


def proposer(memory: Memory) -> str:
    if memory.proposed_by:
        return name_of(memory.proposed_by)
    return memory.extractor or "an agent"
