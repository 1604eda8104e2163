"""Extension points of holds: upper apps report covered data that they have deleted already, and work that a new hold
affects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from memadmin.retention.models import LegalHold

DeletionReport = Callable[[Collection[UUID]], list[str]]

EffectReport = Callable[[Collection[UUID], bool], list[str]]

_reports: list[DeletionReport] = []
_effects: list[EffectReport] = []

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


def reports_effects(function: EffectReport) -> EffectReport:
    """Registers a function that is called with ids of subjects, and whether a hold covers all of their data or only
    some sessions. It returns sentences about open work that the hold would affect.
    """
    _effects.append(function)
    return function


def effects_of(hold: LegalHold) -> list[str]:
    """Sentences about open work of upper apps that a new hold would affect, for at most MOST_SUBJECTS subjects."""
    ids = hold.subject_ids(at_most=MOST_SUBJECTS).ids
    return [sentence for report in _effects for sentence in report(ids, hold.subject is not None)] if ids else []
