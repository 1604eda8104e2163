"""Recent reads by one person, from the log for the page of the account."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from django.contrib.auth.models import User

from memadmin.audit.audit_events import LOG_VIEWED
from memadmin.audit.log.groups import EventGroup, group_of
from memadmin.audit.log.label_registry import Names
from memadmin.audit.log.recording import before_showing
from memadmin.audit.models import ActorKind, AuditActor, AuditEvent
from memadmin.audit.pages.listing import ListedEvent, described

EVENTS_SEARCHED = 500
"""Newest events of a person that are searched for reads."""

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class PersonReads:
    """Reads, the newest first."""

    actor: uuid.UUID | None
    """The person in the log; None if nothing was recorded, or if the name was erased."""
    shown: Sequence[ListedEvent]
    is_partial: bool
    """Whether there may be more reads: older events were not searched, or more were found than are shown."""


def reads_of(person: User, *, viewer: User) -> PersonReads:
    """The newest reads of content, with the names that the viewer may see. Viewing them is recorded first.

    Four queries, and those of the record and of the names: the newest EVENTS_SEARCHED events of the person are read
    along the index of actors, however many events the log has. Raises AuditUnavailable.
    """
    actor = AuditActor.objects.filter(kind=ActorKind.PERSON, user_id=person.pk).values_list("ref", flat=True).first()
    if actor is None:
        return PersonReads(None, [], is_partial=False)
    before_showing(LOG_VIEWED, by=viewer, details={"filter": f"actor={actor}"})
    newest = list(AuditEvent.objects.filter(actor_ref=actor).newest_first()[: EVENTS_SEARCHED + 1])
    reads = (event for event in newest[:EVENTS_SEARCHED] if group_of(event.type) == EventGroup.READING)
    found = list(islice(reads, MOST_SHOWN + 1))
    is_partial = len(newest) > EVENTS_SEARCHED or len(found) > MOST_SHOWN
    return PersonReads(actor, described(found[:MOST_SHOWN], Names(viewer)), is_partial=is_partial)
