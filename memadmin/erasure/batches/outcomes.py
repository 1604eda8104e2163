"""Outcomes of lines, read from their cases: there is no second record of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from django.db.models import Case, CharField, Count, OuterRef, Q, QuerySet, Subquery, Sum, TextChoices, Value, When
from django.db.models.functions import Coalesce

from memadmin.erasure.models import BatchLine, ErasureStep, RequestBatch, SubjectRequest
from memadmin.runs.models import Run

State = SubjectRequest.State


class LineOutcome(TextChoices):
    """In the order of the strip on the page."""

    COMPLETE = "complete", "complete"
    SCANNING = "scanning", "erased, second scan to come"
    TO_SCAN = "to_scan", "erased, first scan to come"
    WAITING = "waiting", "waiting"
    EXCEPTIONS = "exceptions", "exceptions"
    HELD = "held", "hold"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "refused or cancelled"
    LEFT_OUT = "left_out", "left out, changed since the count"
    OTHER_CASE = "other", "decided in another case"
    RUNNING = "running", "running"
    TO_DO = "to_do", "to do"


ERASED = (LineOutcome.COMPLETE, LineOutcome.SCANNING, LineOutcome.TO_SCAN, LineOutcome.EXCEPTIONS)
RETRIED = (LineOutcome.FAILED, LineOutcome.HELD)
CLOSED = (LineOutcome.COMPLETE, LineOutcome.EXCEPTIONS, LineOutcome.CANCELLED, LineOutcome.LEFT_OUT)
UNFINISHED = [outcome for outcome in LineOutcome if outcome not in CLOSED]

APPROVED = ("", BatchLine.Problem.CHANGED)
"""Problems of lines of which a batch was approved: none, and what was found when the case was to be opened."""

_OUTCOME = Case(
    When(problem=BatchLine.Problem.CHANGED, then=Value(LineOutcome.LEFT_OUT)),
    When(request__isnull=True, then=Value(LineOutcome.TO_DO)),
    When(request__state=State.COMPLETE, then=Value(LineOutcome.COMPLETE)),
    When(request__state=State.COMPLETE_WITH_EXCEPTIONS, then=Value(LineOutcome.EXCEPTIONS)),
    When(request__state__in=(State.REFUSED, State.CANCELLED), then=Value(LineOutcome.CANCELLED)),
    When(request__state__in=(State.RECEIVED, State.CHECKED, State.AWAITING), then=Value(LineOutcome.OTHER_CASE)),
    When(request__run__state=Run.State.STOPPED, then=Value(LineOutcome.HELD)),
    When(request__run__state=Run.State.FAILED, then=Value(LineOutcome.FAILED)),
    When(request__state=State.SCANNING, then=Value(LineOutcome.SCANNING)),
    When(~Q(request__pending_scan={}), then=Value(LineOutcome.TO_SCAN)),
    When(request__run__state=Run.State.PAUSED, then=Value(LineOutcome.WAITING)),
    When(request__run__state=Run.State.WAITING, request__run__reason__gt="", then=Value(LineOutcome.WAITING)),
    default=Value(LineOutcome.RUNNING),
    output_field=CharField(),
)


def lines_with_outcome(batch: RequestBatch) -> QuerySet[Any]:
    """Lines of which the batch was approved, each with its `outcome`."""
    return BatchLine.objects.filter(batch=batch, problem__in=APPROVED).annotate(outcome=_OUTCOME)


def with_rows(lines: QuerySet[BatchLine]) -> QuerySet[Any]:
    """The lines with `rows_erased` and `rows_expected` of their cases."""
    steps = ErasureStep.objects.filter(request=OuterRef("request")).order_by().values("request")
    return lines.annotate(
        rows_erased=Coalesce(Subquery(steps.annotate(rows=Sum("erased")).values("rows")), 0),
        rows_expected=Coalesce(Subquery(steps.annotate(rows=Sum("expected")).values("rows")), 0),
    )


def counts(batch: RequestBatch) -> Counter[str]:
    """Number of lines of each outcome. One query."""
    return Counter(dict(lines_with_outcome(batch).order_by().values_list("outcome").annotate(lines=Count("pk"))))


def number_of(counts: Counter[str], outcomes: Collection[LineOutcome]) -> int:
    return sum(counts[outcome] for outcome in outcomes)


def in_words(counts: Counter[str], outcomes: Collection[LineOutcome]) -> str:
    """Numbers of these outcomes: "3 waiting, 1 failed"."""
    return ", ".join(f"{counts[outcome]:,} {outcome.label}" for outcome in outcomes if counts[outcome])
