"""Requests to unlock sessions."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, takes_approval
from memadmin.accounts.purposes import Purpose


class UnlockRequest(models.Model):
    """Request to unlock sessions that were locked one by one. It has no text, so that no erasure has to look here."""

    class Reason(models.TextChoices):
        CASE_CLOSED = "case_closed", "the case is closed"
        MISTAKE = "mistake", "locked by mistake"
        NOT_SENSITIVE = "not_sensitive", "the content is not sensitive any more"
        NEEDED = "needed", "needed for daily work"
        LEGAL = "legal", "legal matter"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    # By the UUIDs of their registry rows.
    sessions = ArrayField(models.UUIDField())
    reason = models.CharField(max_length=16, choices=Reason)
    # Of reading, as the requester has stated it; empty where none is required.
    purpose = models.CharField(max_length=16, choices=Purpose, blank=True)
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    unlocked_at = models.DateTimeField(null=True, editable=False)
    unlocked_count = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        default_permissions = ()
        indexes: ClassVar = [
            models.Index(fields=["-requested_at", "-id"], name="unlock_request_newest"),
            # Where the trigger of a session that is unlocked looks.
            models.Index("approval", condition=Q(unlocked_at__isnull=True), name="unlock_request_open"),
        ]
        triggers: ClassVar = [
            *audit.govern(
                "unlock_request",
                columns=["requested_by", "sessions", "reason", "purpose", "approval", "unlocked_at"],
            ),
            takes_approval("unlocking", "unlocked_at", or_none=True),
        ]

    def __str__(self) -> str:
        return f"request to unlock {self.pk}"

    def get_absolute_url(self) -> str:
        return f"{reverse('sessions:unlock')}#unlock-{self.pk}"
