"""Querysets of role requests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from memadmin.accounts.models import RoleRequest

ANSWER_WITHIN = timedelta(days=3)
"""A request without a decision expires: its reason may no longer apply."""


class RoleRequestQuerySet(models.QuerySet["RoleRequest"]):
    def with_people(self) -> RoleRequestQuerySet:
        """With the people and the right that pages show."""
        return self.select_related("person", "requested_by", "decided_by", "role", "permission__content_type")

    def awaiting_decision(self, at: datetime) -> RoleRequestQuerySet:
        """Requests without a decision, oldest first."""
        waiting = self.filter(decided_at__isnull=True, requested_at__gt=at - ANSWER_WITHIN)
        return waiting.order_by("requested_at", "id")

    def closed(self, at: datetime) -> RoleRequestQuerySet:
        """Decided and expired requests, newest first."""
        waiting = models.Q(decided_at__isnull=True, requested_at__gt=at - ANSWER_WITHIN)
        return self.exclude(waiting).order_by("-requested_at", "-id")
