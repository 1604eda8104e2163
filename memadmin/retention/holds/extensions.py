"""Extension point of holds: upper apps tell what of the covered data they have deleted already."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from memadmin.retention.models import LegalHold
from sessions_app.models import Subject

DeletionReport = Callable[[Collection[UUID]], list[str]]

_reports: list[DeletionReport] = []

MOST_SUBJECTS = 1_000
"""Subjects of a hold that are looked at, at most: a label can cover any number."""


def reports_deletions(function: DeletionReport) -> DeletionReport:
    """Registers a function that is called with ids of subjects, and returns sentences without personal data."""
    _reports.append(function)
    return function


def deletions_of(subjects: Collection[UUID]) -> list[str]:
    """Sentences about data of these subjects that was deleted already."""
    return [sentence for report in _reports for sentence in report(subjects)] if subjects else []


def subjects_of(hold: LegalHold) -> set[UUID]:
    """Ids of the subjects whose data a hold covers, with those into which they were merged. A query, and one for each
    level of merges.
    """
    if hold.subject is not None:
        return set(hold.subject.group_ids())
    named = hold.sessions().exclude(subject=None).order_by("subject").values_list("subject", flat=True).distinct()
    more = set(named[:MOST_SUBJECTS])
    found = set(more)
    while more:
        targets = Subject.objects.filter(pk__in=more).values_list("merged_into", flat=True)
        more = {pk for pk in targets if pk and pk not in found}
        found |= more
    return found
