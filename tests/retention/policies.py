"""Retention policies for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models.functions import Now

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.sweep.starting import request_sweep
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run


def in_force(
    name: str = "", *, days: int | None = 30, policy: RetentionPolicy | None = None, **columns: Any
) -> PolicyVersion:
    """A version that is in force, without a change that was approved: of sessions, after days without activity."""
    policy = policy or RetentionPolicy.objects.create(name=name or f"policy {RetentionPolicy.objects.count()}")
    content: dict[str, Any] = {"target": "sessions", "clock": "last_activity", "action": "delete"}
    if days is not None:
        content |= {"length_count": days, "length_unit": "days"}
    content |= columns
    number = policy.versions.count() + 1
    version = PolicyVersion.objects.create(policy=policy, number=number, needs_approval=False, **content)
    PolicyVersion.objects.filter(pk=version.pk).update(starts_at=Now())
    version.refresh_from_db()
    return version


def swept(policy: str = "") -> Run:
    """A sweep, as far as it goes in this process."""
    return carry_on(request_sweep(policy=policy))


def age(session_id: str, length: timedelta) -> None:
    """Makes a session of the main store older, in the agents' tables and in the registry."""
    with connection.cursor() as cursor:
        for table, names in (("agent_sessions", ("created_at", "updated_at")), ("agent_messages", ("created_at",))):
            changes = ", ".join(f"{name} = {name} - %s" for name in names)
            values: list[Any] = [*[length] * len(names), session_id]
            cursor.execute(f"UPDATE {table} SET {changes} WHERE session_id = %s", values)
        ages: list[Any] = [length, length, session_id]
        cursor.execute(
            "UPDATE sessions_app_sessionrecord SET last_activity_at = now() - %s, registered_at = now() - %s"
            " WHERE session_id = %s",
            ages,
        )
