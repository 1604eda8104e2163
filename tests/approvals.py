"""Approvals in tests: with the digest that a page would send, and in the past."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils.timezone import now

from memadmin.accounts.approvals.models import Approval
from memadmin.accounts.approvals.services import shown_now
from memadmin.accounts.grants import services
from memadmin.accounts.models import ContentGrant


def shown(about: Any) -> str:
    """The digest on the page of this object, as it is stored now."""
    return shown_now(type(about).objects.select_related("approval").get(pk=about.pk))


def expire(about: Any) -> None:
    """Lets the time pass within which the approval of this object can be given."""
    with without_triggers():
        Approval.objects.filter(object_ref=about.pk).update(expires_at=now() - timedelta(seconds=1))


@contextmanager
def without_triggers() -> Iterator[None]:
    """A block in which what the database keeps as it is can be set, as if it had been so for long."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            cursor.execute("SET session_replication_role = origin")


def approve_grant(grant: ContentGrant, *, by: User) -> ContentGrant:
    """Approves a grant as its page shows it."""
    return services.approve_grant(grant, by=by, shown=shown(grant))
