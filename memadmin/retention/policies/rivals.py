"""Other policies about the same data as a draft, and which of both decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memadmin.retention.policies.rules import Rule
from memadmin.retention.policies.wording import length_words, level_words, minimum_words


@dataclass(frozen=True, slots=True)
class Rival:
    """Another policy about the same data, and which of the two decides."""

    rule: Rule
    words: str
    wins: bool
    """Whether it is stronger than the draft."""


def rivals(draft: Rule, rules: Iterable[Rule]) -> list[Rival]:
    """Policies that can be about the same rows as a draft, strongest first, with the outcome where both match."""
    found = [
        outcome(draft, rule)
        for rule in sorted(rules, key=Rule.order)
        if rule.policy != draft.policy and rule.target == draft.target and may_meet(draft, rule)
    ]
    return sorted(found, key=lambda rival: not rival.wins)


def then_deciding(ended: Rule, rules: Iterable[Rule]) -> list[Rival]:
    """Policies that can be about the rows of one that ends, strongest first, with what they say."""
    return [
        Rival(rule, f"{level_words(rule)}, {length_words(rule) if rule.decides else minimum_words(rule)}.", wins=True)
        for rule in sorted(rules, key=Rule.order)
        if rule.policy != ended.policy and rule.target == ended.target and may_meet(ended, rule)
    ]


ONE_VALUE = ("store", "subject_kind", "is_encrypted", "kind", "status")
"""Fields of which a row has exactly one value."""


def may_meet(one: Rule, other: Rule) -> bool:
    """Whether a row can be in the scope of both, as far as the fields tell: patterns may overlap."""
    return not any(
        name in one.scope and name in other.scope and one.scope[name] != other.scope[name] for name in ONE_VALUE
    )


def outcome(draft: Rule, other: Rule) -> Rival:
    """Outcome for a row in the scope of both."""
    if not other.decides:
        return Rival(other, f"Its legal minimum of {other.minimum} counts: nothing goes before.", wins=True)
    also = f" Its legal minimum of {other.minimum} counts in any case." if other.minimum else ""
    if not draft.decides:
        return Rival(other, f"It decides; this policy only adds a legal minimum of {draft.minimum}.{also}", wins=True)
    if draft.level != other.level:
        wins = other.level < draft.level
        first, second = (other, draft) if wins else (draft, other)
        words = f"{'It' if wins else 'This policy'} wins: {first.level.label} is stronger than {second.level.label}."
        return Rival(other, words + also, wins)
    if other.length is None and draft.length is None:
        return Rival(other, f"Both keep.{also}", wins=False)
    if other.length is None or draft.length is None:
        who = "This policy" if draft.length else "It"
        words = f"They contradict each other. {who} wins: on the same level, deletion wins over keeping."
        return Rival(other, words + also, wins=draft.length is None)
    if draft.clock == other.clock and draft.length.is_surely_at_least(other.length) and draft.length != other.length:
        return Rival(other, f"It wins: on the same level the earlier one does, after {other.length}.{also}", wins=True)
    if draft.clock == other.clock and other.length.is_surely_at_least(draft.length) and draft.length != other.length:
        words = f"This policy wins: on the same level the earlier one does, after {draft.length}."
        return Rival(other, words + also, wins=False)
    return Rival(other, f"On the same level: whichever is due first wins, for each of the data.{also}", wins=False)
