"""Telling somebody outside of something once, though workers die and servers are away.

A row stands for what is to be told, with the columns `tries`, `try_at` and `sent_at`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F
from django.utils.timezone import now

LONGEST_WAIT_MINUTES = 60
"""How far the tries move apart."""


def take_try(row: Any) -> bool:
    """Whether this try is ours alone, until the next is due; not where another worker has it or was faster."""
    at = now()
    wait = timedelta(minutes=min(2**row.tries, LONGEST_WAIT_MINUTES))
    ours = type(row).objects.filter(pk=row.pk, tries=row.tries, sent_at__isnull=True, try_at__lte=at)
    return bool(ours.update(tries=F("tries") + 1, try_at=at + wait))
