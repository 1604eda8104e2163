"""Base of targets: their rows, clocks, scope and actions, and the register to which upper packages add theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import BooleanField, Exists, Expression, F, Func, OuterRef, Q, QuerySet

from memadmin.retention.policies.rules import Action, Facts, Rule
from memadmin.runs.engine import MOST_ROWS
from sessions_app.models import SessionRecord, Subject, SubjectAlias

if TYPE_CHECKING:
    from memadmin.retention.models import SweepResult
    from memadmin.retention.targets.due_rows import DueRows


@dataclass
class SweepChunk:
    """Result of one chunk of a sweep. 0 `passed` means that nothing is left to do at this place."""

    passed: int = 0
    """Rows that the chunk is done with, however."""
    taken: int = 0
    items: int = 0
    held: int = 0
    left: Counter[str] = field(default_factory=Counter)
    """Rows that stay for now, by the code of the reason; see `KeptReason`."""
    tables: Counter[str] = field(default_factory=Counter)
    """Rows deleted or changed, by table."""
    cursor: dict[str, Any] = field(default_factory=dict)
    shown: list[Any] = field(default_factory=list)
    """Ids of session records, for the event."""


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
    NO_TIME = "no_time"
    UNREADABLE = "unreadable"

    SENTENCES: ClassVar[Mapping[str, str]] = {
        ACTIVE: "An agent wrote to the session, or it changed, after the run had found it.",
        BUSY: "An agent held the session all the time. The next run includes it.",
        CANNOT_ERASE: "This kind of store cannot delete sessions.",
        CANNOT_REWRITE: "This kind of store cannot change or delete single items.",
        DETACHED: "The store is not attached any more. Attach it again, or delete it.",
        FILE_KEPT: "The file could not be deleted. The next run tries again.",
        KEPT_WITH_TURN: "Expired items stay with their turn, or with the other half of a tool call.",
        NO_TIME: "The items at the beginning of the session have no time, so it is not known which are old.",
        UNREADABLE: "Sessions that the store could not read.",
    }


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """Numbers of due rows at one place, for previews and for the start of a run."""

    place: str
    rows: int = 0
    items: int | None = None
    """Items of the due sessions; None where they were not counted."""
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
    subject: ClassVar[str] = "subject"
    """The way from a row to its subject; empty if it has none."""
    remarks: ClassVar[str] = ""
    """Remarks for readers of a policy about this target, in sentences."""

    rows_at_once: ClassVar[int] = MOST_ROWS
    """Rows of one chunk of a sweep, at most."""

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
        """Facts about one row that the resolution needs."""
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
        """Numbers of due rows at a place. Never raises for a store that does not respond: it is the `problem`."""
        return self.count_rows(due, rule, place)

    def count_rows(self, due: DueRows, rule: Rule, place: str) -> PlaceCount:
        """The same without the items of its rows."""
        return due.count(rule, place)

    # --- the sweep ----------------------------------------------------------------------------------------------------

    def begin(self, place: str) -> None:
        """Before the first chunk at a place. Raises CannotSweep and StoreUnavailable."""

    def has_begun(self, rule: Rule, place: str) -> bool:
        """Whether there are rows that are gone in part, and must be finished whatever the policy says by now."""
        return False

    def expire_chunk(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> SweepChunk:
        """Carries the rule out on at most so many rows beyond the result's cursor, in the caller's transaction.

        No hold can be placed before that ends. Raises StoreUnavailable with nothing changed.
        """
        raise NotImplementedError


def subject_kind_q(kind: str, subject: str = "subject") -> Q:
    """Condition of rows whose subject has this kind of id as its first; `subject` is the way to it."""
    return Q(Exists(SubjectAlias.objects.filter(subject=OuterRef(subject), is_primary=True, kind=kind)))


def first_kind(subject: Subject | None) -> str:
    """The kind of the first id of a subject, as `subject_kind_q` finds it. One query, unless its aliases are loaded."""
    return next((alias.kind for alias in subject.aliases.all() if alias.is_primary), "") if subject else ""


def of_record(**condition: Any) -> Callable[[Any], Q]:
    """Condition of rows of a session: `of_record(agent=...)` by a column of the session's record."""
    ((column, wrap),) = condition.items()

    def q(value: Any) -> Q:
        return Q(Exists(SessionRecord.objects.filter(pk=OuterRef("record_id"), **{column: wrap(value)})))

    return q


def place_of(row: Any, column: str) -> dict[str, Any]:
    """Cursor behind a row in the order of a column and the key. Contains no personal data."""
    return {"at": getattr(row, column).isoformat(), "id": str(row.pk)}


def after(column: str, cursor: Mapping[str, Any]) -> Q:
    """Condition of rows beyond a cursor; the first part is what an index can find."""
    beyond = Q(**{f"{column}__gt": cursor["at"]}) | Q(pk__gt=cursor["id"])
    return Q(**{f"{column}__gte": cursor["at"]}) & beyond


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
