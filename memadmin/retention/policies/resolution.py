"""Resolution: which rule decides about one session, memory or other row, when it goes, and why. Pure and total.

Hold > legal minimum > explicit > group > default. Within a level the earliest deletion wins, among legal minimums the
latest end. So retain beats delete, and explicit beats implicit, as in the principles of retention of Microsoft Purview.
The query that picks rows (`due_rows`) says the same in SQL; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memadmin.retention.policies.rules import Action, Facts, Level, Rule, matches


@dataclass(frozen=True, slots=True)
class Claim:
    """Result of one matching rule for the row."""

    rule: Rule
    at: datetime | None
    """When its action is due, or its legal minimum over; None: never."""
    is_minimum: bool = False


@dataclass(frozen=True, slots=True)
class Resolution:
    """Outcome for the row, with its reason."""

    action: Action
    due_at: datetime | None
    """When it happens; None: never, as things are."""
    winner: Claim | None
    """The rule that decides; None if no policy is about it."""
    minimum: Claim | None
    """The legal minimum that postpones it; None if none does."""
    holds: Sequence[int]
    """Holds that prevent it as long as they are in force."""
    losers: Sequence[Claim]
    """The other matching rules, strongest first."""

    def is_due(self, at: datetime) -> bool:
        """Whether it happens at this instant."""
        return not self.holds and self.due_at is not None and self.due_at <= at


def resolve(facts: Facts, rules: Iterable[Rule]) -> Resolution:
    """The resolution for one row under these rules, in whatever order they come. Linear in the rules."""
    matching = sorted((rule for rule in rules if matches(rule, facts)), key=Rule.order)
    claims = [Claim(rule, due_at(rule, facts)) for rule in matching if rule.decides and rule.target == facts.target]
    minimums = [
        Claim(rule, rule.minimum.after(facts.clocks[rule.clock]), is_minimum=True) for rule in matching if rule.minimum
    ]
    winner = min(claims, key=strength, default=None)
    minimum = max(minimums, key=lambda claim: instant(claim.at), default=None)
    due = winner.at if winner else None
    if minimum and due is not None and instant(minimum.at) > due:
        due = minimum.at
    else:
        minimum = None
    return Resolution(
        action=winner.rule.action if winner else Action.KEEP,
        due_at=due,
        winner=winner,
        minimum=minimum,
        holds=tuple(facts.holds),
        losers=[claim for claim in sorted([*claims, *minimums], key=strength) if claim not in (winner, minimum)],
    )


def due_at(rule: Rule, facts: Facts) -> datetime | None:
    return None if rule.length is None else rule.length.after(facts.clocks[rule.clock])


def strength(claim: Claim) -> tuple[Level, datetime, tuple[int, str, str]]:
    """Sorts claims, the strongest first: by level, then the earliest. A rule that keeps is the last of its level."""
    return (claim.rule.level, instant(claim.at), claim.rule.order())


def instant(at: datetime | None) -> datetime:
    """For comparison: never is after everything."""
    return NEVER if at is None else at


NEVER = datetime.max.replace(tzinfo=UTC)
