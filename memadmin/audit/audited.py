"""The events of the log itself, and those that belong to no feature."""

from __future__ import annotations

from memadmin.audit.types import declare

ACCESS_DENIED = declare(
    "access.denied",
    "Somebody signed in asked for a page, or for an object by its id, that is not theirs.",
    reasons=("forbidden", "not_found"),
)
