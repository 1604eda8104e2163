"""Steps of an erasure, each after those that it needs."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists

from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import RowStep, Step
from memadmin.erasure.steps.beside import AdminLog, AuditDetails, Findings, Grants, Identity, Redactions, Searches
from memadmin.erasure.steps.copies import AccessCopies
from memadmin.erasure.steps.keys import Keys
from memadmin.erasure.steps.memories import (
    Decisions,
    Distillations,
    Memories,
    Quotes,
    Recalls,
    SharedMemories,
    Signals,
    Versions,
)
from memadmin.erasure.steps.sessions import Sessions
from memadmin.erasure.steps.vectors import Vectors
from sessions_app.models import Subject


class WrongOrder(Exception):
    """A step does not come after the steps that it needs."""


def checked(steps: Sequence[Step]) -> Sequence[Step]:
    """The steps as given. Raises WrongOrder if one needs a step that does not come before it."""
    before: set[str] = set()
    for step in steps:
        if missing := set(step.after) - before:
            raise WrongOrder(f"The step {step.name} must come after {', '.join(sorted(missing))}.")
        before.add(step.name)
    return steps


STEPS = checked(
    [
        Sessions(),
        Keys(),
        Findings(),
        Vectors(),
        SharedMemories(),
        Recalls(),
        Decisions(),
        Versions(),
        Quotes(),
        Signals(),
        Distillations(),
        Memories(),
        AccessCopies(),
        Searches(),
        Redactions(),
        Grants(),
        AdminLog(),
        Identity(),
        AuditDetails(),
    ]
)


def step_named(name: str) -> Step:
    """Raises KeyError for a step of another version."""
    return {step.name: step for step in STEPS}[name]


def steps_with_rows(scope: SubjectScope) -> frozenset[str]:
    """Names of the steps that have something to count; only some of them for most people. One query for all the steps
    for rows of our own tables; the others are always among them.
    """
    of_rows = [step for step in STEPS if isinstance(step, RowStep)]
    asked = [Exists(step.rows(scope)) for step in of_rows]
    answers = Subject.objects.filter(pk=scope.subject.pk).values_list(*asked).get()
    without = {step.name for step, has_rows in zip(of_rows, answers, strict=True) if not has_rows}
    return frozenset(step.name for step in STEPS if step.name not in without)
