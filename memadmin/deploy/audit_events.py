"""Audit events of deployment."""

from __future__ import annotations

from memadmin import audit

DATABASE_RIGHTS_CHANGED = audit.declare(
    "database_rights.changed",
    "The database roles were applied; `statements` counts the executed SQL statements.",
    counters=("statements",),
)
