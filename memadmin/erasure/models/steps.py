"""Steps of an erasure: the truth about its progress."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from memadmin import audit
from memadmin.erasure.models.requests import SubjectRequest
from memadmin.runs.workers_alone import workers_alone


class ErasureStep(models.Model):
    """One step of one erasure at one place: what it has erased, kept, and not reached."""

    class State(models.TextChoices):
        TO_DO = "to_do", "to do"
        RUNNING = "running", "running"
        WAITING = "waiting", "waiting"
        DONE = "done", "done"
        LEFT_OUT = "left_out", "left out"

    FINISHED = (State.DONE, State.LEFT_OUT)

    id = models.BigAutoField(primary_key=True)
    request = models.ForeignKey(SubjectRequest, on_delete=models.CASCADE, related_name="steps")
    name = models.CharField(max_length=40)
    # Name of a store; empty for what memadmin holds itself.
    place = models.CharField(max_length=64, default="", db_default="", blank=True)
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.TO_DO, db_default=State.TO_DO)
    # The last row that was done; rows are done in the order of their keys.
    cursor = models.CharField(default="", db_default="", blank=True)
    expected = models.PositiveBigIntegerField(default=0, db_default=0, help_text="rows at the approval")
    erased = models.PositiveBigIntegerField(default=0, db_default=0)
    held = models.PositiveBigIntegerField(default=0, db_default=0, help_text="rows kept by legal holds")
    # Codes of what stays besides, with counts; see `memadmin.erasure.exceptions`.
    exceptions = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    # Why it waits: a sentence without personal data.
    reason = models.CharField(max_length=400, default="", db_default="", blank=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        ordering: ClassVar = ["position", "place", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["request", "name", "place"], name="step_of_request_once"),
        ]
        triggers: ClassVar = [
            audit.by_proven(),
            *workers_alone(
                "facts",
                [
                    *("request_id", "name", "place", "position", "expected", "erased", "held", "exceptions", "reason"),
                    *("cursor", "started_at"),
                ],
                may_be_emptied=["cursor"],
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.name} of request {self.request_id}"

    @property
    def holder(self) -> str:
        return holder_name(self.name, self.place)


def holder_name(step: str, place: str) -> str:
    """Name of a holder of personal data in receipts and reports: `memories`, `sessions/main`."""
    return f"{step}/{place}" if place else step
