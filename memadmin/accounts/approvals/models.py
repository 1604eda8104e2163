"""The model of approvals."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memadmin import audit
from memadmin.audit.log.triggers import Calling


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def waiting(self, at: datetime) -> ApprovalQuerySet:
        return self.filter(waits(at))


def waits(at: datetime, prefix: str = "") -> Q:
    """Condition of approvals that wait at this instant; `prefix` leads to the approval, as in `approval__`."""
    in_time = Q(**{f"{prefix}expires_at__isnull": True}) | Q(**{f"{prefix}expires_at__gt": at})
    return Q(**{f"{prefix}decision": ""}) & in_time


class Approval(models.Model):
    """A decision of a second person: asked for by one, decided by another, about what has this digest.

    It is asked for once and decided once; the same object can have another one later. The object refers to its newest.
    """

    class Decision(models.TextChoices):
        APPROVED = "approved", "approved"
        REJECTED = "rejected", "rejected"
        WITHDRAWN = "withdrawn", "withdrawn"
        VOID = "void", "void: what it was about has changed"
        NOT_NEEDED = "not_needed", "no second person was required"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=32)
    object_ref = models.UUIDField()
    digest = models.CharField(max_length=64)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True)
    decision = models.CharField(max_length=16, choices=Decision, blank=True, default="", db_default="")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decided_at = models.DateTimeField(null=True, editable=False)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(decision="approved") | ~Q(decided_by=F("asked_by")) | Q(decided_by__isnull=True),
                name="approval_by_another_person",
            ),
            models.CheckConstraint(
                condition=Q(decision="", decided_at__isnull=True) | (~Q(decision="") & Q(decided_at__isnull=False)),
                name="approval_decided_at_a_time",
            ),
        ]
        indexes: ClassVar = [
            models.Index("kind", "asked_at", condition=Q(decision=""), name="approval_waiting"),
        ]
        triggers: ClassVar = [
            *audit.govern(
                "approval",
                columns=["kind", "object_ref", "digest", "asked_by", "expires_at", "decision", "decided_by"],
            ),
            Calling("ask", "memadmin_ask_approval()", before="INSERT"),
            Calling("decide", "memadmin_decide_approval()", before="UPDATE"),
        ]

    def __str__(self) -> str:
        return f"approval {self.pk}"

    def is_waiting_at(self, at: datetime) -> bool:
        return not self.decision and (self.expires_at is None or self.expires_at > at)

    def state_at(self, at: datetime) -> str:
        """Its state in words."""
        if self.decision:
            return self.get_decision_display()
        return "waiting for a second person" if self.is_waiting_at(at) else "expired"

    @property
    def is_approved(self) -> bool:
        """True if its object may take effect."""
        return self.decision in (self.Decision.APPROVED, self.Decision.NOT_NEEDED)


def takes_approval(kind: str, column: str, *, or_none: bool = False) -> Calling:
    """A trigger of a model with an `approval`: this column gets a value with an approval of this kind alone.

    With `or_none` one that says that no second person was required is enough.
    """
    also = ", 'not_needed'" if or_none else ""
    return Calling("approved", f"memadmin_require_approval('{kind}', '{column}'{also})", before="INSERT OR UPDATE")


def names_actor(*columns: str) -> Calling:
    """A trigger of a model: these columns name the person who acts in the transaction, or nobody."""
    quoted = ", ".join(f"'{column}'" for column in columns)
    return Calling("names_actor", f"memadmin_require_actor({quoted})", before="INSERT OR UPDATE")


def keeps_approval() -> Calling:
    """A trigger of a model whose rows may take effect without an approval: one that waits for one does not lose it."""
    return Calling("keeps_approval", "memadmin_keep_approval()", before="UPDATE OF approval_id")
