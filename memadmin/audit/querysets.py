"""Ways to pick events, named as the reader would say them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models

if TYPE_CHECKING:
    from memadmin.audit.models import AuditEvent


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def newest_first(self) -> AuditEventQuerySet:
        return self.order_by("-at", "-number")

    def since(self, day: date) -> AuditEventQuerySet:
        return self.filter(at__gte=datetime.combine(day, time.min, UTC))

    def until(self, day: date) -> AuditEventQuerySet:
        """To the end of the day, in UTC."""
        if day == date.max:
            return self
        return self.filter(at__lt=datetime.combine(day + timedelta(days=1), time.min, UTC))

    def concerning(self, refs: Iterable[UUID]) -> AuditEventQuerySet:
        """Events in which any of these was shown or changed among others."""
        # The second condition is what the index is limited to.
        return self.filter(shown__overlap=list(refs)).exclude(shown=[])

    def outside(self) -> AuditEventQuerySet:
        """Rows that were changed by raw SQL: nothing is known of who did it but the role in the database."""
        return self.filter(actor_kind="database", cause__isnull=True)

    def rows_of(self, verb: AuditEvent) -> AuditEventQuerySet:
        """What the triggers saw of the rows that a verb changed, in the order in which it changed them."""
        return self.filter(cause=verb.id).order_by("number")
