"""Querysets of requests of people about their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from memadmin.counting import count_up_to

if TYPE_CHECKING:
    from memadmin.erasure.models import RequestBatch, SubjectRequest


class SubjectRequestQuerySet(models.QuerySet["SubjectRequest"]):
    def open(self) -> SubjectRequestQuerySet:
        """Requests that are not closed, the earliest due date first."""
        return self.filter(closed_at__isnull=True).order_by("due_on", "number")

    def to_answer(self) -> SubjectRequestQuerySet:
        """Open requests without those of batches, which have one due date for all of their cases."""
        return self.open().exclude(channel="file")

    def closed(self) -> SubjectRequestQuerySet:
        """Closed requests, the last one first."""
        return self.filter(closed_at__isnull=False).order_by("-closed_at", "-number")

    def awaiting_approval(self) -> SubjectRequestQuerySet:
        """Erasures that wait for a second person, the earliest due date first."""
        return self.open().filter(state="awaiting")

    def with_names(self) -> SubjectRequestQuerySet:
        """Requests with everything that lists show. One query more."""
        batch = "scanned_by__request_batch__approval"
        people = [f"{each}__{who}" for each in ("approval", batch) for who in ("asked_by", "decided_by")]
        return self.select_related("subject", "opened_by", "identity_checked_by", "run", *people).prefetch_related(
            "subject__aliases"
        )


class RequestBatchQuerySet(models.QuerySet["RequestBatch"]):
    def open(self) -> RequestBatchQuerySet:
        """Batches that are not closed, the earliest due date first."""
        return self.filter(closed_at__isnull=True).order_by("due_on", "number")


def count_to_approve() -> int:
    """Number of erasures that wait for a second person, for the sidebar, at most 1,001. One query."""
    from memadmin.erasure.models import SubjectRequest

    return count_up_to(SubjectRequest.objects.awaiting_approval())
