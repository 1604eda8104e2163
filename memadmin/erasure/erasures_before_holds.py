"""Deletions of erasures that began before a legal hold, for the person who places it."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memadmin.counting import counted
from memadmin.erasure.holder_view_models import holder_title
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.retention.holds.extensions import reports_deletions

MOST_SHOWN = 3
"""Number of newest erasures that are named: a label can cover the subjects of a whole batch."""


@reports_deletions
def erased_of(subjects: Collection[UUID]) -> list[str]:
    """A sentence for each erasure of these subjects that has begun, with its rows by place. Two queries."""
    begun = SubjectRequest.objects.filter(subject__in=subjects, started_at__isnull=False).order_by("-number")
    cases = list(begun[: MOST_SHOWN + 1])
    steps = ErasureStep.objects.filter(request__in=cases[:MOST_SHOWN])
    sentences = [sentence(case, [step for step in steps if step.request_id == case.pk]) for case in cases[:MOST_SHOWN]]
    return [*sentences, "Further erasures have begun, too."] if len(cases) > MOST_SHOWN else sentences


def sentence(case: SubjectRequest, steps: Collection[ErasureStep]) -> str:
    """Deletions of one erasure: "DSR-0004 has erased 54 rows of this subject: 50 in main, 4 in Signals."."""
    rows = sum(step.erased for step in steps)
    if not rows:
        return f"{case} has begun to erase data of this subject, and has erased nothing yet."
    places = ", ".join(f"{step.erased:,} in {holder_title(step.holder)}" for step in steps if step.erased)
    return f"{case} has erased {counted(rows, 'rows')} of this subject: {places}."
