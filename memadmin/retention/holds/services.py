"""Services of legal holds: place, change, request the release, release, reject the release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models.functions import Now
from psycopg.errors import LockNotAvailable

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.retention import audit_events
from memadmin.retention.holds.extensions import deletions_of
from memadmin.retention.models import LegalHold
from sessions_app import registry
from sessions_app.models import SessionRecord, Subject
from sessions_app.services.subjects import merge_target

RELEASE = "retention.release_hold"


def shown_of(hold: LegalHold) -> dict[str, Any]:
    """What a decision about a release is about. No query."""
    return {
        "number": hold.number,
        "covers": [hold.subject_id, hold.record_id, hold.label],
        "reason": hold.reason,
        "owner": hold.owner_id,
        "release_reason": hold.release_reason,
    }


HOLD_RELEASE = declare(
    ApprovalKind(
        "hold_release",
        RELEASE,
        shown_of,
        waiting="hold releases",
        page="retention:holds",
        facts="Until then the holds stay in force. Afterwards their data can be deleted.",
        symbol="gavel",
        colour="purple",
    )
)

LOCK_TIMEOUT = "10s"
"""Time for which a new hold waits for deletions in flight: they are short chunks."""


class HoldError(Exception):
    """An action on a hold that is not possible; the message is a sentence for the operator. Nothing was changed."""


class DeletionUnderWay(HoldError):
    def __init__(self) -> None:
        super().__init__("A deletion did not finish within 10 seconds, and no hold was placed. Try again now.")


class HoldAlreadyDecided(HoldError):
    """Another person was faster, or the hold was released."""

    def __init__(self, hold: LegalHold) -> None:
        self.hold = hold
        super().__init__(f"{hold} has changed since you opened it. Nothing was saved; this is its current state.")


class NothingToHold(HoldError):
    def __init__(self, deletions: Sequence[str] = ()) -> None:
        sentence = "The data of this subject was erased: nothing is left to hold. No hold was placed."
        super().__init__(" ".join([sentence, *deletions]))


def place_hold(
    covers: Subject | SessionRecord | str, *, reason: str, owner: User, review_on: date, by: User
) -> LegalHold:
    """A hold on a subject, a session, or all sessions with a label; in force when the transaction commits.

    Waits for deletions in flight, and raises DeletionUnderWay if they take too long, and NothingToHold for an erased
    subject.
    """
    hold = hold_on(covers)
    hold.reason, hold.owner, hold.review_on, hold.placed_by = reason, owner, review_on, by
    with waiting_for_deletions(hold):
        hold.save(force_insert=True)
        audit.record(
            audit_events.HOLD_PLACED,
            by=by,
            target=hold,
            subject=hold.subject_id,
            shown=[covers] if isinstance(covers, SessionRecord) else (),
            counters={"sessions": hold.sessions().count_up_to(1_000)},
        )
        hold.refresh_from_db()
    return hold


def hold_on(covers: Subject | SessionRecord | str) -> LegalHold:
    """A hold on a subject, a session or a label that is not placed yet."""
    if isinstance(covers, Subject):
        return LegalHold(subject=merge_target(covers))
    if isinstance(covers, SessionRecord):
        return LegalHold(record_id=covers.pk, session_id=covers.session_id)
    return LegalHold(label=covers)


@contextmanager
def waiting_for_deletions(hold: LegalHold) -> Iterator[None]:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
            yield
    except OperationalError as problem:
        if isinstance(problem.__cause__, LockNotAvailable):
            raise DeletionUnderWay from problem
        raise
    except DatabaseError as problem:
        if getattr(problem.__cause__, "sqlstate", None) == registry.ERASED:
            raise NothingToHold(deletions_of(hold)) from problem
        raise


@transaction.atomic
def change_hold(hold: LegalHold, *, owner: User, review_on: date, by: User) -> LegalHold:
    """Changes owner and review date. Raises HoldAlreadyDecided for a released hold."""
    hold = locked(hold)
    if hold.is_released:
        raise HoldAlreadyDecided(hold)
    return changed(hold, audit_events.HOLD_CHANGED, by=by, owner=owner, review_on=review_on)


@transaction.atomic
def request_release(hold: LegalHold, *, reason: str, by: User) -> LegalHold:
    """Asks a second person to release the hold, which stays in force. Raises HoldAlreadyDecided."""
    hold = locked(hold)
    if hold.is_released or hold.awaits_release:
        raise HoldAlreadyDecided(hold)
    hold.release_reason = reason
    with approvals.asking(HOLD_RELEASE, hold, by=by):
        hold.save(update_fields=["release_reason"])
    return hold


def release_hold(hold: LegalHold, *, by: User, shown: str) -> LegalHold:
    """Releases a hold, as it was `shown`, as the second person. Raises ApprovalError."""
    with approvals.deciding(hold, by=by):
        hold = locked(hold)
        approvals.approve(hold, by=by, shown=shown)
        return changed(hold, audit_events.HOLD_RELEASED, by=by, released_at=Now())


def reject_release(hold: LegalHold, *, by: User) -> LegalHold:
    """Rejects, or withdraws, the request to release a hold, which stays in force. Raises ApprovalError."""
    with approvals.deciding(hold, by=by):
        hold = locked(hold)
        approvals.reject(hold, by=by)
    return hold


def locked(hold: LegalHold) -> LegalHold:
    return LegalHold.objects.select_for_update(of=("self",)).select_related("approval").get(pk=hold.pk)


def changed(hold: LegalHold, event: audit.EventType, *, by: User, **columns: Any) -> LegalHold:
    audit.record(event, by=by, target=hold, subject=hold.subject_id)
    LegalHold.objects.filter(pk=hold.pk).update(**columns)
    hold.refresh_from_db()
    return hold
