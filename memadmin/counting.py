"""How far pages count: a total of a large table costs more than it tells."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

COUNT_CAP = 1_000
"""Sessions, items and others are counted up to here; beyond it a page says "1,000+"."""


def capped(count: int | None, cap: int = COUNT_CAP) -> str:
    """A count that stops at a limit: "86", "1,000+", or "?" when it is not known."""
    if count is None:
        return "?"
    return f"{cap:,}+" if count > cap else f"{count:,}"


def count_up_to(queryset: QuerySet[Any], cap: int = COUNT_CAP) -> int:
    """How many rows it has, at most cap + 1. One query."""
    return queryset.order_by()[: cap + 1].count()
