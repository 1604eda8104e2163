"""Sessions of which a sweep has deleted some items: fenced until the rest is gone, or must be kept."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from memadmin.retention.models import UnfinishedExpiry
from memadmin.retention.policies.rules import Rule
from memadmin.retention.targets.registry_rows import SessionGone
from sessions_app.models import SessionRecord, Subject
from sessions_app.stores import backend_for


def unfinished(rule: Rule) -> QuerySet[SessionRecord]:
    """Sessions of which some items went under this version, in this run or an earlier one.

    Not those that belong to an erasure by now: it deletes the rest, and keeps the fence.
    """
    begun = UnfinishedExpiry.objects.filter(version=rule.version).values("record_id")
    return fenced_by_expiry().filter(pk__in=begun)


def fenced_by_expiry() -> QuerySet[SessionRecord]:
    """Sessions that are marked as erased, and belong to no erasure."""
    return SessionRecord.objects.filter(erased_at__isnull=False, is_forgotten=False).exclude(
        Exists(Subject.objects.filter(pk=OuterRef("subject"), erased_at__isnull=False))
    )


def lock_unfinished(record: SessionRecord) -> None:
    """Keeps an erasure from taking the session over before the transaction ends. Raises SessionGone if one did.

    Not the lock that writers wait for: agents lock in another order.
    """
    ours = fenced_by_expiry().filter(pk=record.pk, store_id=record.store_id, session_id=record.session_id)
    if not ours.select_for_update(no_key=True, of=("self",)).exists():
        raise SessionGone


def note_unfinished(record: SessionRecord, rule: Rule) -> None:
    """Some of its items are gone, and some are left."""
    UnfinishedExpiry.objects.get_or_create(record_id=record.pk, defaults={"version_id": rule.version})


def note_finished(record: SessionRecord) -> None:
    """All of its items are gone."""
    UnfinishedExpiry.objects.filter(record_id=record.pk).delete()


def let_go_on(record: SessionRecord) -> None:
    """Takes the fence down of a session of which some items are gone and the rest must be kept."""
    if record.erased_at and UnfinishedExpiry.objects.filter(record_id=record.pk).delete()[0]:
        backend_for(record.store).show_rest(record.session_id)
        ours = SessionRecord.objects.filter(store_id=record.store_id, session_id=record.session_id)
        ours.filter(pk=record.pk).update(erased_at=None)
