"""Registry and fence on the agents' own tables: what is put there, checked there and taken away again.

`declare_store` names the tables, `attach` puts triggers on them and registers their sessions, `remove` undoes it,
`health` and `check` say what is wrong. Of a store that can have no triggers `discover` looks for the
sessions; `register` takes those that it cannot list. The `plan_...` functions give the statements without running them.
"""

from sessions_app.registry.checking import check, health
from sessions_app.registry.declaring import (
    MAIN_KIND,
    MAIN_STORE,
    AttachRefused,
    StoreStillNeeded,
    UnknownStore,
    check_unneeded,
    declare_store,
    delete_store,
    known_store,
    known_stores,
    store_like,
)
from sessions_app.registry.discovering import Discovery, discover, discover_changes, has_fence
from sessions_app.registry.fence import ERASED, WRITE_DROPPED
from sessions_app.registry.finding import FoundTables, unconnected_tables
from sessions_app.registry.plans import Step, attach, plan_attachment, plan_declaration, plan_removal, remove
from sessions_app.registry.registering import CannotRegister, Registration, register
from sessions_app.stores.kinds import can, kind_of, limits_of

__all__ = [
    "ERASED",
    "MAIN_KIND",
    "MAIN_STORE",
    "WRITE_DROPPED",
    "AttachRefused",
    "CannotRegister",
    "Discovery",
    "FoundTables",
    "Registration",
    "Step",
    "StoreStillNeeded",
    "UnknownStore",
    "attach",
    "can",
    "check",
    "check_unneeded",
    "declare_store",
    "delete_store",
    "discover",
    "discover_changes",
    "has_fence",
    "health",
    "kind_of",
    "known_store",
    "known_stores",
    "limits_of",
    "plan_attachment",
    "plan_declaration",
    "plan_removal",
    "register",
    "remove",
    "store_like",
    "unconnected_tables",
]
