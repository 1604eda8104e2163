"""Erasure of data stored beside the log: details of events and names of people. Events are never changed.

The database erases (`memadmin_erase_details`, `memadmin_erase_name`), and only what an event lists. So every erasure
has an event for every caller, and the log stays unchanged: an event commits to its details by a salted hash.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import connection, models, transaction

from memadmin.audit.audit_events import ACTOR_FORGOTTEN, DETAILS_ERASED, NAME_ERASED
from memadmin.audit.log.recording import MOST_SHOWN, By, record
from memadmin.audit.models import ActorKind, AuditActor, AuditDetail, AuditEvent
from memadmin.batching import batched

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from memadmin.audit.querysets import AuditEventQuerySet


class ErasureReason(models.TextChoices):
    SUBJECT_REQUEST = "subject_request", "erasure request"
    NOT_NEEDED = "not_needed", "no longer needed"
    MISTAKE = "mistake", "recorded by mistake"


class CannotErase(Exception):
    """Nothing was erased; the message is a sentence for the user."""


class NothingLeft(CannotErase):
    def __init__(self) -> None:
        super().__init__("These details are already erased. Nothing was changed.")


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure, as recorded in the log."""

    event: AuditEvent

    @property
    def at(self) -> datetime:
        return self.event.at

    @property
    def reason(self) -> str:
        return (
            str(ErasureReason(self.event.reason_code).label) if self.event.reason_code in ErasureReason.values else ""
        )


@transaction.atomic
def erase_details(event: AuditEvent, *, by: By = None, reason: str) -> int:
    """Erases the details of an event and of its row changes; returns the number of events.

    Raises NothingLeft.
    """
    with_details = [kept.pk for kept in details_within(event)]
    if not with_details:
        raise NothingLeft
    for part in batched(with_details, MOST_SHOWN):
        erasure = record(
            DETAILS_ERASED,
            by=by,
            target=event,
            subject=event.subject_ref,
            shown=part,
            reason_code=reason,
            counters={"events": len(part)},
        )
        if erased_by("memadmin_erase_details", erasure) != len(part):
            raise NothingLeft
    return len(with_details)


@transaction.atomic
def erase_details_of(
    event_ids: Collection[UUID],
    *,
    subject: UUID | None = None,
    reason: ErasureReason = ErasureReason.SUBJECT_REQUEST,
) -> int:
    """Erases the details of these events, at most MOST_SHOWN, by default at the request of their subject; returns how
    many.

    In the caller's transaction, with one event. Details that are gone already do not count.
    """
    erasure = record(
        DETAILS_ERASED,
        subject=subject,
        shown=event_ids,
        reason_code=reason,
        counters={"events": len(event_ids)},
    )
    return erased_by("memadmin_erase_details", erasure)


@transaction.atomic
def erase_name(actor_ref: UUID, *, by: User, reason: str) -> None:
    """Erases the name of a person in the log, with the recorded values of their account.

    Their events stay, under an id without a name. Raises NothingLeft; CannotErase while the account can sign in: it
    would only get another id, and people who erase must not be able to hide their own actions.
    """
    actor = AuditActor.objects.filter(ref=actor_ref).first()
    if actor is None:
        raise NothingLeft
    if why := why_name_stays(actor):
        raise CannotErase(why)
    if not erased_by("memadmin_erase_name", record(NAME_ERASED, by=by, target=actor, reason_code=reason)):
        raise NothingLeft


def why_name_stays(actor: AuditActor) -> str:
    """Reason why the name cannot be erased, a sentence; empty when it can."""
    if actor.kind != ActorKind.PERSON:
        return "Only the name of a person can be erased; this actor is not a person."
    if actor.user_id and get_user_model().objects.filter(pk=actor.user_id, is_active=True).exists():
        return "This account is active. Disable the account first; then the name can be erased."
    return ""


def details_within(event: AuditEvent) -> models.QuerySet[AuditDetail]:
    """The remaining details of an event and of its row changes."""
    rows = AuditEvent.objects.filter(cause=event.id).values("id")
    return AuditDetail.objects.filter(models.Q(event_id=event.id) | models.Q(event_id__in=rows)).order_by("pk")


def details_erasure(event: AuditEvent) -> Erasure | None:
    """The erasure of an event's details; None if the log has none."""
    return latest(AuditEvent.objects.concerning([event.id]).filter(type=DETAILS_ERASED.name))


def name_erasure(actor_ref: UUID) -> Erasure | None:
    """The erasure of a name, or the deletion of its account."""
    return latest(AuditEvent.objects.filter(type__in=(NAME_ERASED.name, ACTOR_FORGOTTEN.name), object_ref=actor_ref))


def latest(erasures: AuditEventQuerySet) -> Erasure | None:
    event = erasures.newest_first().first()
    return Erasure(event) if event else None


def erased_by(function: str, erasure: UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [erasure])
        (count,) = cursor.fetchone() or (0,)
    return int(count)
