"""Coverage of holds: numbers of what they keep, counted up to a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import IntegerField, Q, QuerySet, Value

from memadmin.counting import COUNT_CAP, capped, counted, noun_for
from memadmin.retention.holds.extensions import effects_of
from memadmin.retention.models import LegalHold
from memadmin.retention.policies.explaining import MOST_COUNTED, RetentionTotals, explain_rows
from memories_app.models import Evidence, Memory
from sessions_app.models import SessionRecord, Subject

MOST_IN_LISTS = 100
"""Sessions of one hold that a list counts: a page has 50 holds."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Numbers of sessions and memories that a hold keeps now, at most COUNT_CAP + 1 each."""

    sessions: int
    memories: int
    due: Sequence[RetentionTotals] = ()
    """Sessions and memories that the next retention run would take, among the MOST_COUNTED oldest."""
    effects: Sequence[str] = ()
    """Sentences about other open work that the hold affects."""

    @property
    def kept(self) -> str:
        """ "9 sessions and 1,000+ memories"."""
        # Memories are looked up for as many sessions as are counted.
        memories = f"{COUNT_CAP:,}+" if self.sessions > COUNT_CAP < self.memories else capped(self.memories)
        at_least = "at least " if self.sessions > COUNT_CAP >= self.memories else ""
        return (
            f"{capped(self.sessions)} {noun_for(self.sessions, 'sessions')} and"
            f" {at_least}{memories} {noun_for(self.memories, 'memories')}"
        )

    @property
    def retention(self) -> str:
        """A sentence about the next retention run; empty if it takes none of the counted rows."""
        if not self.due:
            return ""
        numbers = " and ".join(counted(totals.due, totals.unit) for totals in self.due)
        policies = ", ".join(sorted({name for totals in self.due for name in totals.due_by}))
        among = f" among the {MOST_COUNTED} oldest" if any(totals.is_capped for totals in self.due) else ""
        return f"The next retention run skips {numbers}{among}: {policies}."


def coverage_of(hold: LegalHold) -> Coverage:
    """The coverage of a hold now. Three queries, and one for each level of merged subjects."""
    sessions = first_sessions(hold)
    return Coverage(len(sessions), len(first_memories(hold, sessions)))


def preview_of(hold: LegalHold) -> Coverage:
    """As `coverage_of` for a hold that is not placed yet, with what it would change. Some twelve queries."""
    sessions = first_sessions(hold)
    memories = first_memories(hold, sessions)
    rows = explain_rows(Q(pk__in=sessions), Q(pk__in=memories))
    return Coverage(
        len(sessions), len(memories), due=[totals for totals in rows if totals.due], effects=effects_of(hold)
    )


def first_sessions(hold: LegalHold) -> list[UUID]:
    """Ids of covered sessions, at most COUNT_CAP + 1."""
    return list(hold.sessions().order_by().values_list("pk", flat=True)[: COUNT_CAP + 1])


def first_memories(hold: LegalHold, sessions: Sequence[UUID]) -> list[UUID]:
    """Ids of memories about the hold's subject or with evidence from these sessions, at most COUNT_CAP + 1.

    Two queries, each with an index: with both conditions in one, PostgreSQL reads all memories.
    """
    learned = Evidence.objects.filter(record_id__in=sessions).order_by().values_list("memory_id", flat=True).distinct()
    found = dict.fromkeys(learned[: COUNT_CAP + 1])
    if hold.subject is not None:
        about = Memory.objects.about(hold.subject).order_by()
        found |= dict.fromkeys(about.values_list("pk", flat=True)[: COUNT_CAP + 1])
    return list(found)[: COUNT_CAP + 1]


def with_session_counts(holds: Sequence[LegalHold]) -> Sequence[LegalHold]:
    """The holds; those in force with `session_count`, a capped text. Two queries, however many holds."""
    in_force = [hold for hold in holds if not hold.is_released]
    groups = Subject.objects.merged_groups({hold.subject_id for hold in in_force if hold.subject_id})
    found = [
        numbered(number, hold.sessions_of(groups[hold.subject_id] if hold.subject_id else ()))
        for number, hold in enumerate(in_force)
    ]
    counts: Counter[int] = Counter()
    if found:
        # One row for each session: Django has no count of a limited part of a union.
        counts.update(number for (number,) in found[0].union(*found[1:], all=True))
    for number, hold in enumerate(in_force):
        hold.session_count = capped(counts[number], MOST_IN_LISTS)
        hold.session_noun = noun_for(counts[number], "sessions")
    return holds


def numbered(number: int, sessions: QuerySet[SessionRecord]) -> QuerySet[SessionRecord, tuple[int]]:
    found = sessions.annotate(hold_number=Value(number, IntegerField())).order_by()
    return found.values_list("hold_number")[: MOST_IN_LISTS + 1]
