"""Steps of an erasure, in an order in which each comes after those that it needs."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from django.db.models import Exists

from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import Counted, Done, RowStep, Step
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
from sessions_app.models import Subject

__all__ = ["STEPS", "Counted", "Done", "RowStep", "Step", "in_order", "step_named", "steps_with_rows"]


class WrongGraph(Exception):
    """The steps need one another in a circle, or need a step that does not exist."""


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps, each after those that it needs, and otherwise as given. Raises WrongGraph."""
    by_name = {step.name: step for step in steps}
    unknown = {name for step in by_name.values() for name in step.after} - set(by_name)
    if unknown:
        raise WrongGraph(f"There is no step {', '.join(sorted(unknown))}.")
    try:
        TopologicalSorter({name: step.after for name, step in by_name.items()}).prepare()
    except CycleError as problem:
        raise WrongGraph(f"These steps need one another: {', '.join(problem.args[1])}.") from problem
    ordered: dict[str, Step] = {}
    while len(ordered) < len(by_name):
        free = next(step for step in by_name.values() if step.name not in ordered and set(step.after) <= set(ordered))
        ordered[free.name] = free
    return list(ordered.values())


STEPS = in_order(
    [
        Sessions(),
        Keys(),
        Findings(),
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
        AuditDetails(),
        Identity(),
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
