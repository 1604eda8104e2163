"""Reviews of memories, and approval rules."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from memadmin import audit
from memadmin.accounts.approvals.models import Approval
from memadmin.audit.log.triggers import Calling
from memories_app.models.memories import Memory


class ApprovalRule(models.Model):
    """A rule that approves proposals automatically. Never shared or risky ones: the trigger `gate` refuses.

    An empty condition matches all. A sample of its approvals goes to a person.
    """

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    name = models.CharField(max_length=120, unique=True)
    kinds = ArrayField(models.CharField(max_length=16, choices=Memory.Kind), default=list, db_default=Value("{}"))
    provenance = models.CharField(max_length=8, choices=Memory.Provenance, blank=True, db_default="", default="")
    sources = ArrayField(models.CharField(max_length=8, choices=Memory.Source), default=list, db_default=Value("{}"))
    extractor = models.CharField(max_length=80, blank=True, db_default="", default="")
    min_confidence = models.FloatField(db_default=0.9, default=0.9)
    sample_percent = models.PositiveSmallIntegerField(
        db_default=10, default=10, help_text="Percentage of approved proposals that a reviewer checks afterwards."
    )
    is_active = models.BooleanField(db_default=False, default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(min_confidence__gte=0.0, min_confidence__lte=1.0), name="rule_confidence_is_between_0_and_1"
            ),
            models.CheckConstraint(condition=Q(sample_percent__lte=100), name="sample_is_a_percentage"),
        ]
        triggers: ClassVar = [
            Calling("proven", "memadmin_rule_is_proven()", before="INSERT", level=pgtrigger.Row),
            Calling("proven_changes", "memadmin_rule_is_proven()", before="UPDATE", level=pgtrigger.Row),
            *audit.govern(
                "approval_rule",
                columns=[
                    "name",
                    "kinds",
                    "provenance",
                    "sources",
                    "extractor",
                    "min_confidence",
                    "sample_percent",
                    "is_active",
                ],
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Review(models.Model):
    """One decision about one text of a memory, by a person or by a rule."""

    class Decision(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        MERGE = "merge", "merged"
        RETIRE = "retire", "retired"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    rule = models.ForeignKey(ApprovalRule, null=True, on_delete=models.PROTECT, related_name="+")
    decision = models.CharField(max_length=8, choices=Decision)
    reason_code = models.CharField(max_length=40, db_default="", default="", blank=True)
    note = models.CharField(max_length=1000, db_default="", default="", blank=True)
    # The hash of the decided text, also after later changes of the memory.
    content_hash = models.CharField(max_length=64)
    was_edited = models.BooleanField(db_default=False, default=False)
    # A rule's approval that a person must check, and the result.
    is_sample = models.BooleanField(db_default=False, default=False)
    agreed = models.BooleanField(null=True)
    waited = models.DurationField(null=True)
    decided_at = models.DateTimeField(db_default=Now())
    # Of a second person: what the first one asked for.
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    undone_at = models.DateTimeField(null=True)
    # Columns of the changed or merged memory for undoing; its text is a version.
    before = models.JSONField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index("memory", "decided_at", name="review_of_memory"),
            models.Index(F("decided_at").desc(), F("id").desc(), name="review_newest"),
            models.Index("rule", condition=Q(is_sample=True, agreed__isnull=True), name="review_samples_to_see"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(rule__isnull=True) | Q(reviewer__isnull=True), name="a_person_or_a_rule_decides"
            ),
        ]
        triggers: ClassVar = [
            Calling("proven", "memadmin_decision_is_proven()", before="INSERT", level=pgtrigger.Row),
            Calling("proven_changes", "memadmin_decision_is_proven()", before="UPDATE", level=pgtrigger.Row),
            *audit.govern(
                "review",
                columns=[
                    "memory",
                    "reviewer",
                    "rule",
                    "decision",
                    "reason_code",
                    "note",
                    "content_hash",
                    "was_edited",
                    "is_sample",
                    "agreed",
                    "decided_at",
                    "approval",
                    "undone_at",
                ],
                hidden=["note"],
            ),
        ]

    def __str__(self) -> str:
        return f"review {self.pk}"
