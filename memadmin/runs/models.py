"""Runs of long work: task, progress and worker."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from memadmin.runs import querysets
from memadmin.runs.workers_alone import workers_alone

PROGRESS = ("cursor", "counters", "exceptions", "done", "token")


class Run(models.Model):
    """One piece of long work. Its columns hold counts, names of columns and our own ids, never personal data.

    `token` is incremented by each worker that takes the run; every chunk locks this row and compares it, so a worker
    that lost its lease cannot write any more, however late it wakes up.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        PAUSED = "paused", "paused"
        STOPPED = "stopped", "stopped"
        CANCELLED = "cancelled", "cancelled"
        FAILED = "failed", "failed"
        COMPLETE = "complete", "complete"
        COMPLETE_WITH_EXCEPTIONS = "exceptions", "completed with exceptions"

    UNFINISHED = (State.WAITING, State.RUNNING, State.PAUSED, State.STOPPED)

    # The number is for people, the id for the audit log.
    number = models.BigAutoField(primary_key=True)
    id = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), unique=True, editable=False)
    kind = models.CharField(max_length=40)
    parameters = models.JSONField(default=dict, db_default={})
    state = models.CharField(max_length=20, choices=State, default=State.WAITING, db_default=State.WAITING)
    # Where to continue; its shape is the kind's own.
    cursor = models.JSONField(default=dict, db_default={})
    # Rows, items or sessions, as the kind counts them; the total is an estimate, and null when unknown.
    done = models.BigIntegerField(default=0, db_default=0)
    total = models.BigIntegerField(null=True)
    counters = models.JSONField(default=dict, db_default={})
    # Rows of code, place (such as the name of a store) and count.
    exceptions = models.JSONField(default=list, db_default=[])

    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    chunk_at = models.DateTimeField(null=True, help_text="when the last chunk was written")
    ended_at = models.DateTimeField(null=True)
    # Duration of chunks and the pauses between them, without times in which no process worked on it.
    worked_ms = models.BigIntegerField(default=0, db_default=0)

    token = models.BigIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=100, default="", db_default="", blank=True)

    # Failed attempts in a row, the time of the next one, and why the run does not move: a sentence without personal
    # data.
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    retry_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=400, default="", db_default="", blank=True)
    reason_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    rows_per_second = models.PositiveIntegerField(null=True, help_text="at most; empty for no limit")

    objects = querysets.RunQuerySet.as_manager()

    class Meta:
        default_permissions: ClassVar = []
        permissions: ClassVar = [
            ("view_run", "Can view background runs"),
            ("control_run", "Can pause, resume, cancel and limit background runs"),
        ]
        indexes: ClassVar = [
            models.Index("number", condition=Q(ended_at__isnull=True), name="run_unfinished"),
            models.Index(fields=["kind", "-number"], name="run_of_kind"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, state__in=["waiting", "running", "paused", "stopped"])
                | Q(ended_at__isnull=False, state__in=["cancelled", "failed", "complete", "exceptions"]),
                name="run_state_says_whether_it_ended",
            ),
        ]
        triggers: ClassVar = [
            audit.by_proven(),
            # A run that is cancelled loses its cursor.
            *workers_alone("progress", PROGRESS, may_be_emptied=["cursor"]),
            *workers_alone("order", ["kind", "parameters"], operations=["UPDATE"]),
            Calling("requester", "memadmin_requester_is_proven()", before="INSERT", level=pgtrigger.Row),
            Calling(
                "requester_changes",
                "memadmin_requester_is_proven()",
                before="UPDATE OF requested_by_id",
                level=pgtrigger.Row,
            ),
            # An erasure that is in the suppression ledger already.
            *workers_alone(
                "replay",
                ["parameters"],
                operations=["INSERT"],
                condition="jsonb_exists(NEW.parameters, 'replays')",
            ),
        ]

    def __str__(self) -> str:
        return f"R-{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("runs:detail", args=[self.number])

    def requester(self) -> User | None:
        """The person who requested it, with the columns that the worker may read; None without one. One query."""
        return User.objects.defer("password").filter(pk=self.requested_by_id).first() if self.requested_by_id else None

    @property
    def is_finished(self) -> bool:
        return self.ended_at is not None

    def add_exception(self, code: str, place: str = "", count: int = 1) -> None:
        """Counts an exception by its code and place. The caller saves, preferably in a chunk."""
        for row in self.exceptions:
            if row[0] == code and row[1] == place:
                row[2] += count
                return
        self.exceptions = sorted([*self.exceptions, [code, place, count]])

    def note(self, text: str) -> None:
        """Adds a sentence to the run's log, in the caller's transaction."""
        RunLog.objects.create(run=self, text=text[:500])

    def count(self, **counts: int) -> None:
        """Adds to counters. The caller saves, preferably in a chunk."""
        for name, count in counts.items():
            self.counters[name] = self.counters.get(name, 0) + count


class RunLog(models.Model):
    """Log entry of a run for its page: a sentence with counts and times, without personal data."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="log")
    at = models.DateTimeField(db_default=Now())
    text = models.CharField(max_length=500)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions: ClassVar = []
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"log entry {self.pk} of R-{self.run_id}"
