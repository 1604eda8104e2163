"""Audit events of deployment."""

from __future__ import annotations

from memadmin import audit
from memadmin.audit.log.groups import EventGroup, assign

assign(EventGroup.SETTINGS, "database_rights")

DATABASE_RIGHTS_CHANGED = audit.declare(
    "database_rights.changed",
    "The database roles were applied; `statements` counts the executed SQL statements.",
    sentence="{actor} applied the database roles[: {statements}]",
    counters=("statements",),
)
