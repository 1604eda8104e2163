"""Results of sweeps: what one run did under one version of a policy at one place. Steps of the run, and its ledger."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.functional import cached_property

from memadmin import audit
from memadmin.retention.models import querysets
from memadmin.retention.models.policies import PolicyVersion
from memadmin.runs.models import Run
from sessions_app.models import SessionStore


class SweepResult(models.Model):
    """Counts of one run under one version at one place. Contains no personal data."""

    class State(models.TextChoices):
        TO_DO = "to_do", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        SKIPPED = "skipped", "skipped"

    FINISHED: ClassVar = (State.DONE, State.SKIPPED)

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sweep_results")
    version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="results")
    # Name of a store; empty for the console's own tables.
    place = models.CharField(max_length=64, default="", db_default="", blank=True)
    position = models.PositiveIntegerField(default=0, db_default=0)
    state = models.CharField(max_length=8, choices=State, default=State.TO_DO, db_default=State.TO_DO)
    # Why it was skipped, or does not go on: a sentence without personal data.
    reason = models.CharField(max_length=400, default="", db_default="", blank=True)
    # Rows that were due when the run began, null if they could not be counted; and rows that it took: sessions,
    # memories or others, as the target counts. `items` are those of the sessions.
    previewed = models.BigIntegerField(null=True)
    previewed_items = models.BigIntegerField(null=True)
    taken = models.BigIntegerField(default=0, db_default=0)
    items = models.BigIntegerField(default=0, db_default=0)
    held = models.BigIntegerField(default=0, db_default=0)
    live = models.BigIntegerField(default=0, db_default=0)
    # Rows that stay for now, by the code of the reason.
    left = models.JSONField(default=dict, db_default={})
    # Rows deleted or changed, by table.
    tables = models.JSONField(default=dict, db_default={})
    # Whether a person was asked because it would take far more than expected.
    has_asked = models.BooleanField(default=False, db_default=False)
    cursor = models.JSONField(default=dict, db_default={})
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # When the run ended: rows that were due and stay, since when the oldest of them is due, and rows due by tomorrow.
    backlog = models.BigIntegerField(null=True)
    behind_since = models.DateTimeField(null=True)
    forecast = models.BigIntegerField(null=True)

    objects = querysets.SweepResultQuerySet.as_manager()

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "version", "place"], name="sweep_result_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["version", "place", "-id"], name="sweep_result_of_version")]

    def __str__(self) -> str:
        return f"result {self.pk} of R-{self.run_id}"

    @cached_property
    def store(self) -> SessionStore | None:
        """The store of the place, as it was when it was first asked for; None if the place is none, or is not there."""
        return SessionStore.objects.filter(name=self.place).first()


class UnfinishedExpiry(models.Model):
    """A session of which a sweep has deleted some items: the next chunk, or the next run, goes on with it.

    Its fence is up then, so that no agent writes between items that go. Sessions of other systems have a row, without a
    fence, already before the first item goes; so have those that go on without some of their items.
    """

    record_id = models.UUIDField(primary_key=True)
    version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="+")
    since = models.DateTimeField(auto_now_add=True)
    # Of other systems: items that were there, without those that are counted as deleted.
    items = models.BigIntegerField(null=True)
    # Of a session of another system that goes on: the items that are about to go, as pairs of id and mark.
    item_marks = models.JSONField(null=True)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()

    def __str__(self) -> str:
        return f"unfinished expiry of session {self.record_id}"


class SweptTable(models.Model):
    """Rows that one run deleted from one table, and the space that VACUUM gave back afterwards.

    Only for tables of which a run deleted or changed many rows.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="swept_tables")
    # table, or schema.table
    name = models.CharField(max_length=127)
    rows = models.BigIntegerField(help_text="deleted or changed by the run")
    # With indexes and partitions, in bytes, before and after VACUUM; null after it if it did not take place.
    size_before = models.BigIntegerField()
    size_after = models.BigIntegerField(null=True)
    vacuumed_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "name"], name="swept_table_once"),
            models.CheckConstraint(
                condition=models.Q(vacuumed_at__isnull=True, size_after__isnull=True)
                | models.Q(vacuumed_at__isnull=False, size_after__isnull=False),
                name="swept_table_size_after_vacuum",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["name", "-id"], name="swept_table_newest")]

    def __str__(self) -> str:
        return f"{self.name} after R-{self.run_id}"

    @property
    def given_back(self) -> int | None:
        """Bytes that the file system got back; None if it was not vacuumed."""
        return None if self.size_after is None else max(self.size_before - self.size_after, 0)


class SweepAlert(models.Model):
    """A mail to compliance about a run. One is sent about each matter; about silence, one every week."""

    class About(models.TextChoices):
        STOPPED = "stopped", "the run stopped or failed"
        INCOMPLETE = "incomplete", "the run has exceptions"
        BACKLOG = "backlog", "what is due grew in three runs in a row"
        SILENT = "silent", "no run has succeeded for two nights"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sweep_alerts")
    # For a growing backlog: the last result of the growth.
    result = models.ForeignKey(SweepResult, null=True, on_delete=models.CASCADE, related_name="alerts")
    about = models.CharField(max_length=10, choices=About)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()

    def __str__(self) -> str:
        return f"alert about R-{self.run_id}: {self.about}"
