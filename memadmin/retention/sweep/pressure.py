"""Pauses of a sweep while the database is behind: replicas that lag, tables full of dead rows."""

from __future__ import annotations


def wait_for_database() -> None:
    """Raises Wait while a replica is more than 5 seconds behind, or a table has too many dead rows."""
