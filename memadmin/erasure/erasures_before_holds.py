"""Erasures that a legal hold meets, for the person who places it: their deletions so far, and what becomes of them."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.utils.text import get_text_list

from memadmin.counting import counted
from memadmin.erasure.holder_view_models import holder_title
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.retention.holds.extensions import reports_deletions, reports_effects

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


@reports_effects
def stopped_by(subjects: Collection[UUID], is_whole: bool) -> list[str]:
    """A sentence about the open erasures of these subjects, with the numbers of the first. One query."""
    erasures = SubjectRequest.objects.open().filter(subject__in=subjects, kind=SubjectRequest.Kind.ERASURE)
    cases = [str(case) for case in erasures[: MOST_SHOWN + 1]]
    if not cases:
        return []
    names = [*cases[:MOST_SHOWN], "others"] if len(cases) > MOST_SHOWN else cases
    subject = f"{get_text_list(names, 'and')} (erasure)"
    if is_whole:
        return [f"{subject} cannot continue while the hold is in force."]
    return [f"{subject} would leave what the hold covers, and end with exceptions."]
