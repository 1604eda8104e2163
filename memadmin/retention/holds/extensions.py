"""Extension point of holds: upper apps report which of the covered data they have deleted already."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from memadmin.retention.models import LegalHold

DeletionReport = Callable[[Collection[UUID]], list[str]]

_reports: list[DeletionReport] = []

MOST_SUBJECTS = 1_000
"""Maximum of subjects for which deletions are looked up: a label can cover any number."""


def reports_deletions(function: DeletionReport) -> DeletionReport:
    """Registers a function that is called with ids of subjects, and returns sentences without personal data."""
    _reports.append(function)
    return function


def deletions_of(hold: LegalHold) -> list[str]:
    """Sentences about covered data that was deleted already, and one if only MOST_SUBJECTS subjects were looked up."""
    subjects = hold.subject_ids(at_most=MOST_SUBJECTS)
    if not subjects.ids:
        return []
    sentences = [sentence for report in _reports for sentence in report(subjects.ids)]
    if subjects.are_more:
        sentences.append(
            f"The sessions of this hold belong to more than {MOST_SUBJECTS:,} subjects."
            f" Deletions were looked up for the first {MOST_SUBJECTS:,} of them."
        )
    return sentences
