"""The events of putting memadmin into operation."""

from __future__ import annotations

from memadmin import audit

DATABASE_RIGHTS_CHANGED = audit.declare(
    "database_rights.changed",
    "The database's roles were brought into force, by so many statements.",
    counters=("statements",),
)
