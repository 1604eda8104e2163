"""Retries of outgoing notices, each sent once, despite crashed workers and unavailable servers.

Each notice is a row with the columns `tries`, `try_at` and `sent_at`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F
from django.utils.timezone import now

LONGEST_WAIT_MINUTES = 60
"""Maximum time between two attempts."""


def take_try(row: Any) -> bool:
    """Whether this process claimed the attempt; False if it is not due or another worker was faster."""
    at = now()
    wait = timedelta(minutes=min(2**row.tries, LONGEST_WAIT_MINUTES))
    ours = type(row).objects.filter(pk=row.pk, tries=row.tries, sent_at__isnull=True, try_at__lte=at)
    return bool(ours.update(tries=F("tries") + 1, try_at=at + wait))
