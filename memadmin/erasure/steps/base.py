"""Steps of an erasure: which rows, how they go, and which steps come before.

A step names its rows by one query, which the preview counts and the run erases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Model, Q, QuerySet

from memadmin.erasure.models import ErasureStep
from memadmin.erasure.scope import SubjectScope
from sessions_app.services.deletion_guards import DeletionRefused, refusals_explained


@dataclass(frozen=True, slots=True)
class Counted:
    """Numbers of a step at one place, for the preview."""

    rows: int
    held: int = 0
    details: Mapping[str, int] = field(default_factory=dict)
    """Further counts by a word, such as `encrypted`."""
    problem: str = ""
    """Why it could not be counted: a sentence without personal data."""
    exceptions: Mapping[str, int] = field(default_factory=dict)
    """Codes of `Left` that the run would end with."""


@dataclass(slots=True)
class Done:
    """Result of one chunk of a step. Counted rows only; 0 `passed` means that the step is finished."""

    passed: int = 0
    """Rows that the chunk is done with, however."""
    erased: int = 0
    held: int = 0
    cursor: str = ""
    exceptions: dict[str, int] = field(default_factory=dict)
    shown: list[Any] = field(default_factory=list)
    """Ids of session records, for the event."""


class Step:
    """One holder of personal data."""

    name: ClassVar[str]
    title: ClassVar[str]
    what_happens: ClassVar[str]
    after: ClassVar[Sequence[str]] = ()
    """Names of steps that must be finished before."""

    def places(self, scope: SubjectScope) -> list[str]:
        """Names of the stores at which it works, or one empty name for memadmin's own tables."""
        return [""]

    def count(self, scope: SubjectScope, place: str) -> Counted:
        """Numbers of rows that the run would erase now. For a store that does not respond, its `problem`."""
        raise NotImplementedError

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        """Erases at most so many rows after the step's cursor, in the caller's transaction.

        Raises StoreUnavailable with nothing changed.
        """
        raise NotImplementedError


class RowStep(Step):
    """A step for rows of one of our own tables."""

    def rows(self, scope: SubjectScope) -> QuerySet[Any]:
        """The rows that go. Those that were erased are no longer among them."""
        raise NotImplementedError

    def held_q(self, scope: SubjectScope) -> Q | None:
        """Condition of rows that go with a session, and stay with a held one; None if no hold keeps them."""
        return None

    def details(self, scope: SubjectScope) -> Mapping[str, int]:
        return {}

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        """Erases these rows, which are few."""
        rows.delete()

    def written_by_erasure(self, step: ErasureStep, keys: list[Any]) -> int:
        """Number of rows among these that the erasure itself has added: no preview can count them."""
        return 0

    def count(self, scope: SubjectScope, place: str) -> Counted:
        held_q = self.held_q(scope) if scope.held_records else None
        held = 0 if held_q is None else self.rows(scope).filter(held_q).distinct().count()
        return Counted(self.rows(scope).count(), held=held, details=self.details(scope))

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        rows = self.rows(scope)
        later = rows.filter(pk__gt=step.cursor) if step.cursor else rows
        keys = list(later.order_by("pk").values_list("pk", flat=True)[:at_most])
        if not keys:
            return Done()
        done = Done(passed=len(keys), cursor=str(keys[-1]))
        try:
            self._erase(scope, rows.model, keys)
            done.erased = len(keys) - self.written_by_erasure(step, keys)
        except DeletionRefused:
            # One by one: those that no hold keeps must go.
            for key in keys:
                try:
                    self._erase(scope, rows.model, [key])
                    done.erased += 1
                except DeletionRefused:
                    done.held += 1
        return done

    def _erase(self, scope: SubjectScope, model: type[Model], keys: list[Any]) -> None:
        with refusals_explained(), transaction.atomic():
            self.erase_rows(scope, model._default_manager.filter(pk__in=keys))
