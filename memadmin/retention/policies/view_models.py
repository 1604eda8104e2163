"""View models of policies: by strength, with their versions, and the counts that versions keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies.comparing import LABELS, Difference, differences, lines
from memadmin.retention.policies.rules import Level, Rule
from memadmin.retention.policies.wording import (
    clock_words,
    length_words,
    level_words,
    minimum_words,
    scope_words,
    unit_of,
    until,
)
from memadmin.retention.targets.base import target_named

# --- the list ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rung:
    """One policy at one level; one with a legal minimum and a length is at two."""

    rule: Rule
    about: str
    length: str
    state: str = ""
    """A pending change: "→ 180 days, awaiting second person"."""
    is_coming: bool = False
    """Whether nothing of the policy is in force yet."""

    @property
    def sort_key(self) -> tuple[timedelta, str]:
        length = self.rule.length
        return (length.shortest if length else timedelta.max, self.rule.name)


@dataclass(frozen=True, slots=True)
class StrengthLevel:
    """A level of strength with its policies."""

    title: str
    rungs: Sequence[Rung]
    first: int
    """Rank of its first policy."""


LEVELS = {
    Level.EXPLICIT: "Explicit: names a store, a session, an agent or a label",
    Level.GROUP: "Group",
    Level.DEFAULT: "Default",
}


def ladder(in_force: Sequence[PolicyVersion], changes: Sequence[PolicyVersion]) -> list[StrengthLevel]:
    """The policies by level, strongest first, with changes that are not in force yet. Rank 1 is that of holds."""
    coming = {change.policy_id: change for change in changes}
    minimums: list[Rung] = []
    by_level: dict[Level, list[Rung]] = {level: [] for level in Level}
    shown = [(version, coming.get(version.policy_id)) for version in in_force]
    new = set(coming) - {version.policy_id for version in in_force}
    for version, change in [*shown, *((coming[policy], coming[policy]) for policy in new)]:
        rule, is_coming = version.rule(), version is change
        about = f"{scope_words(rule)}, {clock_words(rule)}"
        changed = "" if change is None else change_words(version, change)
        if rule.minimum:
            minimums.append(Rung(rule, f"{about}: {rule.reference}", minimum_words(rule), changed, is_coming))
        if rule.decides:
            by_level[rule.level].append(Rung(rule, about, length_words(rule), changed, is_coming))
    stages, first = [], 2
    # The longest first, and those of a length by name.
    minimums.sort(key=lambda rung: rung.rule.name)
    minimums.sort(key=lambda rung: rung.rule.minimum.shortest if rung.rule.minimum else timedelta(), reverse=True)
    levels = [(LEVELS[level], sorted(rungs, key=lambda rung: rung.sort_key)) for level, rungs in by_level.items()]
    for title, rungs in [("Legal minimum: nothing goes before", minimums), *levels]:
        if rungs:
            stages.append(StrengthLevel(title, rungs, first))
            first += len(rungs)
    return stages


def change_words(version: PolicyVersion, change: PolicyVersion) -> str:
    """The change of a policy in a few words."""
    when = "awaiting second person" if change.awaits_approval else f"starts {until(change.starts_at)}"
    if version is change:
        return when
    if change.is_end:
        return f"→ ends, {when}"
    old, new = version.rule(), change.rule()
    for words in (length_words, minimum_words, scope_words, clock_words):
        if words(old) != words(new):
            return f"→ {words(new)}, {when}"
    return f"changes, {when}"


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that is not in force yet, with the counts of the moment at which it was proposed."""

    change: PolicyVersion
    differences: Sequence[Difference]
    stored: StoredPreview | None
    unit: str

    @classmethod
    def of(cls, change: PolicyVersion, current: PolicyVersion | None) -> PendingChange:
        new = None if change.is_end else change.rule()
        found = differences(current.rule() if current else None, new)
        return cls(change, found, stored_preview(change), unit_of(change))


def out_of_force(in_force: Sequence[PolicyVersion], changes: Sequence[PolicyVersion]) -> list[RetentionPolicy]:
    """Policies that ended or never took effect, by name, at most MOST_OUT_OF_FORCE. One query."""
    shown = {version.policy_id for version in (*in_force, *changes)}
    return list(RetentionPolicy.objects.exclude(pk__in=shown).order_by("name")[:MOST_OUT_OF_FORCE])


MOST_OUT_OF_FORCE = 50


# --- one policy -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One version in a policy's history, with what it changed."""

    version: PolicyVersion
    differences: Sequence[Difference]
    is_in_force: bool


def history(versions: Sequence[PolicyVersion], current: PolicyVersion | None) -> list[VersionLine]:
    """The versions of a policy, the newest first; each compared with the one that was in force before it."""
    lines: list[VersionLine] = []
    before: Rule | None = None
    for version in sorted(versions, key=lambda each: each.number):
        new = None if version.is_end else version.rule()
        lines.append(VersionLine(version, differences(before, new), version == current))
        if version.starts_at and not version.closed_at:
            before = new
    return lines[::-1]


@dataclass(frozen=True, slots=True)
class StoredPreview:
    """Counts that a version keeps of the moment at which it was proposed."""

    rows: int
    items: int | None
    held: int
    live: int
    uncovered: int
    places: Sequence[Mapping[str, Any]]


def stored_preview(version: PolicyVersion) -> StoredPreview | None:
    """None for versions that needed no approval."""
    counts = version.preview
    if "places" not in counts:
        return None
    places = [
        {**place, "oldest": place.get("oldest") and datetime.fromisoformat(place["oldest"])}
        for place in counts["places"]
    ]
    return StoredPreview(
        rows=counts["rows"],
        items=counts.get("items"),
        held=counts.get("held", 0),
        live=counts.get("live", 0),
        uncovered=counts.get("uncovered", 0),
        places=places,
    )


def facts(rule: Rule) -> list[tuple[str, str]]:
    """Labels and values of a rule for the page of its policy."""
    target = target_named(rule.target)
    shown = {"target": target.title, "clock": target.clocks.get(rule.clock, rule.clock)}
    said = [(LABELS[name], shown.get(name, value)) for name, value in lines(rule).items()]
    return [*said, ("Level", level_words(rule))]
