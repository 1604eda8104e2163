"""Base of targets: their rows, clocks, scope and actions, and the register to which upper packages add theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import BooleanField, Count, Exists, Expression, F, Func, Min, OuterRef, Q, QuerySet

from memadmin.retention.policies.rules import Action, Facts, Rule
from sessions_app.models import SessionRecord, SubjectAlias

if TYPE_CHECKING:
    from memadmin.retention.models import SweepResult
    from memadmin.retention.targets.due_rows import DueRows
    from memadmin.runs.engine import Lease


@dataclass
class Taken:
    """Result of one chunk. 0 `passed` means that nothing is left to do at this place."""

    passed: int = 0
    """Rows that the chunk is done with, however."""
    taken: int = 0
    items: int = 0
    held: int = 0
    left: dict[str, int] = field(default_factory=dict)
    """Rows that stay for now, by the code of the reason; see `KeptReason`."""
    tables: dict[str, int] = field(default_factory=dict)
    """Rows deleted or changed, by table."""
    cursor: dict[str, Any] = field(default_factory=dict)
    shown: list[Any] = field(default_factory=list)
    """Ids of session records, for the event."""

    def leave(self, code: str, count: int = 1) -> None:
        """Counts rows that stay for now."""
        self.left[code] = self.left.get(code, 0) + count


def added(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Sums by name."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}


def tables_of(deleted: Mapping[str, int]) -> dict[str, int]:
    """Rows by table, of what `QuerySet.delete` returns."""
    return {model.lower().replace(".", "_"): count for model, count in deleted.items() if count}


class CannotSweep(Exception):
    """Nothing can expire at this place now. The sentence has no personal data."""


class KeptReason:
    """Codes of reasons why rows stay for now, and their sentences."""

    ACTIVE = "active"
    BUSY = "busy"
    CANNOT_ERASE = "cannot_erase"
    CANNOT_REWRITE = "cannot_rewrite"
    DETACHED = "detached"
    FILE_KEPT = "file_kept"
    KEPT_WITH_TURN = "kept_with_turn"
    UNREADABLE = "unreadable"

    SENTENCES: ClassVar[Mapping[str, str]] = {
        ACTIVE: "An agent wrote to the session, or it changed, after the run had found it.",
        BUSY: "An agent held the session all the time. The next run includes it.",
        CANNOT_ERASE: "This kind of store cannot delete sessions.",
        CANNOT_REWRITE: "This kind of store cannot change or delete single items.",
        DETACHED: "The store is not attached any more. Attach it again, or delete it.",
        FILE_KEPT: "The file could not be deleted. The next run tries again.",
        KEPT_WITH_TURN: "Expired items stay with their turn, or with the other half of a tool call.",
        UNREADABLE: "Sessions that the store could not read.",
    }


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """What is due at one place, for previews and for the start of a run."""

    place: str
    rows: int = 0
    items: int | None = None
    """Of sessions; None where they were not counted."""
    held: int = 0
    live: int = 0
    subjects: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    problem: str = ""
    """Why it could not be counted, or what the store cannot do: a sentence without personal data."""
    is_complete: bool = True
    """False if only a part of the rows was counted."""


ALWAYS = Q(pk__isnull=False)
"""Condition of every row: Django takes an empty one for none at all where conditions are combined or negated."""


HOLDS = "SELECT {column} FROM retention_legalhold WHERE released_at IS NULL AND {column} IS NOT NULL"


class IsHeldRecord(Func):
    """Whether a hold is on a session itself, by the id of its record."""

    template = f"COALESCE(%(expressions)s IN ({HOLDS.format(column='record_id')}), false)"
    output_field = BooleanField()


class IsHeldSubject(Func):
    """Whether a hold is on a subject, or on one into which it was merged, by its id."""

    template = f"""COALESCE(%(expressions)s IN (
        WITH RECURSIVE held(id) AS (
            {HOLDS.format(column="subject_id")}
            UNION
            SELECT merged.id FROM held JOIN sessions_app_subject AS merged ON merged.merged_into_id = held.id
        )
        SELECT id FROM held
    ), false)"""
    output_field = BooleanField()


class HasHeldLabel(Func):
    """Whether a hold is on one of a session's labels."""

    template = f"COALESCE(%(expressions)s::text[] && ARRAY({HOLDS.format(column='label')})::text[], false)"
    output_field = BooleanField()


def held_session_q() -> Q:
    """Condition of records of sessions under a hold, as `memadmin_holds_on` says of each: read once for all rows."""
    return Q(IsHeldRecord(F("id"))) | Q(IsHeldSubject(F("subject_id"))) | Q(HasHeldLabel(F("labels")))


class RetentionTarget:
    """One thing that policies can be about. Subclasses name rows, clocks and actions, and carry them out."""

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    """Its rows, in the plural: "sessions"."""
    actions: ClassVar[Sequence[Action]]
    """Besides `keep`, which every target has."""
    clocks: ClassVar[Mapping[str, str]]
    """Labels of its clocks by name; the first is the usual one."""
    conditions: Mapping[str, Callable[[Any], Q]]
    """For each field of a scope that applies to it: condition of the rows that a value of the field is about."""
    choices: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {}
    """Values of `kind` and `status`, with their labels."""
    minimums_of: ClassVar[Sequence[str]] = ()
    """Other targets whose legal minimums count here, too: they have the same rows, and this one is a part of them."""
    remarks: ClassVar[str] = ""
    """What a reader of a policy about it should know; a sentence."""

    # --- rows ---------------------------------------------------------------------------------------------------------

    def rows(self) -> QuerySet[Any]:
        """All rows that policies can be about."""
        raise NotImplementedError

    def clock(self, name: str) -> Expression | F:
        """The instant from which the time runs, never NULL."""
        raise NotImplementedError

    def held(self) -> Q:
        """Condition of rows that a hold keeps."""
        raise NotImplementedError

    def live(self, at: Any) -> Q | None:
        """Condition of rows that are in use at an instant, and stay for that; None if that cannot be."""
        return None

    def scope_q(self, rule: Rule) -> Q:
        """Condition of the rows that a rule is about."""
        condition = ALWAYS
        for name, value in rule.scope.items():
            condition &= self.conditions[name](value)
        return condition

    def facts(self, row: Any, holds: Sequence[int] = ()) -> Facts:
        """What the resolution looks at, of one row."""
        raise NotImplementedError

    # --- places -------------------------------------------------------------------------------------------------------

    def places(self, rule: Rule) -> list[str]:
        """Names of the stores at which it works, or one empty name for the console's own tables."""
        return [""]

    def detached_places(self, rule: Rule) -> list[str]:
        """Names of the stores that are no longer attached: rows may be due there, and none is taken."""
        return []

    def at_place(self, rows: QuerySet[Any], place: str) -> QuerySet[Any]:
        return rows

    def count(self, due: DueRows, rule: Rule, place: str) -> PlaceCount:
        """What is due at a place. Never raises for a store that does not respond: it is the `problem`."""
        raise NotImplementedError

    def still_due(self, due: DueRows, rule: Rule, place: str) -> tuple[int | None, datetime | None]:
        """Number of rows at a place that are due, and the clock of the oldest; None if they were not all counted."""
        rows = self.at_place(due.due(rule), place).annotate(clock_at=self.clock(rule.clock))
        found = rows.aggregate(count=Count("pk"), oldest=Min("clock_at"))
        return found["count"], found["oldest"]

    # --- the sweep ----------------------------------------------------------------------------------------------------

    def begin(self, place: str) -> None:
        """Before the first chunk at a place. Raises CannotSweep and StoreUnavailable."""

    def has_begun(self, rule: Rule, place: str) -> bool:
        """Whether there are rows that are gone in part, and must be finished whatever the policy says by now."""
        return False

    def take_some(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> Taken:
        """Takes at most so many rows beyond the result's cursor, in the caller's transaction.

        No hold can be placed before that ends. Raises StoreUnavailable with nothing changed.
        """
        raise NotImplementedError

    def take_all(self, lease: Lease, take: Callable[..., int], result: SweepResult) -> None:
        """Calls `take` in chunks until it returns 0."""
        lease.in_chunks(take)


def subject_kind_q(value: str) -> Q:
    """Rows whose subject has this kind of id as its first."""
    return Q(Exists(SubjectAlias.objects.filter(subject=OuterRef("subject"), is_primary=True, kind=value)))


def of_record(**condition: Any) -> Callable[[Any], Q]:
    """Condition of rows of a session: `of_record(agent=...)` by a column of the session's record."""
    ((column, wrap),) = condition.items()

    def q(value: Any) -> Q:
        return Q(Exists(SessionRecord.objects.filter(pk=OuterRef("record_id"), **{column: wrap(value)})))

    return q


_targets: dict[str, RetentionTarget] = {}


def register(target: type[RetentionTarget]) -> type[RetentionTarget]:
    """Class decorator: adds a target under its name."""
    _targets[target.name] = target()
    return target


def target_named(name: str) -> RetentionTarget:
    """Raises KeyError for a target that no installed app declares."""
    return _targets[name]


def all_targets() -> list[RetentionTarget]:
    """All registered targets, in the order of their registration."""
    return list(_targets.values())
