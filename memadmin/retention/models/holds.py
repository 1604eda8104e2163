"""Legal holds, and the row that orders them against deletions."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, takes_approval
from memadmin.audit.log.triggers import Calling
from memadmin.retention.models import querysets
from sessions_app.models import SessionRecord, Subject
from sessions_app.models.querysets import SessionRecordQuerySet


class HoldLock(models.Model):
    """One row. Each deletion locks it for share, and each new hold takes its number from it.

    So a hold waits for deletions in flight, and a deletion that comes after it sees it, at every isolation level.
    """

    last_number = models.BigIntegerField(db_default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return "lock of legal holds"


@dataclass(frozen=True, slots=True)
class CoveredSubjects:
    """Ids of subjects whose data a hold covers, and whether there are more."""

    ids: frozenset[uuid.UUID]
    are_more: bool = False


class LegalHold(models.Model):
    """Data of a subject, of one session, or of all sessions with a label, that must not be deleted.

    The triggers in `sql/holds.sql` enforce it. A hold is never deleted: its release takes two persons.
    """

    # Set by `holds.coverage.with_session_counts`, for lists.
    session_count: str
    session_noun: str

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    # For people; given by the trigger `number`.
    number = models.BigIntegerField(unique=True, db_default=0, editable=False)
    # Exactly one of these three says what it covers. The subject covers its later sessions, too.
    subject = models.ForeignKey(
        Subject, null=True, on_delete=models.PROTECT, db_constraint=False, db_index=False, related_name="holds"
    )
    record_id = models.UUIDField(null=True)
    label = models.CharField(max_length=50, db_default="", default="")
    # The session id of `record_id`, because a session is looked up by it where the registry is distributed.
    session_id = models.CharField(db_default="", default="")

    reason = models.CharField(max_length=500)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    review_on = models.DateField()
    placed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    placed_at = models.DateTimeField(db_default=Now())

    # Of the newest request of its release.
    release_reason = models.CharField(max_length=500, db_default="", default="")
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    released_at = models.DateTimeField(null=True)

    objects = querysets.LegalHoldQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        permissions: ClassVar = [
            ("view_hold", "Can see legal holds"),
            ("place_hold", "Can place legal holds and request their release"),
            ("release_hold", "Can approve the release of legal holds"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(subject__isnull=False, record_id__isnull=True, label="")
                | Q(subject__isnull=True, record_id__isnull=False, label="")
                | (Q(subject__isnull=True, record_id__isnull=True) & ~Q(label="")),
                name="hold_covers_one_thing",
            ),
        ]
        indexes: ClassVar = [
            # What a deletion asks for: holds in force are few.
            models.Index("subject", condition=Q(released_at__isnull=True), name="hold_on_subject"),
            models.Index("record_id", condition=Q(released_at__isnull=True), name="hold_on_session"),
            models.Index("label", condition=Q(released_at__isnull=True), name="hold_on_label"),
        ]
        triggers: ClassVar = [
            Calling("number", "memadmin_number_hold()", before="INSERT", level=pgtrigger.Row),
            Calling("keep_as_placed", "memadmin_keep_hold_as_placed()", before="UPDATE", level=pgtrigger.Row),
            Calling("keep", "memadmin_keep_hold()", before="ANY CHANGE", level=pgtrigger.Statement),
            Calling("refuse_on_erased", "memadmin_refuse_hold_on_erased()", before="INSERT", level=pgtrigger.Row),
            takes_approval("hold_release", "released_at"),
            *audit.govern(
                "legal_hold",
                columns=[
                    "subject",
                    "record_id",
                    "label",
                    "reason",
                    "owner",
                    "review_on",
                    "release_reason",
                    "approval",
                    "released_at",
                ],
                subject="subject",
                hidden=["label", "reason", "release_reason"],
            ),
        ]

    def __str__(self) -> str:
        return f"H-{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("retention:hold", args=[self.pk])

    @property
    def is_released(self) -> bool:
        return self.released_at is not None

    @property
    def awaits_release(self) -> bool:
        return self.approval is not None and self.approval.is_waiting_at(now())

    @property
    def is_review_due(self) -> bool:
        return not self.is_released and self.review_on <= now().date()

    def sessions(self) -> SessionRecordQuerySet:
        """Sessions that it covers now. One query more for a subject."""
        return self.sessions_of(self.subject.group_ids() if self.subject else ())

    def sessions_of(self, group: Collection[uuid.UUID]) -> SessionRecordQuerySet:
        """As `sessions`, with the ids of its subject and of all that were merged into that."""
        records = SessionRecord.objects.on_record()
        if self.subject_id is not None:
            return records.filter(subject_id__in=group)
        if self.record_id is not None:
            return records.filter(session_id=self.session_id, pk=self.record_id)
        return records.labelled(self.label)

    def subject_ids(self, *, at_most: int) -> CoveredSubjects:
        """Ids of the subjects whose data it covers, with those into which they were merged; of sessions with a label
        the first `at_most` subjects, by id. A query, and one for each level of merges.
        """
        if self.subject is not None:
            return CoveredSubjects(frozenset(self.subject.group_ids()))
        sessions = self.sessions().exclude(subject=None).order_by("subject")
        named = list(sessions.values_list("subject", flat=True).distinct()[: at_most + 1])
        more = set(named[:at_most])
        found = set(more)
        while more:
            targets = Subject.objects.filter(pk__in=more).values_list("merged_into", flat=True)
            more = {pk for pk in targets if pk and pk not in found}
            found |= more
        return CoveredSubjects(frozenset(found), are_more=len(named) > at_most)
