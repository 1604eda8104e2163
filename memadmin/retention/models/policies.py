"""Retention policies and their versions. A version is never changed: another one follows it."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, names_actor
from memadmin.audit.log.triggers import Calling
from memadmin.retention.models import querysets
from memadmin.retention.policies.lengths import Length, Unit
from memadmin.retention.policies.rules import SCOPE, Action, Rule


class RetentionPolicy(models.Model):
    """A policy: its name. What it says is in its versions."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    name = models.CharField(max_length=80, unique=True)
    # The one that decides where no other does; there is exactly one, and it cannot be ended.
    is_default = models.BooleanField(default=False, db_default=False, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ()
        permissions: ClassVar = [
            ("view_policy", "Can see retention policies and their runs"),
            ("change_policy", "Can propose and cancel changes of retention policies"),
            ("approve_policy", "Can approve changes of retention policies"),
        ]
        verbose_name_plural = "retention policies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_policy"),
        ]
        triggers: ClassVar = [
            Calling("keep_default", "memadmin_keep_default_policy()", before="UPDATE", level=pgtrigger.Row),
            *audit.govern("retention_policy", columns=["name", "is_default"]),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("policies:policy", args=[self.pk])


class PolicyVersion(models.Model):
    """Content of a policy from `starts_at` on, until a later version starts.

    A change that could take more waits for a second person, and then for the grace period.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    policy = models.ForeignKey(RetentionPolicy, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()

    # What it is about: the name of a target, and fields that narrow it. An empty field is about everything.
    target = models.CharField(max_length=20)
    store = models.CharField(max_length=64, default="", db_default="", blank=True)
    session_pattern = models.CharField(max_length=300, default="", db_default="", blank=True)
    agent = models.CharField(max_length=200, default="", db_default="", blank=True)
    label = models.CharField(max_length=50, default="", db_default="", blank=True)
    subject_kind = models.CharField(max_length=16, default="", db_default="", blank=True)
    is_encrypted = models.BooleanField(null=True, blank=True)
    kind = models.CharField(max_length=20, default="", db_default="", blank=True)
    status = models.CharField(max_length=20, default="", db_default="", blank=True)

    clock = models.CharField(max_length=20)
    action = models.CharField(max_length=12, choices=Action)
    length_count = models.PositiveIntegerField(null=True, blank=True)
    length_unit = models.CharField(max_length=6, choices=Unit, default="", db_default="", blank=True)
    minimum_count = models.PositiveIntegerField(null=True, blank=True)
    minimum_unit = models.CharField(max_length=6, choices=Unit, default="", db_default="", blank=True)
    minimum_reference = models.CharField(max_length=300, default="", db_default="", blank=True)
    note = models.CharField(max_length=500, default="", db_default="", blank=True)
    # The policy ends with this version.
    is_end = models.BooleanField(default=False, db_default=False)

    reason = models.CharField(max_length=500, default="", db_default="", blank=True)
    # Counts of what it would have taken when it was proposed, by place; see `preview`.
    preview = models.JSONField(default=dict, db_default={})
    needs_approval = models.BooleanField(default=True, db_default=True)

    # The one that the installation made has none.
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    starts_at = models.DateTimeField(null=True)
    # Closed versions never come into force: withdrawn, rejected, or cancelled in the grace period.
    closed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    closed_at = models.DateTimeField(null=True)
    closing_reason = models.CharField(max_length=500, default="", db_default="", blank=True)

    objects = querysets.PolicyVersionQuerySet.as_manager()

    CONTENT: ClassVar = (
        *("target", *SCOPE, "clock", "action", "length_count", "length_unit"),
        *("minimum_count", "minimum_unit", "minimum_reference", "note", "is_end"),
    )
    """Columns that say what the policy does; they are never changed."""

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["policy", "number"], name="policy_version_number"),
            models.UniqueConstraint(
                fields=["policy"],
                condition=Q(starts_at__isnull=True, closed_at__isnull=True),
                name="policy_one_change_awaits",
            ),
            models.CheckConstraint(
                condition=Q(action="keep", length_count__isnull=True, length_unit="")
                | (~Q(action="keep") & Q(length_count__gte=1) & ~Q(length_unit="")),
                name="policy_length_unless_kept",
            ),
            models.CheckConstraint(
                condition=Q(minimum_count__isnull=True, minimum_unit="", minimum_reference="")
                | (Q(minimum_count__gte=1) & ~Q(minimum_unit="") & ~Q(minimum_reference="")),
                name="policy_minimum_has_reference",
            ),
            models.CheckConstraint(
                condition=Q(starts_at__isnull=True) | Q(needs_approval=False) | Q(approval__isnull=False),
                name="policy_starts_after_approval",
            ),
        ]
        triggers: ClassVar = [
            Calling("add", "memadmin_add_policy_version()", before="INSERT", level=pgtrigger.Row),
            Calling("keep", "memadmin_keep_policy_version()", before="UPDATE", level=pgtrigger.Row),
            Calling("start", "memadmin_start_policy_version()", before="UPDATE", level=pgtrigger.Row),
            Calling("keep_all", "memadmin_keep_policy_versions()", before="ANY CHANGE", level=pgtrigger.Statement),
            names_actor("closed_by_id"),
            *audit.govern(
                "retention_policy_version",
                columns=[
                    *("policy", "number", "target", *SCOPE, "clock", "action", "length_count", "length_unit"),
                    *("minimum_count", "minimum_unit", "minimum_reference", "note", "is_end", "reason"),
                    *("approval", "starts_at", "closed_by", "closed_at", "closing_reason"),
                ],
                hidden=["session_pattern", "label", "note", "reason", "closing_reason"],
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.policy_id}"

    @property
    def length(self) -> Length | None:
        return Length(self.length_count, Unit(self.length_unit)) if self.length_count else None

    @property
    def minimum(self) -> Length | None:
        return Length(self.minimum_count, Unit(self.minimum_unit)) if self.minimum_count else None

    @property
    def scope(self) -> dict[str, str | bool]:
        """Fields that narrow it, with their values."""
        return {name: getattr(self, name) for name in SCOPE if getattr(self, name) not in ("", None)}

    def rule(self) -> Rule:
        """The version as a value. Its policy must be loaded."""
        return Rule(
            policy=self.policy_id,
            name=self.policy.name,
            version=self.pk,
            number=self.number,
            target=self.target,
            clock=self.clock,
            action=Action(self.action),
            length=self.length,
            minimum=self.minimum,
            reference=self.minimum_reference,
            scope=self.scope,
            is_default=self.policy.is_default,
        )

    @property
    def awaits_approval(self) -> bool:
        return self.starts_at is None and self.closed_at is None

    @property
    def is_in_grace(self) -> bool:
        return self.starts_at is not None and self.closed_at is None and self.starts_at > now()

    @property
    def closed_as(self) -> str:
        """Why it is closed, in words: "cancelled in the grace period", "rejected"."""
        if self.approval and not self.approval.is_approved:
            return self.approval.get_decision_display()
        return "cancelled in the grace period"

    @property
    def is_open(self) -> bool:
        """Whether it can still be stopped before it takes effect."""
        return self.awaits_approval or self.is_in_grace
