"""Base of targets: their rows, clocks, scope and actions, and the register to which upper packages add theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import BooleanField, Exists, Expression, F, Func, OuterRef, Q, QuerySet

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
    live: int = 0
    left: dict[str, int] = field(default_factory=dict)
    """Rows that stay for now, by the code of the reason; see `KeptReason`."""
    tables: dict[str, int] = field(default_factory=dict)
    """Rows deleted or changed, by table."""
    cursor: dict[str, Any] = field(default_factory=dict)
    shown: list[Any] = field(default_factory=list)
    """Ids of session records, for the event."""


class KeptReason:
    """Codes of reasons why rows stay for now, and their sentences."""

    BUSY = "busy"
    CANNOT_ERASE = "cannot_erase"
    CANNOT_REWRITE = "cannot_rewrite"
    FILE_KEPT = "file_kept"
    KEPT_WITH_TURN = "kept_with_turn"
    UNREADABLE = "unreadable"

    SENTENCES: ClassVar[Mapping[str, str]] = {
        BUSY: "An agent held the session all the time. The next run includes it.",
        CANNOT_ERASE: "This kind of store cannot delete sessions.",
        CANNOT_REWRITE: "This kind of store cannot change or delete single items.",
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


ALWAYS = Q(pk__isnull=False)
"""Condition of every row: Django takes an empty one for none at all where conditions are combined or negated."""


class Held(Func):
    """Whether a hold covers a session record, or a subject: expressions of record id, subject id and labels."""

    template = "EXISTS (SELECT FROM memadmin_holds_on(%(expressions)s))"
    output_field = BooleanField()


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

    def at_place(self, rows: QuerySet[Any], place: str) -> QuerySet[Any]:
        return rows

    def count(self, due: DueRows, rule: Rule, place: str) -> PlaceCount:
        """What is due at a place. Never raises for a store that does not respond: it is the `problem`."""
        raise NotImplementedError

    # --- the sweep ----------------------------------------------------------------------------------------------------

    def begin(self, place: str) -> None:
        """Before the first chunk at a place. Raises StoreUnavailable."""

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
