"""Numbers in words, and capped counts: exact totals of large tables are too expensive for pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

COUNT_CAP = 1_000
"""Sessions, items and others are counted up to here; beyond it a page says "1,000+"."""


def noun_for(count: int | None, nouns: str) -> str:
    """The noun for a number, given in the plural: "sessions", and "session" for 1."""
    if count != 1:
        return nouns
    return f"{nouns.removesuffix('ies')}y" if nouns.endswith("ies") else nouns.removesuffix("s")


def counted(count: int, nouns: str) -> str:
    """A number with its noun, which is given in the plural: "1,204 rows", "1 memory"."""
    return f"{count:,} {noun_for(count, nouns)}"


def capped(count: int | None, cap: int = COUNT_CAP) -> str:
    """Text of a capped count: "86", "1,000+", or "?" for an unknown one."""
    if count is None:
        return "?"
    return f"{cap:,}+" if count > cap else f"{count:,}"


def count_up_to(queryset: QuerySet[Any], cap: int = COUNT_CAP) -> int:
    """Number of rows, at most cap + 1. One query."""
    return queryset.order_by()[: cap + 1].count()
