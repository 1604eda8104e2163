"""Extension point of holds: upper apps tell what of the covered data they have deleted already."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from memadmin.retention.models import LegalHold
from sessions_app.models import Subject

Telling = Callable[[Collection[UUID]], list[str]]

_telling: list[Telling] = []

MOST_SESSIONS = 1_000
"""Sessions of a hold whose subjects are looked at."""


def tells_what_went(function: Telling) -> Telling:
    """Registers a function that is called with ids of subjects, and returns sentences without personal data."""
    _telling.append(function)
    return function


def what_went(subjects: Collection[UUID]) -> list[str]:
    """Sentences about data of these subjects that was deleted already."""
    return [sentence for tell in _telling for sentence in tell(subjects)] if subjects else []


def subjects_of(hold: LegalHold) -> set[UUID]:
    """Ids of the subjects whose data a hold covers, with those into which they were merged. A query, and one for each
    level of merges.
    """
    if hold.subject is not None:
        return set(hold.subject.group_ids())
    more = {pk for pk in hold.sessions().values_list("subject", flat=True)[:MOST_SESSIONS] if pk}
    found = set(more)
    while more:
        targets = Subject.objects.filter(pk__in=more).values_list("merged_into", flat=True)
        more = {pk for pk in targets if pk and pk not in found}
        found |= more
    return found
