"""Querysets of audit events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import F, Func
from django.db.models.lookups import GreaterThan, LessThan

from memadmin.web.paging import row_value
from memadmin.web.zones import begin_of

if TYPE_CHECKING:
    from memadmin.audit.models import AuditEvent


BUSY = ("agent", "job")
"""Kinds of actors with so many events that people's events would be lost among them; a tuple, as in the index."""


class IsAmong(Func):
    """Whether a value is in an array."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field: ClassVar = models.BooleanField()


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def newest_first(self) -> AuditEventQuerySet:
        return self.order_by("-at", "-number")

    def since(self, day: date) -> AuditEventQuerySet:
        return self.filter(at__gte=begin_of(day))

    def until(self, day: date) -> AuditEventQuerySet:
        """Events up to the end of the day in the reader's time zone."""
        if day == date.max:
            return self
        return self.filter(at__lt=begin_of(day + timedelta(days=1)))

    def but_of_programs(self) -> AuditEventQuerySet:
        """Events of people, commands and database roles: no jobs, no agents."""
        return self.exclude(actor_kind__in=BUSY)

    def of_programs(self) -> AuditEventQuerySet:
        return self.filter(actor_kind__in=BUSY)

    def concerning(self, refs: Iterable[UUID]) -> AuditEventQuerySet:
        """Events that list any of these ids among several records. Reads all such events."""
        # The second condition repeats that of the partial index.
        among = self.model._default_manager.filter(shown__overlap=list(refs)).exclude(shown=[]).order_by()
        # As an array: with a plain condition the planner may prefer a scan of the whole table, because it has no
        # statistics on how rare an id is.
        return self.filter(IsAmong(F("number"), ArraySubquery(among.values("number"))))

    def outside(self) -> AuditEventQuerySet:
        """Row changes made by raw SQL: only the database role is known."""
        return self.filter(actor_kind="database", cause__isnull=True)

    def around(self, event: AuditEvent) -> tuple[AuditEvent | None, AuditEvent | None]:
        """The previous and the next event of the same actor. Two queries."""
        theirs = self.filter(actor_ref=event.actor_ref)
        here = models.Value(event.at), models.Value(event.number)
        before = theirs.filter(LessThan(row_value(F("at"), F("number")), row_value(*here))).newest_first().first()
        after = theirs.filter(GreaterThan(row_value(F("at"), F("number")), row_value(*here))).order_by("at", "number")
        return before, after.first()

    def refs_between(self, column: str, first: UUID, last: UUID, *, at_most: int) -> list[UUID]:
        """Ids in `object_ref` or `subject_ref` from `first` to `last`, in this order.

        One query along the column's index for each, and one more: DISTINCT would read all their events.
        """
        found: list[UUID] = []
        while len(found) < at_most and first <= last:
            among = self.filter(**{f"{column}__range": (first, last)}).order_by(column)
            ref = among.values_list(column, flat=True).first()
            if ref is None:
                break
            found.append(ref)
            first = UUID(int=min(ref.int + 1, (1 << 128) - 1))
            if first == ref:
                break
        return found

    def rows_of(self, verb: AuditEvent) -> AuditEventQuerySet:
        """The row changes recorded by triggers for a verb's event, in the order of the changes."""
        return self.filter(cause=verb.id).order_by("number")
