"""How far pages count: a total of a large table costs more than it tells."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.models import QuerySet

COUNT_CAP = 1_000
"""Sessions, items and others are counted up to here; beyond it a page says "1,000+"."""


def capped(count: int | None, cap: int = COUNT_CAP) -> str:
    """A count that stops at a limit: "86", "1,000+", or "?" when it is not known."""
    if count is None:
        return "?"
    return f"{cap:,}+" if count > cap else f"{count:,}"


def counts_up_to(cap: int, *querysets: QuerySet[Any]) -> list[int]:
    """How many rows each has, at most cap + 1. One query."""
    # Not by count(), which takes longer to write this down than PostgreSQL to answer it.
    counts, parameters = [], list[Any]()
    for queryset in querysets:
        few, its_parameters = queryset.order_by().values("pk")[: cap + 1].query.sql_with_params()
        counts.append(f"(SELECT count(*) FROM ({few}) AS few)")
        parameters += its_parameters
    with connections[querysets[0].db].cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(counts)}", parameters)
        return [*cursor.fetchone()]
