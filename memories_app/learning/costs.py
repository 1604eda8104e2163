"""Distillation runs: results and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Q, Sum
from django.db.models.functions import Now

from memories_app.models import Distillation
from sessions_app.models import SessionRecord

LOOKED_BACK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class WeeklyCost:
    """Weekly cost of one distiller. `failed` are distillations without a result."""

    distiller: str
    readings: int
    failed: int
    proposals: int
    model_calls: int
    input_tokens: int
    output_tokens: int


FAILED = (Distillation.Outcome.NONSENSE, Distillation.Outcome.TIMED_OUT, Distillation.Outcome.FAILED)


def costs_of_a_week() -> list[WeeklyCost]:
    """Weekly costs by distiller. One query, over the distillations of a week."""
    lately = Distillation.objects.filter(began_at__gt=Now() - LOOKED_BACK)
    sums = lately.values("distiller").annotate(
        readings=Count("pk"),
        failed=Count("pk", filter=Q(outcome__in=FAILED)),
        proposals=Sum("proposal_count"),
        calls=Sum("model_calls"),
        read=Sum("input_tokens"),
        written=Sum("output_tokens"),
    )
    names = ("distiller", "readings", "failed", "proposals", "calls", "read", "written")
    return [WeeklyCost(*row) for row in sums.order_by("distiller").values_list(*names)]


@dataclass(frozen=True, slots=True)
class ShownReading:
    """One distillation, and its session if that is registered."""

    distillation: Distillation
    record: SessionRecord | None


def shown_readings(readings: Sequence[Distillation]) -> list[ShownReading]:
    """One query."""
    records = SessionRecord.objects.on_record().in_bulk([each.record_id for each in readings])
    return [ShownReading(each, records.get(each.record_id)) for each in readings]
