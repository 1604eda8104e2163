"""Retention policies for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies import services
from memadmin.retention.policies.services import propose_change
from memadmin.retention.sweep.starting import request_sweep
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from tests.approvals import shown


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
    return let_grace_pass(version)


def proposed(version: PolicyVersion, *, by: User, days: int = 10, reason: str = "New privacy notice") -> PolicyVersion:
    """A change of a policy to fewer days, which awaits a second person."""
    content: dict[str, Any] = {name: getattr(version, name) for name in PolicyVersion.CONTENT}
    content |= {"length_count": days, "length_unit": "days", "action": "delete"}
    return propose_change(version.policy, content, reason=reason, by=by)


def over(version: PolicyVersion, *, by: User) -> PolicyVersion:
    """The change, approved by another person and with its grace period over."""
    with_grace = approve_change(version, by=by, confirmation=version.policy.name)
    assert with_grace.starts_at is not None
    return let_grace_pass(version)


def approve_change(version: PolicyVersion, *, by: User, confirmation: str = "") -> PolicyVersion:
    """Approves a change as its page shows it."""
    return services.approve_change(version, by=by, shown=shown(version), confirmation=confirmation)


def let_grace_pass(version: PolicyVersion) -> PolicyVersion:
    """Its start was just now. The triggers that keep versions, and let none start without approval, refuse that."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE retention_policyversion SET starts_at = now() WHERE id = %s", [version.pk])
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
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
