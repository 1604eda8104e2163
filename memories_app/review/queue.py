"""The review queue: filtered proposals in the order of waiting, and the next one after a decision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Min, Q
from django.db.models.functions import Now
from django.http import QueryDict
from django.urls import reverse
from django.utils.timezone import now

from memadmin.counting import COUNT_CAP, count_up_to
from memadmin.web.filters import FilterForm
from memadmin.web.paging import rows_after, rows_before
from memadmin.web.widgets import select
from memories_app.dedup.similarity import Hint
from memories_app.models import Memory
from memories_app.models.querysets import MemoryQuerySet
from memories_app.pages.risk_labels import FLAGS, HINTS, Flag, flag_named
from memories_app.pages.view_models import Words, subject_labels, words_for
from memories_app.review.claiming import is_claimed_by_other
from memories_app.review.proposal_expiry import WARNED_BEFORE, lapses_at, lapsing
from memories_app.review.rules import samples_to_see
from sessions_app.masking import Masker

LISTED = 30
"""Number of proposals listed around the open one, and the number of those before it."""

BEFORE = 4

SHOW = {
    "mine": "claimed by me",
    "shared": "shared by all",
    "second": "second approver needed",
    "changes": "changes to a memory",
    "again": "to be re-validated",
    "late": "late",
    "ending": "expires soon",
    "known": "possible duplicates",
    "contradicts": "same topic as another",
    "sampled": "samples of rules",
    "snoozed": "snoozed",
}


class QueueFilter(FilterForm):
    """Filters of the queue. Without any: all waiting proposals that are not snoozed."""

    show = forms.ChoiceField(
        choices=[("", "Oldest first"), *((name, words.capitalize()) for name, words in SHOW.items())],
        required=False,
        widget=select("Show"),
    )
    kind = forms.ChoiceField(
        choices=[("", "Any kind"), *((value, label.capitalize()) for value, label in Memory.Kind.choices)],
        required=False,
        widget=select("Kind"),
    )
    risk = forms.ChoiceField(
        choices=[("", "Any risk"), ("any", "Risky"), ("none", "Without risks")]
        + [(name, flag.word.capitalize()) for name, flag in FLAGS.items()],
        required=False,
        widget=select("Risk"),
    )
    source = forms.ChoiceField(
        choices=[("", "Any source"), *((value, label.capitalize()) for value, label in Memory.Source.choices)],
        required=False,
        widget=select("Source"),
    )

    def __init__(self, query: QueryDict, user: User) -> None:
        super().__init__(query)
        self.user = user

    def queryset(self) -> MemoryQuerySet:
        waiting = Memory.objects.awaiting_review()
        if self.errors:
            return waiting.none()
        active = self.active
        if active.get("show") == "sampled":
            # Approved by a rule, waiting for a check.
            waiting = Memory.objects.filter(pk__in=samples_to_see().order_by().values("memory"))
            waiting = waiting.order_by("awaiting_since", "pk")
        if active.get("show") != "snoozed":
            waiting = waiting.not_snoozed()
        for name, value in active.items():
            waiting = narrowed(waiting, name, value, self.user)
        return waiting

    def spelled_out(self, name: str, value: Any) -> str:
        if name == "show":
            return SHOW[value]
        if name == "risk":
            return {"any": "risky", "none": "without risks"}.get(value) or flag_named(value).word
        return str(value if name == "kind" else Memory.Source(value).label)


def narrowed(waiting: MemoryQuerySet, name: str, value: str, user: User) -> MemoryQuerySet:
    match name, value:
        case "show", "mine":
            return waiting.filter(claimed_by=user, claimed_until__gt=Now())
        case "show", "shared":
            return waiting.needing_two().filter(subject=None)
        case "show", "second":
            return waiting.needing_two().approved_once().exclude(approval__asked_by=user)
        case "show", "changes":
            return waiting.filter(replaces__isnull=False)
        case "show", "again":
            return waiting.filter(status=Memory.Status.NEEDS_REVALIDATION)
        case "show", "late":
            return waiting.filter(awaiting_since__lt=now() - settings.REVIEW_WITHIN)
        case "show", "ending":
            return waiting.filter(pk__in=lapsing(within=WARNED_BEFORE).order_by().values("pk"))
        case "show", "known":
            return waiting.filter(~Q(hints=[]), hints__overlap=[Hint.DUPLICATE, Hint.NEAR_DUPLICATE])
        case "show", "contradicts":
            return waiting.filter(~Q(hints=[]), hints__contains=[Hint.CONTRADICTION])
        case "show", "sampled":
            return waiting
        case "show", "snoozed":
            return waiting.filter(snoozed_until__gt=Now())
        case "risk", "any":
            return waiting.needing_two().exclude(risk_flags=[])
        case "risk", "none":
            return waiting.filter(risk_flags=[])
        case "risk", flag:
            return waiting.needing_two().filter(risk_flags__contains=[flag])
    return waiting.filter(**{name: value})


def next_to_decide(filters: QueueFilter, *, after: Memory, user: User) -> Memory | None:
    """The next proposal for this reviewer: the first after `after` that they may decide, else the first of all."""
    free = Q(claimed_by=None) | Q(claimed_by=user) | Q(claimed_until__lte=Now())
    theirs = filters.queryset().filter(free).exclude(pk=after.pk).exclude(proposed_by=user)
    theirs = theirs.exclude(approval__decision="", approval__asked_by=user)
    return rows_after(theirs, after).first() or theirs.first()


def around(filters: QueueFilter, memory: Memory) -> list[Memory]:
    """The part of the queue around a proposal: a few before it, itself, and those after it. Two queries."""
    waiting = for_rows(filters.queryset())
    before = list(rows_before(waiting, memory)[:BEFORE])
    return [*reversed(before), memory, *rows_after(waiting, memory)[: LISTED - len(before)]]


def for_rows(memories: MemoryQuerySet) -> MemoryQuerySet:
    """With the related rows that a list row needs."""
    return memories.defer("embedding", "words", "data")


@dataclass(frozen=True, slots=True)
class QueueRow:
    memory: Memory
    address: str
    statement: str
    words: Words
    # Label of its subject; empty for shared ones.
    subject: str
    waited: str
    is_late: bool
    is_claimed_by_other: bool
    flags: list[Flag]
    hints: list[Flag]
    # Time until it expires unreviewed, if that is soon.
    ends_in: str


def rows_of(memories: list[Memory], user: User) -> list[QueueRow]:
    """Rows of the list, with masked values. One query for labels of subjects, one if some expire soon."""
    moment, masker = now(), Masker()
    ending, labels = ends_of(memories, moment), subject_labels(memories)
    return [
        QueueRow(
            memory,
            reverse("reviews:review", args=[memory.pk]),
            masker.text(memory.statement),
            words_for(memory),
            labels.get(memory.subject_id, "") if memory.subject_id else "",
            age(moment - waits_since(memory)),
            memory.is_awaiting and moment - memory.awaiting_since > settings.REVIEW_WITHIN,
            is_claimed_by_other(memory, user, moment),
            [flag_named(flag) for flag in memory.risk_flags[:2]],
            hints_of(memory),
            ending.get(memory.pk, ""),
        )
        for memory in memories
    ]


def waits_since(memory: Memory) -> datetime:
    """Start of the wait for a decision, or for the check of a sample."""
    return memory.awaiting_since if memory.is_awaiting or memory.decided_at is None else memory.decided_at


def hints_of(memory: Memory) -> list[Flag]:
    """Its marks; none for memories that do not wait, whose marks are out of date."""
    return [HINTS[hint] for hint in memory.hints if hint in HINTS] if memory.is_awaiting else []


def ends_of(memories: Collection[Memory], moment: datetime) -> dict[UUID, str]:
    """Time until expiry of those that expire soon. One query, or none."""
    ends = {memory.pk: end for memory in memories if (end := lapses_at(memory)) and end - moment <= WARNED_BEFORE}
    still = lapsing(within=WARNED_BEFORE).filter(pk__in=ends).order_by().values_list("pk", flat=True) if ends else ()
    return {key: age(ends[key] - moment) for key in still}


def age(length: timedelta) -> str:
    """A waiting time in its two largest units: "3 d 4 h", "22 h", "5 min"."""
    minutes = max(int(length.total_seconds() // 60), 0)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return f"{hours} h" if hours else f"{minutes} min"


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Status of the queue: capped counts, and the longest waiting time."""

    waiting: int
    late: int
    ending: int
    oldest_for: timedelta | None
    """Waiting time of the oldest proposal; None without any."""

    @property
    def oldest(self) -> str:
        """Waiting time of the oldest proposal as text; empty without one."""
        return age(self.oldest_for) if self.oldest_for else ""

    @property
    def target(self) -> str:
        """The review target as text; older proposals are late."""
        return age(settings.REVIEW_WITHIN)


def queue_status() -> QueueStatus:
    """The current status. One query of at most a thousand rows of an index, because the oldest are the late ones; one
    more if some may expire soon."""
    at, oldest_first = now(), Memory.objects.awaiting_review().not_snoozed()[: COUNT_CAP + 1]
    counted = oldest_first.aggregate(
        waiting=Count("pk"),
        late=Count("pk", filter=Q(awaiting_since__lt=at - settings.REVIEW_WITHIN)),
        oldest=Min("awaiting_since"),
    )
    oldest, ending = counted["oldest"], 0
    if oldest and oldest <= at - settings.PROPOSAL_LIFETIME + WARNED_BEFORE:
        ending = count_up_to(lapsing(within=WARNED_BEFORE))
    return QueueStatus(counted["waiting"], counted["late"], ending, at - oldest if oldest else None)


def count_waiting() -> int:
    """Capped number of waiting proposals that are not snoozed, for every page of a reviewer. One query."""
    return count_up_to(Memory.objects.awaiting_review().not_snoozed())
