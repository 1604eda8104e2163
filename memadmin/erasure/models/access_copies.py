"""Copies of a person's data for the person: GDPR article 15."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memadmin import audit
from memadmin.accounts.approvals.models import Approval
from memadmin.audit.log.triggers import Calling
from memadmin.erasure.models.requests import SubjectRequest
from memadmin.runs.models import Run
from memadmin.runs.workers_alone import workers_alone


class AccessCopy(models.Model):
    """One encrypted ZIP file in the data folder, from the start of its building until it is deleted.

    The row stays without the key: a copy of the file in a backup is unreadable then.
    """

    class State(models.TextChoices):
        BUILDING = "building", "being built"
        READY = "ready", "ready"
        DELETED = "deleted", "deleted"

    KEPT = (State.BUILDING, State.READY)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    request = models.ForeignKey(SubjectRequest, on_delete=models.CASCADE, related_name="copies")
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="access_copy")
    state = models.CharField(max_length=8, choices=State, default=State.BUILDING, db_default=State.BUILDING)
    # Key of the file, wrapped: see `memadmin.erasure.access_copy.keys`.
    key = models.BinaryField(default=b"", db_default=b"")
    file_name = models.CharField(max_length=80, default="", db_default="", blank=True)
    # Of the ZIP file as it is handed over.
    size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, default="", db_default="", blank=True)
    # Names of stores: that did not respond last, and that a person decided to leave out.
    waits_for = ArrayField(models.CharField(), default=list, db_default=models.Value("{}"), blank=True)
    left_out = ArrayField(models.CharField(), default=list, db_default=models.Value("{}"), blank=True)
    # That of a copy with locked sessions, and the ids of those that are in it.
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, related_name="+", editable=False)
    locked = ArrayField(models.UUIDField(), default=list, db_default=models.Value("{}"), blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now())
    ready_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    # Digest of the token in the one-time link; empty without a link that is still unused.
    token_digest = models.CharField(max_length=64, default="", db_default="", blank=True)
    token_until = models.DateTimeField(null=True)
    fetched_at = models.DateTimeField(null=True, help_text="last download")
    fetched_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        ordering: ClassVar = ["-created_at", "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["request"], condition=Q(state__in=["building", "ready"]), name="access_copy_once"
            ),
            models.CheckConstraint(
                condition=Q(state="deleted", deleted_at__isnull=False, key=b"", token_digest="")
                | Q(state="ready", deleted_at__isnull=True) & ~Q(key=b"") & ~Q(file_name="")
                | Q(state="building", deleted_at__isnull=True, token_digest="") & ~Q(key=b""),
                name="access_copy_deleted_has_no_key",
            ),
        ]
        indexes: ClassVar = [
            models.Index("expires_at", condition=Q(deleted_at__isnull=True), name="access_copy_expiring"),
        ]

        triggers: ClassVar = [
            audit.by_proven(),
            *workers_alone(
                "content", ["size", "sha256", "file_name", "ready_at", "locked"], may_be_emptied=["file_name"]
            ),
            *workers_alone(
                "order",
                ["request_id", "run_id", "created_at", "expires_at", "key"],
                may_be_emptied=["key"],
                operations=["UPDATE"],
            ),
            *(
                Calling(
                    f"approved_{event.lower()}",
                    "memadmin_require_copy_approval()",
                    before=event,
                    level=pgtrigger.Row,
                    condition=pgtrigger.Condition(condition),
                )
                for event, condition in (
                    ("INSERT", "NEW.approval_id IS NOT NULL"),
                    (
                        "UPDATE",
                        "NEW.approval_id IS NOT NULL AND (NEW.approval_id, NEW.request_id)"
                        " IS DISTINCT FROM (OLD.approval_id, OLD.request_id)",
                    ),
                )
            ),
        ]

    def __str__(self) -> str:
        return f"copy {self.pk} of request {self.request_id}"
