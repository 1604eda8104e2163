"""Learning stops of subjects, and feedback of operators on items."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from memadmin import audit
from memadmin.client.secret_text import mask_text
from memories_app import audit_events
from memories_app.models import LearningStop, Signal
from memories_app.services.refusals import gate_explained
from sessions_app.models import SessionRecord, Subject
from sessions_app.services.deletion_guards import check_deletion
from sessions_app.services.subjects import merge_target


def stops_of(ids: Iterable[UUID]) -> QuerySet[LearningStop]:
    """Learning stops of subjects, by their ids and those merged into them."""
    return LearningStop.objects.filter(subject__in=list(ids))


def is_stopped(subject: Subject) -> bool:
    """Whether learning is stopped for this subject, under any of its ids. Two queries."""
    return stops_of(subject.group_ids()).exists()


@transaction.atomic
def stop_learning(subject: Subject, *, by: User) -> bool:
    """Makes the database refuse further proposals and signals about a subject; returns whether that is new.

    Approved memories stay, and waiting proposals can still be decided.
    """
    subject = _locked(subject)
    if is_stopped(subject):
        return False
    audit.record(audit_events.LEARNING_STOPPED, by=by, target=subject, subject=subject)
    LearningStop.objects.create(subject=subject)
    return True


@transaction.atomic
def allow_learning(subject: Subject, *, by: User) -> bool:
    """Removes the stop, and those of all subjects merged into it; returns whether there was one."""
    subject = _locked(subject)
    if not is_stopped(subject):
        return False
    audit.record(audit_events.LEARNING_ALLOWED, by=by, target=subject, subject=subject)
    stops_of(subject.group_ids()).delete()
    return True


@transaction.atomic
def give_feedback(record: SessionRecord, item_id: str, *, by: User, value: int | None = None, note: str = "") -> Signal:
    """Stores an operator's rating (1, -1) and note about an item, for distillers; secrets in the note are masked.

    It replaces their earlier feedback on this item, which a distiller may have read already. Raises
    MemoryActionRefused where learning is stopped, and DeletionRefused where the earlier feedback must be kept.
    """
    earlier = feedback_on_items(record, [item_id]).filter(given_by=by)
    with gate_explained():
        replaced = earlier.count()
        if replaced:
            _check_deletion(record)
        audit.record(
            audit_events.FEEDBACK_GIVEN,
            by=by,
            target=record,
            subject=record.subject_id,
            counters={
                **{"up": int(value == 1), "down": int(value == -1), "with_note": int(bool(note))},
                **({"replaced": replaced} if replaced else {}),
            },
        )
        earlier.delete()
        return Signal.objects.create(
            subject_id=record.subject_id,
            record_id=record.pk,
            session_id=record.session_id,
            item_id=item_id,
            kind=Signal.Kind.FEEDBACK,
            value=value,
            text=mask_text(note)[0],
            given_by=by,
        )


@transaction.atomic
def withdraw_feedback(signal: Signal, record: SessionRecord) -> None:
    """Deletes feedback at the request of its author; memories proposed from it stay. Raises DeletionRefused where it
    must be kept."""
    _check_deletion(record)
    audit.record(audit_events.FEEDBACK_WITHDRAWN, by=signal.given_by, target=record, subject=record.subject_id)
    signal.delete()


def _check_deletion(record: SessionRecord) -> None:
    check_deletion(records=[record.pk], subjects=[record.subject_id] if record.subject_id else ())


def feedback_on_items(record: SessionRecord, item_ids: Iterable[str]) -> QuerySet[Signal]:
    """Operators' feedback on items of a session, the oldest first."""
    given = Signal.objects.filter(record_id=record.pk, item_id__in=list(item_ids), kind=Signal.Kind.FEEDBACK)
    return given.order_by("created_at", "pk")


def _locked(subject: Subject) -> Subject:
    return Subject.objects.select_for_update(no_key=True).get(pk=merge_target(subject).pk)
