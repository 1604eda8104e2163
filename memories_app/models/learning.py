"""Signals, distillations of sessions with their cost, and learning stops."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from memories_app.models.erased_sources import not_of_erased
from memories_app.models.memories import LONGEST_QUOTE, Memory
from sessions_app.models import Subject


class LearningStop(models.Model):
    """A learning stop of a subject. The database refuses proposals and signals about it."""

    subject = models.OneToOneField(Subject, primary_key=True, on_delete=models.CASCADE, related_name="learning_stop")
    since = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        triggers: ClassVar = [
            Calling("wait_for_learners", "memadmin_wait_for_learners()", before="INSERT", level=pgtrigger.Row),
            *audit.govern("learning_stop", columns=["subject"], subject="subject"),
        ]
        permissions: ClassVar = [("stop_learning", "Can stop and allow learning about a subject")]

    def __str__(self) -> str:
        return f"learning stop of subject {self.subject_id}"


class Signal(models.Model):
    """Input for distillers: a correction, a wish, the outcome of a run, a rating, an operator's note."""

    class Kind(models.TextChoices):
        CORRECTION = "correction", "correction"
        PREFERENCE = "preference", "preference"
        OUTCOME = "outcome", "outcome"
        RATING = "rating", "rating"
        FEEDBACK = "feedback", "operator feedback"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    subject = models.ForeignKey(
        Subject, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="signals"
    )
    record_id = models.UUIDField(null=True)
    session_id = models.CharField(db_default="", default="", blank=True)
    item_id = models.CharField(max_length=200, db_default="", default="", blank=True)
    kind = models.CharField(max_length=12, choices=Kind)
    # -1 and 1 for thumbs and outcomes; 1 to 5 for ratings.
    value = models.SmallIntegerField(null=True)
    text = models.TextField(db_default="", default="", blank=True)
    agent = models.CharField(max_length=200, db_default="", default="", blank=True)
    # The memory that it is about, if a recalled one helped or was corrected.
    memory = models.ForeignKey(Memory, null=True, on_delete=models.CASCADE, db_index=False, related_name="signals")
    given_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    distilled_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        indexes: ClassVar = [
            models.Index("record_id", "item_id", name="signal_of_item"),
            models.Index("subject", F("created_at").desc(), name="signal_of_subject"),
            models.Index("memory", condition=Q(memory__isnull=False), name="signal_of_memory"),
            models.Index("created_at", "id", name="signal_oldest"),
            models.Index("created_at", "id", condition=Q(distilled_at__isnull=True), name="signal_to_distil"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=LessThanOrEqual(Length("text"), LONGEST_QUOTE), name="signal_is_short"),
            models.CheckConstraint(
                condition=Q(kind__in=["correction", "preference", "outcome", "rating", "feedback"]),
                name="signal_kind_is_known",
            ),
        ]
        triggers: ClassVar = [
            Calling("may_learn", "memadmin_may_learn()", before="INSERT", level=pgtrigger.Row),
            *not_of_erased("memadmin_refuse_erased_source()", "subject_id", "record_id"),
            *audit.govern(
                "signal",
                columns=[
                    *("subject", "record_id", "session_id", "item_id", "kind", "value", "text", "agent", "memory"),
                    "given_by",
                ],
                subject="subject",
                hidden=["session_id", "text"],
                agents_add=True,
            ),
        ]

    def __str__(self) -> str:
        return f"signal {self.pk}"


class Distillation(models.Model):
    """One distillation of one session: result and cost."""

    class Outcome(models.TextChoices):
        RUNNING = "running", "running"
        DONE = "done", "done"
        NONSENSE = "nonsense", "unreadable answer"
        TIMED_OUT = "timed_out", "timed out"
        FAILED = "failed", "failed"
        REFUSED = "refused", "learning not allowed"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    record_id = models.UUIDField()
    session_id = models.CharField()
    distiller = models.CharField(max_length=80)
    # The registry's count of writes up to which it was read; see SessionRecord.activity_count.
    read_up_to = models.BigIntegerField(db_default=0, default=0)
    # The last item read, and its digest: the next distillation continues there. Ids of items can change.
    last_item_id = models.CharField(max_length=200, db_default="", default="")
    last_item_hash = models.CharField(max_length=64, db_default="", default="")
    began_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12, choices=Outcome, db_default=Outcome.RUNNING, default=Outcome.RUNNING)
    model_calls = models.PositiveIntegerField(db_default=0, default=0)
    input_tokens = models.PositiveBigIntegerField(db_default=0, default=0)
    output_tokens = models.PositiveBigIntegerField(db_default=0, default=0)
    proposal_count = models.PositiveIntegerField(db_default=0, default=0)
    # Numbers of dropped results, by reason; see learning.distillers.types.OmissionReason.
    left_out = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        indexes: ClassVar = [
            models.Index("record_id", F("began_at").desc(), name="distillation_of_session"),
            models.Index(F("began_at").desc(), F("id").desc(), name="distillation_newest"),
        ]

    def __str__(self) -> str:
        return f"distillation {self.pk}"
