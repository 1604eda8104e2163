"""Batches: many erasures from one file, with one approval."""

from __future__ import annotations

import uuid
from datetime import date
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, takes_approval
from memadmin.erasure import querysets
from memadmin.erasure.deadlines import due_date
from memadmin.erasure.models.requests import SubjectRequest
from memadmin.runs.models import Run
from memadmin.runs.workers_alone import workers_alone
from sessions_app.models import Subject


class RequestBatch(models.Model):
    """Erasures that were uploaded as one file and are approved together. Contains no personal data but its note."""

    class State(models.TextChoices):
        UPLOADED = "uploaded", "uploaded"
        AWAITING = "awaiting", "awaiting approval"
        APPROVED = "approved", "approved"
        RUNNING = "running", "running"
        COMPLETE = "complete", "complete"
        COMPLETE_WITH_EXCEPTIONS = "exceptions", "complete with exceptions"
        CANCELLED = "cancelled", "cancelled"

    # The number is for people, the id for addresses and the audit log.
    number = models.BigAutoField(primary_key=True)
    id = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), unique=True, editable=False)
    state = models.CharField(max_length=12, choices=State, default=State.UPLOADED, db_default=State.UPLOADED)
    # A name without what could hide in it; the file itself is not kept.
    file_name = models.CharField(max_length=80)
    file_size = models.PositiveIntegerField()
    file_sha256 = models.CharField(max_length=64)
    ground = models.CharField(max_length=12, choices=SubjectRequest.Ground)
    note = models.TextField(max_length=2_000, default="", db_default="", blank=True)
    received_on = models.DateField()
    due_on = models.DateField()
    # Percentage of the time for which a reminder was sent last, as of a request.
    reminded = models.PositiveSmallIntegerField(default=0, db_default=0)

    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    uploaded_at = models.DateTimeField(db_default=Now())
    # Totals by place, as `memadmin.erasure.batches.previews` makes them.
    preview = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    preview_run = models.OneToOneField(Run, null=True, on_delete=models.PROTECT, related_name="previewed_batch")
    previewed_at = models.DateTimeField(null=True)
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    starts_at = models.DateTimeField(null=True, help_text="until then it can be cancelled")
    started_at = models.DateTimeField(null=True, help_text="first case that was opened")
    run = models.OneToOneField(Run, null=True, on_delete=models.PROTECT, related_name="request_batch")
    closed_at = models.DateTimeField(null=True)

    objects = querysets.RequestBatchQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["file_sha256"], condition=Q(closed_at__isnull=True), name="batch_open_once_per_file"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, state__in=["uploaded", "awaiting", "approved", "running"])
                | Q(closed_at__isnull=False, state__in=["complete", "exceptions", "cancelled"]),
                name="batch_state_says_whether_it_is_closed",
            ),
        ]
        triggers: ClassVar = [
            *audit.govern(
                "batch",
                columns=["state", "ground", "received_on", "due_on", "approval", "starts_at", "closed_at"],
            ),
            *workers_alone(
                "facts", ["started_at", "preview", "previewed_at"], may_be_emptied=["preview", "previewed_at"]
            ),
            takes_approval("erasure_batch", "starts_at"),
        ]

    def __str__(self) -> str:
        return f"B-{self.number:04}"

    def get_absolute_url(self) -> str:
        return reverse("batches:batch", args=[self.id])

    @property
    def is_closed(self) -> bool:
        return self.closed_at is not None

    @property
    def first_due_on(self) -> date | None:
        """The first due date, if the time was extended."""
        first = due_date(self.received_on)
        return first if self.due_on != first else None

    @property
    def decision(self) -> Approval | None:
        return self.approval

    @property
    def is_started(self) -> bool:
        """Whether a case was opened, which may have erased something."""
        return self.started_at is not None


class BatchLine(models.Model):
    """One line of the file. A line with a problem is not part of the batch."""

    class Problem(models.TextChoices):
        MISSING = "missing", "The key is missing."
        TOO_LONG = "too_long", "The key or the note is too long, or contains a NUL."
        SEPARATORS = "separators", "Two separators, 3 columns expected."
        WRONG_KIND = "wrong_kind", "The kind is not user, project or tenant."
        UNKNOWN = "unknown", "Unknown subject."
        DUPLICATE = "duplicate", "Duplicate of another line."
        MERGED = "merged", "Merged into another subject; erase the merged subject by its own request."
        OPEN = "open", "Another erasure of this subject is open; this line would join it."
        HELD = "held", "On hold: left out."
        CHANGED = "changed", "Subjects, IDs or sessions changed after the count: left out."

    CORRECTABLE = (Problem.MISSING, Problem.TOO_LONG, Problem.SEPARATORS, Problem.WRONG_KIND, Problem.UNKNOWN)

    id = models.BigAutoField(primary_key=True)
    batch = models.ForeignKey(RequestBatch, on_delete=models.CASCADE, related_name="lines")
    number = models.PositiveIntegerField()
    # Key, kind and note as in the file, encrypted, until the batch is closed; see `memadmin.erasure.batches.sealed`.
    sealed = models.BinaryField(default=b"", db_default=b"")
    problem = models.CharField(max_length=12, choices=Problem, default="", db_default="", blank=True)
    # Number that the problem names: of the other line, of the open request, or of the hold.
    other = models.BigIntegerField(null=True)
    subject = models.ForeignKey(Subject, null=True, on_delete=models.PROTECT, related_name="+")
    # What the approval covers, as of the count: see `memadmin.erasure.extents`.
    extent = models.CharField(max_length=64, default="", db_default="", editable=False)
    request = models.ForeignKey(SubjectRequest, null=True, on_delete=models.PROTECT, related_name="batch_lines")

    class Meta:
        default_permissions = ()
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["batch", "number"], name="line_of_batch_once"),
            models.UniqueConstraint(fields=["batch", "subject"], condition=Q(problem=""), name="subject_of_batch_once"),
            models.CheckConstraint(
                condition=~Q(problem="") | Q(subject__isnull=False), name="accepted_line_has_its_subject"
            ),
            models.CheckConstraint(
                condition=Q(problem="") | Q(request__isnull=True), name="broken_line_has_no_request"
            ),
        ]
        triggers: ClassVar = [audit.by_proven(), *workers_alone("facts", ["request_id", "extent"])]

    def __str__(self) -> str:
        return f"line {self.number} of batch {self.batch_id}"
