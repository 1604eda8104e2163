"""Registry and fence on the agents' own tables: what is put there, checked there and taken away again.

`declare_store` names the tables, `attach` puts triggers on them and registers their sessions, `remove` undoes it,
`health` and `check` say what is wrong. The `plan_...` functions give the statements without running them.
"""

from sessions_app.registry.checking import check, health
from sessions_app.registry.declaring import (
    MAIN_STORE,
    AttachRefused,
    StoreStillNeeded,
    UnknownStore,
    check_unneeded,
    declare_store,
    delete_store,
    known_store,
    known_stores,
)
from sessions_app.registry.fence import ERASED, WRITE_DROPPED
from sessions_app.registry.plans import Step, attach, plan_attachment, plan_declaration, plan_removal, remove

__all__ = [
    "ERASED",
    "MAIN_STORE",
    "WRITE_DROPPED",
    "AttachRefused",
    "Step",
    "StoreStillNeeded",
    "UnknownStore",
    "attach",
    "check",
    "check_unneeded",
    "declare_store",
    "delete_store",
    "health",
    "known_store",
    "known_stores",
    "plan_attachment",
    "plan_declaration",
    "plan_removal",
    "remove",
]
