"""The query builder: rows of a target that a rule takes at an instant. Preview and run use it, so they see the same.

It says in SQL what `policies.resolution` says in Python. All instants are computed by the database, in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Case, Count, DateTimeField, Exists, Expression, Func, Max, Min, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.db.models.lookups import Exact, LessThan, LessThanOrEqual

from memadmin.retention.models import LegalHold, PolicyVersion, UnfinishedExpiry
from memadmin.retention.policies.lengths import Length
from memadmin.retention.policies.rules import Action, Rule, has_minimum_for
from memadmin.retention.targets.base import ALWAYS, PlaceCount, RetentionTarget, after, target_named

NEVER = ~ALWAYS

TAKEN = Q(is_held=False, is_live=False)
"""Condition of the rows that go, among those that are due; see `DueRows._with_reasons`."""

ItemCounting = Callable[..., dict[str, Any]]
"""Aggregates of session records, with the number of all items of some of them: see `Backend.with_items`."""

COUNTED_AT_ONCE = 200_000
"""Sessions of which one statement counts the items: it has an array of their ids."""

DAYS_OF_DIFFERENCE = 4
"""Largest error, in days, of computing the start of some months by subtracting them from their end."""


def whether(condition: Q | None) -> Expression:
    """True where a condition holds, false elsewhere; None stands for a condition that never holds."""
    no = Value(False)
    return no if condition is None else Case(When(condition, then=Value(True)), default=no)


def database_time() -> datetime:
    """The database's time, in UTC; within a transaction that of its beginning."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        at: datetime = cursor.fetchone()[0]
        return at.astimezone(UTC)


class Later(Func):
    """An instant and a length after it."""

    template = (
        "(((%(expressions)s) AT TIME ZONE 'UTC' + make_interval(months => %(months)s, days => %(days)s))"
        " AT TIME ZONE 'UTC')"
    )
    output_field = DateTimeField()

    def __init__(self, expression: Any, length: Length) -> None:
        super().__init__(expression, months=length.months, days=length.days)


class Cutoff(Func):
    """An instant before which everything is that ends by `at`, and a few days' more: what an index can find."""

    template = (
        "(((%(expressions)s) AT TIME ZONE 'UTC' - make_interval(months => %(months)s, days => %(days)s))"
        " AT TIME ZONE 'UTC')"
    )
    output_field = DateTimeField()

    def __init__(self, at: Any, length: Length) -> None:
        super().__init__(at, months=length.months, days=length.days - (DAYS_OF_DIFFERENCE if length.months else 0))


@dataclass(frozen=True)
class DueRows:
    """Queries for the rows that each of these rules takes, at an instant of the caller's or at the database's time."""

    rules: Sequence[Rule]
    at: datetime | None = None
    has_holds: bool | None = None
    """Whether any hold is in force; None: each query asks for it."""
    is_any_begun: bool = True
    """Whether some session was deleted in part, under whatever version."""

    @classmethod
    def now(cls, at: datetime | None = None) -> DueRows:
        """By the policies in force now, at an instant or at the database's time. One query."""
        return cls([version.rule() for version in PolicyVersion.objects.in_force()], at)

    @classmethod
    def of_chunk(cls, at: datetime, known: dict[UUID, Rule]) -> DueRows:
        """By the policies and holds of now, at an instant, or at the database's time if its clock has stepped back
        behind that. For a transaction in which no further hold can be placed.

        `known` are rules by version, which never change; those that it lacks are added. One query, if it lacks none.
        """
        versions = list(
            PolicyVersion.objects.in_force()
            .order_by()
            .values_list(
                "pk",
                Now(),
                Exists(LegalHold.objects.filter(released_at__isnull=True)),
                Exists(UnfinishedExpiry.objects.all()),
            )
        )
        if missing := {key for key, *_ in versions} - set(known):
            new = PolicyVersion.objects.filter(pk__in=missing).select_related("policy")
            known.update({version.pk: version.rule() for version in new})
        return cls(
            [known[key] for key, *_ in versions],
            min([at, *(read_at for _, read_at, *_ in versions)]),
            any(has_holds for *_, has_holds, _ in versions),
            all(is_any_begun for *_, is_any_begun in versions),
        )

    @property
    def instant(self) -> Expression | Value:
        return Now() if self.at is None else Value(self.at, output_field=DateTimeField())

    def rule_of(self, version: Any) -> Rule | None:
        """The rule of a version if it is among them."""
        return next((rule for rule in self.rules if rule.version == version), None)

    def due(self, rule: Rule) -> QuerySet[Any]:
        """Rows that the rule takes: due under it, of no stronger rule, past every legal minimum, neither held nor
        in use. One query, for whether there is any hold: without one none is looked for.
        """
        rows = self.decided(rule)
        for kept in (self._held(rule), self._live(rule)):
            rows = rows if kept is None else rows.exclude(kept)
        return rows

    def held(self, rule: Rule) -> QuerySet[Any]:
        """Rows that it would take, and that a hold keeps. One query, for whether there is any hold."""
        held = self._held(rule)
        return self.decided(rule).none() if held is None else self.decided(rule).filter(held)

    def count(self, rule: Rule, place: str) -> PlaceCount:
        """Numbers of the rows at a place that the rule takes, that holds keep, and that are in use.

        Two queries: one for whether there is any hold, and one that reads the rows once.
        """
        target = target_named(rule.target)
        clock = target.clock(rule.clock)
        figures: dict[str, Any] = {"count": Count("pk"), "oldest": Min(clock), "newest": Max(clock)}
        if target.subject:
            figures["subjects"] = Count(target.subject, distinct=True)
        # In groups, so that each condition is computed once for a row: that of holds looks into several tables.
        groups = self._with_reasons(rule, place).order_by().values("is_held", "is_live").annotate(**figures)
        held = live = 0
        taken: dict[str, Any] = {"count": 0}
        for group in groups:
            is_held, is_live = group.pop("is_held"), group.pop("is_live")
            held += group["count"] * is_held
            live += group["count"] * is_live
            if not (is_held or is_live):
                taken = group
        return PlaceCount(place, rows=taken.pop("count"), held=held, live=live, **taken)

    def count_with_items(self, rule: Rule, place: str, column: str, with_items: ItemCounting) -> PlaceCount:
        """`count` of sessions, whose clock is `column`, with all items of those that the rule takes.

        Two queries; where there are COUNTED_AT_ONCE sessions, three more for each so many, and one.
        """
        rows = self._with_reasons(rule, place).order_by()
        figures: dict[str, Any] = {
            "read": Count("pk"),
            "rows": Count("pk", filter=TAKEN),
            "held": Count("pk", filter=Q(is_held=True)),
            "live": Count("pk", filter=Q(is_live=True)),
            "subjects": Count("subject", filter=TAKEN, distinct=True),
            "oldest": Min(column, filter=TAKEN),
            "newest": Max(column, filter=TAKEN),
        }
        # Without an order, which takes a fifth of the time: most places have no second page.
        found = [with_items(rows[:COUNTED_AT_ONCE], TAKEN, **figures)]
        if found[0]["read"] == COUNTED_AT_ONCE:
            found = []
            page = rows = rows.order_by(column, "pk")
            while not found or found[-1]["read"] == COUNTED_AT_ONCE:
                found.append(with_items(page[:COUNTED_AT_ONCE], TAKEN, **figures))
                for at, key in page.values_list(column, "pk")[COUNTED_AT_ONCE - 1 : COUNTED_AT_ONCE]:
                    page = rows.filter(after(column, {"at": at, "id": key}))
        subjects = found[0]["subjects"]
        if len(found) > 1:
            # One subject can have sessions on several pages.
            subjects = rows.filter(TAKEN).aggregate(count=Count("subject", distinct=True))["count"]
        return PlaceCount(
            place,
            **{name: sum(each[name] for each in found) for name in ("rows", "items", "held", "live")},
            subjects=subjects,
            oldest=min((each["oldest"] for each in found if each["oldest"]), default=None),
            newest=max((each["newest"] for each in found if each["newest"]), default=None),
        )

    def _with_reasons(self, rule: Rule, place: str) -> QuerySet[Any]:
        """Rows at a place that are due under the rule, with whether they are held, and in use."""
        reasons = {"is_held": whether(self._held(rule)), "is_live": whether(self._live(rule))}
        rows: QuerySet[Any] = target_named(rule.target).at_place(self.decided(rule), place).annotate(**reasons)
        return rows

    def outcome(self, rule: Rule) -> Expression:
        """Outcome of a row in the rule's scope: "taken", "held" if only a hold keeps it, or "kept"."""
        decided = self._is_decided(rule)
        if decided is None:
            return Value("kept")
        cases = [When(~decided, then=Value("kept"))]
        for kept, name in ((self._held(rule), "held"), (self._live(rule), "kept")):
            if kept is not None:
                cases.append(When(kept, then=Value(name)))
        return Case(*cases, default=Value("taken"))

    def decided(self, rule: Rule) -> QuerySet[Any]:
        """Rows that are due under this rule and under no other, whether held, in use or not."""
        rows, decided = target_named(rule.target).rows(), self._is_decided(rule)
        return rows.none() if decided is None else rows.filter(decided)

    def _is_decided(self, rule: Rule) -> Q | None:
        """Condition of `decided`; None if the rule takes nothing."""
        target = target_named(rule.target)
        if rule.length is None or rule.action == Action.KEEP:
            return None
        condition = target.scope_q(rule) & self._is_over(target, rule, rule.length)
        for other in self.rules:
            if other.version == rule.version:
                continue
            if other.target == rule.target and other.decides:
                condition &= ~target.scope_q(other) | self._is_stronger(target, rule, other)
            if other.minimum and has_minimum_for(other, rule.target):
                minimum = self._is_over(target_named(other.target), other, other.minimum)
                condition &= ~target.scope_q(other) | minimum
        if rule.minimum:
            condition &= self._is_over(target, rule, rule.minimum)
        return condition

    def _held(self, rule: Rule) -> Q | None:
        """Condition of the rows that a hold keeps; None if there is no hold."""
        has_holds = LegalHold.objects.in_force().exists() if self.has_holds is None else self.has_holds
        return target_named(rule.target).held() if has_holds else None

    def _live(self, rule: Rule) -> Q | None:
        return target_named(rule.target).live(self.instant)

    def _is_over(self, target: RetentionTarget, rule: Rule, length: Length) -> Q:
        """Whether the length has ended, from the rule's clock on."""
        clock = target.clock(rule.clock)
        ended = Q(LessThanOrEqual(clock, Cutoff(self.instant, length)))
        return ended & Q(LessThanOrEqual(Later(clock, length), self.instant)) if length.months else ended

    def _is_stronger(self, target: RetentionTarget, rule: Rule, other: Rule) -> Q:
        """Whether `rule` decides where both are about a row."""
        if rule.level != other.level:
            return ALWAYS if rule.level < other.level else NEVER
        if other.length is None:
            return ALWAYS
        assert rule.length is not None
        mine = Later(target.clock(rule.clock), rule.length)
        theirs = Later(target.clock(other.clock), other.length)
        earlier = Q(LessThan(mine, theirs))
        return earlier | Q(Exact(mine, theirs)) if rule.order() < other.order() else earlier
