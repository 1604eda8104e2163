"""Explanations: why a session or a memory is still there, and when it goes; of a subject, the same in numbers.

All of it is the answer of `resolution.resolve` in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Prefetch, Q, QuerySet, Subquery
from django.utils.timezone import now

from memadmin.counting import count_up_to
from memadmin.retention.holds.guard import holds_on
from memadmin.retention.policies.resolution import Claim, Resolution, instant, resolve
from memadmin.retention.policies.rules import Action, Rule
from memadmin.retention.policies.services import rules_in_force
from memadmin.retention.targets.base import KeptReason, RetentionTarget, target_named
from memadmin.retention.targets.items import needed
from memadmin.retention.targets.memories import LAST_RECALL
from memadmin.retention.targets.records import LIVE
from memories_app.models import Memory
from sessions_app.models import SessionRecord, Subject, SubjectAlias
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability

MOST_COUNTED = 100
"""Sessions of a subject, and memories, whose resolution is computed for its page."""

VERBS = {
    Action.KEEP: "keeps",
    Action.DELETE: "deletes",
    Action.REDACT: "redacts",
    Action.EXPIRE: "expires",
    Action.REVALIDATE: "sends to re-validation",
}

PASSIVE = {
    Action.KEEP: "kept",
    Action.DELETE: "deleted",
    Action.REDACT: "redacted",
    Action.EXPIRE: "expired",
    Action.REVALIDATE: "sent to re-validation",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """The resolution of one row, with what a reader needs besides."""

    noun: str
    """The row in a sentence: "this session"."""
    resolution: Resolution
    is_due: bool
    """Whether its time is over, be it held or not."""
    remark: str = ""
    """Why the next run may leave it: a sentence."""

    @property
    def winner(self) -> Claim | None:
        return self.resolution.winner

    @property
    def passive(self) -> str:
        return PASSIVE[self.resolution.action]

    @property
    def reason(self) -> str:
        """The winning rule: "180 days after last activity"; empty for one that keeps."""
        return length_in_words(self.winner.rule) if self.winner else ""

    @property
    def minimum(self) -> str:
        """The legal minimum that postpones it, with its clock."""
        claim = self.resolution.minimum
        return f"{claim.rule.minimum} after {clock_in_words(claim.rule)}" if claim else ""

    @property
    def losers(self) -> list[Loser]:
        return [Loser(claim, self) for claim in self.resolution.losers]


@dataclass(frozen=True, slots=True)
class Loser:
    """A rule that is about the row, too, and does not decide."""

    claim: Claim
    explained: Explained

    @property
    def rule(self) -> Rule:
        return self.claim.rule

    @property
    def what(self) -> str:
        """The claim in words: "deletes 30 days after last activity"."""
        if self.claim.is_minimum:
            return f"keeps for {self.rule.minimum} after {clock_in_words(self.rule)}: {self.rule.reference}"
        return f"{VERBS[self.rule.action]} {length_in_words(self.rule)}".strip()

    @property
    def why(self) -> str:
        """Why it does not decide."""
        resolution = self.explained.resolution
        if self.claim.is_minimum:
            if resolution.due_at is None:
                return "nothing goes anyway"
            return "another legal minimum ends later" if resolution.minimum else "over by then"
        winner = resolution.winner
        assert winner is not None
        if winner.rule.level != self.rule.level:
            # A policy is a "group" one where it names no store, session id, agent or label.
            return f"{LEVELS[winner.rule.level.label]} go before {LEVELS[self.rule.level.label]}"
        if self.claim.at is None:
            return "of policies alike, the one that deletes decides"
        return "of policies alike, the earliest decides" if later(self.claim, winner) else "says the same"


LEVELS = {
    "explicit": "policies that name a store, a session id, an agent or a label",
    "group": "policies about groups",
    "default": "the default policy",
}


def later(claim: Claim, winner: Claim) -> bool:
    return instant(claim.at) > instant(winner.at)


def length_in_words(rule: Rule) -> str:
    return f"{rule.length} after {clock_in_words(rule)}" if rule.length else ""


def clock_in_words(rule: Rule) -> str:
    """The clock of a rule, which can be about another target: minimums of sessions count for their items."""
    return target_named(rule.target).clocks[rule.clock]


# --- sessions and memories --------------------------------------------------------------------------------------------


def explain_session(record: SessionRecord) -> list[Explained]:
    """The session as a whole, and its oldest items if a policy is about them. Four queries at most."""
    rules, holds = rules_in_force(), holds_on(record.pk, record.subject_id, record.labels)
    whole = explain(record, "sessions", "this session", rules, holds)
    items = explain(record, "items", "its oldest items", rules, holds)
    has_own = items.winner or any(loser.rule.target == "items" for loser in items.losers)
    found = [whole, items] if has_own else [whole]
    return [replace(each, remark=remark_on(record, each)) for each in found]


def explain_memory(memory: Memory) -> Explained:
    """The memory, or the proposal. Five queries at most."""
    is_proposal = memory.status == Memory.Status.PROPOSED
    target, noun = ("proposals", "this proposal") if is_proposal else ("memories", "this memory")
    return explain(memory, target, noun, rules_in_force(), holds_on_memory(memory))


def explain(row: Any, target: str, noun: str, rules: Iterable[Rule], holds: Sequence[int]) -> Explained:
    resolution = resolve(target_named(target).facts(row, holds), rules)
    is_due = resolution.due_at is not None and resolution.due_at <= now()
    return Explained(noun, resolution, is_due)


def remark_on(record: SessionRecord, explained: Explained) -> str:
    """Why a run leaves a session whose time is over: a sentence, or empty. No query."""
    if explained.winner is None or explained.resolution.due_at is None:
        return ""
    rule, capabilities = explained.winner.rule, backend_for(record.store).capabilities
    if rule.target == "sessions" and Capability.ERASE_SESSIONS not in capabilities:
        return KeptReason.SENTENCES[KeptReason.CANNOT_ERASE]
    if rule.target == "items" and needed(rule) not in capabilities:
        return KeptReason.SENTENCES[KeptReason.CANNOT_REWRITE]
    if explained.is_due and record.last_activity_at > now() - LIVE:
        return "It was active within the last hour. A session in use stays."
    return ""


def holds_on_memory(memory: Memory) -> list[int]:
    """Numbers of the holds in force on its subject, and on the sessions that it was learned from. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memadmin_holds_on(NULL, %s, '{}') UNION SELECT number"
            " FROM memories_app_evidence AS e JOIN sessions_app_sessionrecord AS r ON r.id = e.record_id,"
            " memadmin_holds_on(r.id, r.subject_id, r.labels) AS number WHERE e.memory_id = %s ORDER BY 1",
            [memory.subject_id, memory.pk],
        )
        return [number for (number,) in cursor.fetchall()]


# --- subjects ---------------------------------------------------------------------------------------------------------


@dataclass
class RetentionTotals:
    """Numbers of the sessions of a subject, or of its memories, by what happens to them."""

    unit: str
    total: int
    """At most one more than MOST_COUNTED; then the others are of the MOST_COUNTED oldest."""
    dated: int = 0
    due: int = 0
    """Number of those with a date that the next run takes."""
    next_at: datetime | None = None
    """The earliest date that is not over."""
    held: int = 0
    kept: int = 0
    """Number of those that no policy ever takes."""
    due_by: set[str] = field(default_factory=set)
    """Names of the policies that the next run carries out on some of them."""

    @property
    def is_capped(self) -> bool:
        return self.total > MOST_COUNTED

    def add(self, resolution: Resolution, at: datetime) -> None:
        if resolution.holds:
            self.held += 1
        elif resolution.due_at is None:
            self.kept += 1
        else:
            self.dated += 1
            if resolution.due_at <= at:
                self.due += 1
                self.due_by.add(resolution.winner.rule.name if resolution.winner else "")
            elif self.next_at is None or resolution.due_at < self.next_at:
                self.next_at = resolution.due_at


def explain_subject(subject: Subject) -> list[RetentionTotals]:
    """Numbers of its sessions and its memories, without those of which it has none. Seven queries, however many."""
    about = Q(subject__in=subject.group_ids())
    return explain_rows(about, about)


def explain_rows(sessions: Q, memories: Q) -> list[RetentionTotals]:
    """Numbers of the sessions and the memories that meet these conditions, without a target that has none. Six queries,
    however many.
    """
    rules, at = rules_in_force(), now()
    first_alias = Prefetch("subject__aliases", SubjectAlias.objects.filter(is_primary=True))
    of_sessions, of_memories = target_named("sessions"), target_named("memories")
    records = with_hold(of_sessions, sessions).select_related("store").order_by("last_activity_at", "pk")
    learned = with_hold(of_memories, memories).annotate(last_recalled_at=Subquery(LAST_RECALL))
    found = []
    for target, rows in (
        (of_sessions, records),
        (of_memories, learned.defer("embedding", "words").order_by("proposed_at", "pk")),
    ):
        totals = RetentionTotals(target.unit, count_up_to(rows, MOST_COUNTED))
        for row in rows.select_related("subject").prefetch_related(first_alias)[:MOST_COUNTED]:
            # Which holds they are is on the panel of holds.
            totals.add(resolve(target.facts(row, (1,) if row.is_held else ()), rules), at)
        found.append(totals)
    return [totals for totals in found if totals.total]


def with_hold(target: RetentionTarget, condition: Q) -> QuerySet[Any]:
    """Rows of a target that meet a condition, each with `is_held`."""
    is_held = ExpressionWrapper(target.held(), output_field=BooleanField())
    found: QuerySet[Any] = target.rows().filter(condition).annotate(is_held=is_held)
    return found
