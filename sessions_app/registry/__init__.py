"""Registry and fence on the agents' own tables: what should be installed, what is, and what is missing.

This package answers questions and plans steps; `services/` runs and records them. `known_stores` returns the stores,
`health` and `check` the problems of one; the `plan_...` functions return statements.
"""

from sessions_app.registry.attach_plan import (
    AttachRefused,
    AttachStep,
    plan_attachment,
    plan_declaration,
    plan_removal,
    refuse_place_of_another,
    refuse_unusable,
)
from sessions_app.registry.checking import check, health, health_of_all, own_health
from sessions_app.registry.duplicate_locations import SAME_PLACE, Places
from sessions_app.registry.fence import ERASED, WRITE_DROPPED
from sessions_app.registry.finding import FoundTables, unconnected_tables
from sessions_app.registry.last_check import last_health
from sessions_app.registry.stores import (
    MAIN_KIND,
    MAIN_STORE,
    UnknownStore,
    has_fence,
    is_discovered,
    known_store,
    known_stores,
)
from sessions_app.registry.unreadable import UnreadableSessions, unreadable_sessions
from sessions_app.stores.kinds import can, kind_of, limits_of

__all__ = [
    "ERASED",
    "MAIN_KIND",
    "MAIN_STORE",
    "SAME_PLACE",
    "WRITE_DROPPED",
    "AttachRefused",
    "AttachStep",
    "FoundTables",
    "Places",
    "UnknownStore",
    "UnreadableSessions",
    "can",
    "check",
    "has_fence",
    "health",
    "health_of_all",
    "is_discovered",
    "kind_of",
    "known_store",
    "known_stores",
    "last_health",
    "limits_of",
    "own_health",
    "plan_attachment",
    "plan_declaration",
    "plan_removal",
    "refuse_place_of_another",
    "refuse_unusable",
    "unconnected_tables",
    "unreadable_sessions",
]
