"""Querysets of grants."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q

from memadmin.accounts.approvals.models import Approval, waits

if TYPE_CHECKING:
    from memadmin.accounts.models import ContentGrant


class ContentGrantQuerySet(models.QuerySet["ContentGrant"]):
    def newest_first(self) -> ContentGrantQuerySet:
        return self.order_by("-requested_at", "-id")

    def asked_for_by(self, user: User) -> ContentGrantQuerySet:
        return self.filter(requested_by=user)

    def with_people(self) -> ContentGrantQuerySet:
        """With the people and sessions shown on pages. One additional query."""
        people = ("requested_by", "approval__asked_by", "approval__decided_by", "reviewed_by")
        # The worker, which sends notices, may not read password hashes.
        hashes = [f"{person}__password" for person in people]
        return self.select_related(*people).defer(*hashes).prefetch_related("sessions")

    def open_at(self, at: datetime) -> ContentGrantQuerySet:
        """Grants that are active at this instant: opened, not expired and not ended."""
        return self.filter(opened_at__lte=at, expires_at__gt=at, ended_at__isnull=True)

    def about(self, record_id: UUID) -> ContentGrantQuerySet:
        return self.filter(sessions__record_id=record_id)

    def awaiting_decision(self, at: datetime) -> ContentGrantQuerySet:
        """Requests without a decision, oldest first."""
        return self.filter(waits(at, "approval__"), ended_at__isnull=True).order_by("requested_at", "id")

    def awaiting_review(self, at: datetime) -> ContentGrantQuerySet:
        """Ended grants without a review, oldest first."""
        is_over = Q(expires_at__lte=at) | Q(ended_at__isnull=False)
        return self.filter(is_over, opened_at__isnull=False, reviewed_at__isnull=True).order_by("requested_at", "id")

    def opened_alone(self) -> ContentGrantQuerySet:
        """Grants opened without a second person and without a review, oldest first."""
        alone = self.filter(approval__decision=Approval.Decision.NOT_NEEDED, reviewed_at__isnull=True)
        return alone.order_by("requested_at", "id")
