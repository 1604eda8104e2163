"""Requested redactions."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, keeps_approval
from memadmin.runs.models import Run
from sessions_app.models import querysets
from sessions_app.models.subjects import Subject


class Redaction(models.Model):
    """Redaction of a text in an item, a session or all sessions of a subject.

    The text is kept here until the run has ended, and no longer: it is in no address, job, log or event.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Of a subject neither of these; of one item, its id, too.
    record_id = models.UUIDField(null=True)
    session_id = models.CharField(default="")
    item_id = models.CharField(max_length=64, default="")
    # Keyed hash of the item as it was in the preview: in a store without item ids another may move to its place.
    item_mark = models.CharField(max_length=64, default="")
    subject = models.ForeignKey(Subject, null=True, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    # What the preview showed, as `ShownItems` keeps it; without a preview everything with the text is redacted.
    is_limited = models.BooleanField(default=False, db_default=False)
    shown = models.JSONField(default=dict, db_default={})
    shown_places = models.PositiveIntegerField(default=0, db_default=0)
    text = models.TextField(
        default="", help_text="Empty if all text of an item is redacted, and after the redaction has ended."
    )
    takes_all = models.BooleanField(default=False)
    takes_compactions = models.BooleanField(default=False)
    reason = models.CharField(max_length=40)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="The redaction is cancelled if it has not started by this time.")
    ended_at = models.DateTimeField(null=True)
    # Of one that takes a second person.
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    # How far it is, and what came of it.
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="redaction")

    objects = querysets.RedactionQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["-requested_at", "-id"], name="redaction_newest"),
            models.Index(fields=["requested_at"], condition=Q(ended_at__isnull=True), name="redaction_unfinished"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | Q(text=""), name="ended_redaction_forgets_its_text"
            ),
        ]
        triggers: ClassVar = [audit.by_proven(), keeps_approval()]
        default_permissions: ClassVar = []
        permissions: ClassVar = [("redact_content", "Can redact text in sessions")]

    def __str__(self) -> str:
        return f"redaction {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("sessions:redaction", args=[self.pk])

    @property
    def is_awaiting(self) -> bool:
        """Whether it waits for the approval of a second person."""
        return self.approval is not None and not self.approval.decision and self.ended_at is None
