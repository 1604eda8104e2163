"""What the pages of policies show: policies by strength, versions, and previews beside today's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.timezone import now

from memadmin.retention.models import LegalHold, PolicyVersion, RetentionPolicy
from memadmin.retention.policies import preview as previews
from memadmin.retention.policies.comparing import LABELS, Difference, differences, lines
from memadmin.retention.policies.figures import bytes_of_rows, bytes_of_sessions, item_figures
from memadmin.retention.policies.rules import SCOPE, Action, Level, Rule
from memadmin.retention.targets.base import PlaceCount, target_named
from memadmin.retention.targets.due_rows import DueRows
from sessions_app.models import SessionRecord

# --- words ------------------------------------------------------------------------------------------------------------

PHRASES = {
    "store": "in {}",
    "session_pattern": "with IDs like {}",
    "agent": "of the agent {}",
    "label": "labelled “{}”",
    "subject_kind": "of a {}",
    "kind": "of the kind {}",
    "status": "with the status {}",
}


def scope_words(rule: Rule) -> str:
    """What a rule is about: "sessions in support-main, labelled “dispute”"."""
    target = target_named(rule.target)
    words = []
    for name in SCOPE:
        value = rule.scope.get(name)
        if name == "is_encrypted" and value is not None:
            words.append("encrypted" if value else "not encrypted")
        elif value:
            label = dict(target.choices.get(name, ())).get(str(value), value)
            words.append(PHRASES[name].format(label))
    return ", ".join([target.title.lower(), *words]) if words else target.title.lower()


def clock_words(rule: Rule) -> str:
    return f"since {target_named(rule.target).clocks.get(rule.clock, rule.clock)}"


def length_words(rule: Rule) -> str:
    """What happens when: "30 days", "redact after 30 days", "kept"."""
    if rule.action == Action.KEEP or rule.length is None:
        return "kept"
    verb = {Action.DELETE: "", Action.REVALIDATE: "re-validate after "}.get(rule.action, f"{rule.action.label} after ")
    return f"{verb}{rule.length}"


def minimum_words(rule: Rule) -> str:
    return f"{rule.minimum}" if rule.minimum else "no minimum"


def facts(rule: Rule) -> list[tuple[str, str]]:
    """What a rule says, as labels and values of a policy's page."""
    target = target_named(rule.target)
    shown = {"target": target.title, "clock": target.clocks.get(rule.clock, rule.clock)}
    said = [(LABELS[name], shown.get(name, value)) for name, value in lines(rule).items()]
    return [*said, ("Level", level_words(rule))]


def level_words(rule: Rule) -> str:
    return rule.level.label if rule.decides else "legal minimum"


def unit_of(version: PolicyVersion) -> str:
    return target_named(version.target).unit


# --- the list ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rung:
    """One policy at one level; one with a legal minimum and a length is at two."""

    rule: Rule
    about: str
    length: str
    state: str = ""
    """What is about to change: "→ 180 days, awaiting second person"."""
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


def ladder(in_force: Sequence[PolicyVersion], changes: Sequence[PolicyVersion], first: int = 2) -> list[StrengthLevel]:
    """The policies by level, strongest first, with changes that are not in force yet. Ranks begin at `first`."""
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
    stages = []
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
    """What becomes of a policy, in a few words."""
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


def until(at: datetime | None) -> str:
    """Time until an instant: "in 23 hours"."""
    minutes = max(round((at - now()).total_seconds() / 60), 1) if at else 1
    if minutes < 120:
        return f"in {minutes} minute{'' if minutes == 1 else 's'}"
    return f"in {minutes // 60} hours"


def hours(length: timedelta) -> str:
    """Whole hours: "24 hours"."""
    count = length // timedelta(hours=1)
    return f"{count} hour{'' if count == 1 else 's'}"


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


# --- the simulator ----------------------------------------------------------------------------------------------------


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
    """What happens where both are about a row."""
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


@dataclass(frozen=True, slots=True)
class Sample:
    """A row that would go: our own id, the instant of its clock, and its page if it has one. No content."""

    id: str
    at: datetime
    url: str


@dataclass(frozen=True)
class Simulation:
    """What a draft would take now, beside what the policy in force takes."""

    rule: Rule
    title: str
    counted: previews.PolicyPreview
    current: previews.PolicyPreview | None
    """Of the policy as it is; None for a new one, and for one that takes nothing."""
    holds: Sequence[LegalHold] = ()
    buckets: Sequence[previews.Bucket] = ()
    samples: Sequence[Sample] = ()
    rivals: Sequence[Rival] = ()
    byte_count: int | None = None
    """Of what would go; None if it is not known."""
    is_estimate: bool = False
    """Whether the bytes are known from statistics alone."""
    bytes_of: str = ""
    """Of which part of what would go, if not of all."""
    is_partial: bool = False
    """Whether figures about items are those of the oldest sessions alone."""
    is_end: bool = False
    notices: Sequence[str] = field(default_factory=list)

    @property
    def unit(self) -> str:
        return target_named(self.rule.target).unit

    @property
    def aged_unit(self) -> str:
        """What the histogram counts."""
        return "items" if self.rule.target == "items" else self.unit

    @property
    def current_unit(self) -> str:
        return target_named(self.current.rule.target).unit if self.current else self.unit

    @property
    def remarks(self) -> str:
        return target_named(self.rule.target).remarks

    @property
    def clock(self) -> str:
        return target_named(self.rule.target).clocks[self.rule.clock]

    @property
    def total(self) -> int:
        return self.counted.rows + self.counted.uncovered

    @property
    def has_items(self) -> bool:
        return self.counted.items is not None

    @property
    def places(self) -> Sequence[PlaceCount]:
        return self.counted.places

    @property
    def oldest(self) -> datetime | None:
        return min((place.oldest for place in self.places if place.oldest), default=None)

    @property
    def newest(self) -> datetime | None:
        return max((place.newest for place in self.places if place.newest), default=None)

    @property
    def chart(self) -> dict[str, Any]:
        """For the drawing: the same figures as in the table."""
        labels = [str(bucket.days) for bucket in self.buckets]
        return {
            "labels": [*labels[:-1], f"{labels[-1]}+"],
            "series": [
                {"label": "Kept", "colour": "secondary", "data": [each.kept for each in self.buckets]},
                {"label": "Would go", "colour": "red", "data": [each.taken for each in self.buckets]},
                {"label": "Held", "colour": "purple", "data": [each.held for each in self.buckets]},
            ],
        }


def simulate(draft: PolicyVersion, rules: Sequence[Rule]) -> Simulation:
    """The simulation of a version that is not in force, by the rules in force. Some queries for each store and rule."""
    rule = draft.rule()
    old = next((each for each in rules if each.policy == rule.policy), None)
    after = previews.without(rules, rule.policy) if draft.is_end else previews.with_draft(rules, rule)
    uncovered = previews.uncovered_by(rule, rules, after)
    counted = previews.PolicyPreview(rule, ()) if draft.is_end else previews.preview(rule, after)
    simulation = Simulation(
        rule=rule,
        title=draft.policy.name,
        counted=replace(counted, uncovered=uncovered),
        current=previews.preview(old, rules) if old and old.length else None,
        rivals=then_deciding(rule, rules) if draft.is_end else rivals(rule, rules),
        is_end=draft.is_end,
    )
    if draft.is_end or not rule.length:
        return simulation
    simulation = replace(simulation, holds=holds_hit(rule, after) if counted.held else ())
    if rule.target == "items":
        # Its rows are sessions that can have such items; which of them do, only their items say.
        found = item_figures(counted, after)
        return replace(
            simulation,
            buckets=found.buckets,
            samples=[Sample(str(record.pk), at, record.get_absolute_url()) for at, record in found.samples],
            byte_count=found.byte_count,
            bytes_of="" if found.is_complete else "in the oldest sessions",
            is_partial=not found.is_complete,
        )
    is_of_sessions = rule.target == "sessions"
    byte_count, is_all = bytes_of_sessions(counted) if is_of_sessions else (bytes_of_rows(rule, after), True)
    return replace(
        simulation,
        byte_count=byte_count,
        is_estimate=is_of_sessions,
        bytes_of="" if is_all else "in this database",
        buckets=previews.histogram(rule, after),
        samples=[sample_of(row) for row in previews.samples(rule, after)],
    )


def sample_of(row: Any) -> Sample:
    has_page = hasattr(row, "get_absolute_url")
    return Sample(str(row.pk), row.clock_at, row.get_absolute_url() if has_page else "")


MOST_HELD = 200


def holds_hit(rule: Rule, rules: Sequence[Rule]) -> list[LegalHold]:
    """Holds on the first MOST_HELD rows that would go without them, by number. Two queries."""
    rows = list(DueRows(rules).held(rule).order_by("pk")[:MOST_HELD])
    records = [row.pk if isinstance(row, SessionRecord) else getattr(row, "record_id", None) for row in rows]
    subjects = [getattr(row, "subject_id", None) for row in rows]
    return list(LegalHold.objects.covering(list(filter(None, records)), list(filter(None, subjects))))
