"""Querysets of role requests."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models

from memadmin.accounts.approvals.models import waits

if TYPE_CHECKING:
    from memadmin.accounts.models import RoleRequest


class RoleRequestQuerySet(models.QuerySet["RoleRequest"]):
    def with_people(self) -> RoleRequestQuerySet:
        """With the people and the right that pages show, and all that a decision is about. Two more queries."""
        people = self.select_related(
            "person", "approval__asked_by", "approval__decided_by", "role", "permission__content_type"
        )
        return people.prefetch_related("role__permissions__content_type")

    def awaiting_decision(self, at: datetime) -> RoleRequestQuerySet:
        """Requests without a decision, oldest first."""
        return self.filter(waits(at, "approval__")).order_by("approval__asked_at", "id")

    def closed(self, at: datetime) -> RoleRequestQuerySet:
        """Decided and expired requests, newest first."""
        return self.exclude(waits(at, "approval__")).order_by("-approval__asked_at", "-id")
