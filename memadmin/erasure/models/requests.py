"""Requests of people about their data, and the log of each case."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, takes_approval
from memadmin.erasure import querysets
from memadmin.runs.models import Run
from memadmin.runs.workers_alone import workers_alone
from sessions_app.models import Subject


class SubjectRequest(models.Model):
    """One request about one subject, from its receipt to its end: a case.

    Contains no personal data except `locators`, which are encrypted and destroyed at the end, and the notes.
    """

    class Kind(models.TextChoices):
        ERASURE = "erasure", "erasure"
        ACCESS = "access", "access"
        RESTRICTION = "restriction", "restriction"

    class State(models.TextChoices):
        RECEIVED = "received", "received"
        CHECKED = "checked", "identity checked"
        AWAITING = "awaiting", "awaiting approval"
        APPROVED = "approved", "approved"
        RUNNING = "running", "running"
        SCANNING = "scanning", "scanning"
        COMPLETE = "complete", "complete"
        COMPLETE_WITH_EXCEPTIONS = "exceptions", "complete with exceptions"
        FAILED = "failed", "failed"
        REFUSED = "refused", "refused"
        CANCELLED = "cancelled", "cancelled"

    class Channel(models.TextChoices):
        FORM = "form", "web form"
        LETTER = "letter", "letter"
        EMAIL = "email", "e-mail"
        PHONE = "phone", "telephone"
        PERSON = "person", "in person"
        COMMAND = "command", "command"
        FILE = "file", "CSV file"
        REPLAY = "replay", "repeated after a restore"

    class Ground(models.TextChoices):
        """Why data must be erased: GDPR article 17 (1)."""

        NOT_NEEDED = "not_needed", "no longer needed, article 17(1)(a)"
        CONSENT = "consent", "consent withdrawn, article 17(1)(b)"
        OBJECTION = "objection", "objection, article 17(1)(c)"
        UNLAWFUL = "unlawful", "processed unlawfully, article 17(1)(d)"
        LEGAL_DUTY = "legal_duty", "legal duty to erase, article 17(1)(e)"
        CHILD = "child", "data of a child, article 17(1)(f)"

    class Refusal(models.TextChoices):
        """Why a request is refused: GDPR articles 12 (5), 12 (6) and 17 (3)."""

        IDENTITY = "identity", "identity not proved, article 12(6)"
        UNFOUNDED = "unfounded", "manifestly unfounded or excessive, article 12(5)"
        EXPRESSION = "expression", "freedom of expression, article 17(3)(a)"
        LEGAL_DUTY = "legal_duty", "legal duty to keep, article 17(3)(b)"
        PUBLIC_HEALTH = "public_health", "public health, article 17(3)(c)"
        ARCHIVE = "archive", "archiving or research, article 17(3)(d)"
        LEGAL_CLAIM = "legal_claim", "legal claims, article 17(3)(e)"

    # The number is for people, the id for addresses and the audit log.
    number = models.BigAutoField(primary_key=True)
    id = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), unique=True, editable=False)
    kind = models.CharField(max_length=12, choices=Kind)
    state = models.CharField(max_length=12, choices=State, default=State.RECEIVED, db_default=State.RECEIVED)
    # Its row stays when the subject is erased, without any id of the host application.
    subject = models.ForeignKey(Subject, on_delete=models.PROTECT, related_name="requests")
    ground = models.CharField(max_length=12, choices=Ground, default="", db_default="", blank=True)
    channel = models.CharField(max_length=8, choices=Channel)
    received_on = models.DateField()
    due_on = models.DateField()
    # The first due date, if the time was extended (GDPR article 12 (3)).
    first_due_on = models.DateField(null=True)
    # Percentage of the time for which a reminder was sent last: 0, 50, 75 or 90.
    reminded = models.PositiveSmallIntegerField(default=0, db_default=0)

    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    opened_at = models.DateTimeField(db_default=Now())
    identity_checked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    identity_checked_at = models.DateTimeField(null=True)
    # Counts by holder, as `memadmin.erasure.preview` makes them.
    preview = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    previewed_at = models.DateTimeField(null=True)
    # Its newest one. A case that a batch opened has none of its own: see `decision`.
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    starts_at = models.DateTimeField(null=True, help_text="until then it can be cancelled")
    started_at = models.DateTimeField(null=True, help_text="first change that cannot be undone")
    run = models.OneToOneField(Run, null=True, on_delete=models.PROTECT, related_name="subject_request")
    refusal = models.CharField(max_length=16, choices=Refusal, default="", db_default="", blank=True)
    closed_at = models.DateTimeField(null=True)

    # Ids and names by which the person is looked for after the erasure, encrypted; see `memadmin.erasure.locators`.
    locators = models.BinaryField(default=b"", db_default=b"")
    # What each scan read and found: see `memadmin.erasure.scan`.
    scans = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    # A scan that the case waits for: its number, or what it has found; see `memadmin.erasure.scan`.
    pending_scan = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    # The run that searches for this case together with others; empty if its own run does.
    scanned_by = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="scanned_requests")
    # The signed receipt, byte by byte.
    receipt = models.TextField(default="", db_default="", blank=True)

    objects = querysets.SubjectRequestQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        permissions: ClassVar = [
            ("view_request", "Can see data-subject requests"),
            ("handle_request", "Can open and handle data-subject requests"),
            ("approve_request", "Can approve erasures that another person requested"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["subject", "kind"], condition=Q(closed_at__isnull=True), name="request_open_once"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, state__in=["received", "checked", "awaiting"])
                | Q(closed_at__isnull=True, state__in=["approved", "running", "scanning"])
                | Q(
                    closed_at__isnull=False,
                    state__in=["complete", "exceptions", "failed", "refused", "cancelled"],
                ),
                name="request_state_says_whether_it_is_closed",
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True) | Q(locators=b""), name="closed_request_has_no_locators"
            ),
        ]
        indexes: ClassVar = [
            models.Index("due_on", "number", condition=Q(closed_at__isnull=True), name="request_open_by_due"),
            models.Index(F("closed_at").desc(), F("number").desc(), name="request_closed_newest"),
            models.Index("subject", F("number").desc(), name="request_of_subject"),
        ]
        triggers: ClassVar = [
            *audit.govern(
                "request",
                columns=[
                    *("kind", "state", "subject", "ground", "channel", "received_on", "due_on", "first_due_on"),
                    *("identity_checked_by", "approval", "starts_at", "refusal", "closed_at"),
                ],
                subject="subject",
            ),
            takes_approval("erasure", "starts_at"),
            # Erasures that start without an approval of their own: those of a batch, and those that a replay repeats.
            *workers_alone("run", ["run_id"], condition="NEW.kind = 'erasure' AND NEW.starts_at IS NULL"),
            *workers_alone("facts", ["scans", "pending_scan", "scanned_by_id", "receipt", "started_at"]),
            # From then on a worker erases whom and what they name, and states it in the receipt.
            *workers_alone(
                "started",
                ["id", "number", "kind", "state", "subject_id", "received_on", "preview", "run_id", "closed_at"],
                operations=["UPDATE"],
                condition="OLD.started_at IS NOT NULL",
            ),
        ]

    def __str__(self) -> str:
        return f"DSR-{self.number:04}"

    def get_absolute_url(self) -> str:
        return reverse("erasure:request", args=[self.id])

    @property
    def is_closed(self) -> bool:
        return self.closed_at is not None

    @property
    def is_started(self) -> bool:
        """Whether something was changed that cannot be undone."""
        return self.started_at is not None

    @property
    def decision(self) -> Approval | None:
        """Its approval, or that of the batch that opened it; a repeated erasure has none."""
        batch = getattr(self.scanned_by, "request_batch", None)
        return batch.approval if batch else self.approval

    def note(self, code: RequestNote.Code, *, by: User | None = None, text: str = "") -> RequestNote:
        """Adds an entry to the case log, in the caller's transaction."""
        return RequestNote.objects.create(request=self, code=code, by=by, text=text)


class RequestNote(models.Model):
    """Entry of a case's log: what happened, and the text that a person wrote about it.

    The text can contain personal data; it is erased when an erasure is complete.
    """

    class Code(models.TextChoices):
        RECEIVED = "received", "Received"
        JOINED = "joined", "The same request was received again"
        COMMENT = "comment", "Comment"
        CHECKED = "checked", "Identity checked"
        PREVIEWED = "previewed", "Preview made"
        REQUESTED = "requested", "Approval requested"
        SENT_BACK = "sent_back", "Sent back"
        APPROVED = "approved", "Approved"
        EXTENDED = "extended", "Time extended"
        REMINDED = "reminded", "Reminder sent"
        ALERTED = "alerted", "Alert sent"
        CANCELLED = "cancelled", "Cancelled"
        REFUSED = "refused", "Refused"
        STARTED = "started", "Started"
        STOPPED = "stopped", "Stopped"
        LEFT_OUT = "left_out", "Left out by decision"
        SCANNED = "scanned", "Scanned"
        FOUND = "found", "The scan found data"
        COPY_BUILT = "copy_built", "Copy built"
        COPY_FETCHED = "copy_fetched", "Copy downloaded"
        COPY_DELETED = "copy_deleted", "Copy deleted"
        HANDED_OVER = "handed_over", "Copy handed over"
        CLOSED = "closed", "Closed"
        REOPENED = "reopened", "Opened again"

    id = models.BigAutoField(primary_key=True)
    request = models.ForeignKey(SubjectRequest, on_delete=models.CASCADE, related_name="notes")
    at = models.DateTimeField(db_default=Now())
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    code = models.CharField(max_length=12, choices=Code)
    text = models.TextField(max_length=2_000, default="", db_default="", blank=True)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"note {self.pk} of request {self.request_id}"
