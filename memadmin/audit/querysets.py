"""Ways to pick events, named as the reader would say them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import F, Func
from django.db.models.lookups import GreaterThan, LessThan

from memadmin.web.paging import row_value

if TYPE_CHECKING:
    from memadmin.audit.models import AuditEvent


BUSY = ("agent", "job")
"""Kinds of actors that do so much by themselves that people are not seen among them; a tuple, as an index has it."""


class IsAmong(Func):
    """Whether a value is in an array."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field: ClassVar = models.BooleanField()


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

    def but_of_programs(self) -> AuditEventQuerySet:
        """What people, commands and database roles did: not jobs, and not agents."""
        return self.exclude(actor_kind__in=BUSY)

    def of_programs(self) -> AuditEventQuerySet:
        return self.filter(actor_kind__in=BUSY)

    def concerning(self, refs: Iterable[UUID]) -> AuditEventQuerySet:
        """Events in which any of these was shown or changed among others. Looks at all that there are of them."""
        # The second condition is what the index is limited to.
        among = self.model._default_manager.filter(shown__overlap=list(refs)).exclude(shown=[]).order_by()
        # As an array: from a plain condition the planner may conclude that walking over everything is quicker, since
        # it does not know how seldom somebody is shown.
        return self.filter(IsAmong(F("number"), ArraySubquery(among.values("number"))))

    def outside(self) -> AuditEventQuerySet:
        """Rows that were changed by raw SQL: nothing is known of who did it but the role in the database."""
        return self.filter(actor_kind="database", cause__isnull=True)

    def around(self, event: AuditEvent) -> tuple[AuditEvent | None, AuditEvent | None]:
        """What the same actor did just before, and just after. Two queries."""
        theirs = self.filter(actor_ref=event.actor_ref)
        here = models.Value(event.at), models.Value(event.number)
        before = theirs.filter(LessThan(row_value(F("at"), F("number")), row_value(*here))).newest_first().first()
        after = theirs.filter(GreaterThan(row_value(F("at"), F("number")), row_value(*here))).order_by("at", "number")
        return before, after.first()

    def rows_of(self, verb: AuditEvent) -> AuditEventQuerySet:
        """What the triggers saw of the rows that a verb changed, in the order in which it changed them."""
        return self.filter(cause=verb.id).order_by("number")
