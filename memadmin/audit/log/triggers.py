"""Triggers that call a function of ours, declared with django-pgtrigger.

pgtrigger wraps each trigger in a function of its own, which obeys a setting that lets every session ignore triggers
(`pgtrigger.ignore`). The audit log must not be switched off that way: these triggers call our functions directly, and
pgtrigger's functions stay unused.
"""

from __future__ import annotations

from typing import Any

import pgtrigger
from django.db.models import Model

OPERATIONS: dict[str, Any] = {
    "INSERT": pgtrigger.Insert,
    "UPDATE": pgtrigger.Update,
    "DELETE": pgtrigger.Delete,
    "TRUNCATE": pgtrigger.Truncate,
    "ANY CHANGE": pgtrigger.Update | pgtrigger.Delete | pgtrigger.Truncate,
}

REFUSED = "P0A01"
"""SQLSTATE of a refused change to the audit log."""


class Calling(pgtrigger.Trigger):
    """A trigger that calls a function: `Calling("stamp", "memadmin_stamp_event()", before="INSERT")`.

    `before` or `after` names one of OPERATIONS, or "UPDATE OF" and a column.
    """

    def __init__(self, name: str, call: str, *, before: str = "", after: str = "", **options: Any) -> None:
        self.call = call
        super().__init__(
            name=name,
            when=pgtrigger.Before if before else pgtrigger.After,
            operation=operation_called(before or after),
            func="RETURN NULL;",
            **options,
        )

    def render_execute(self, model: Model) -> str:
        return self.call


def operation_called(name: str) -> Any:
    if name in OPERATIONS:
        return OPERATIONS[name]
    return pgtrigger.UpdateOf(name.removeprefix("UPDATE OF "))  # type: ignore[no-untyped-call]


def guard() -> Calling:
    """A trigger that refuses all changes to existing rows. A migration makes it fire for replication roles, too."""
    return Calling("guard", "memadmin_refuse_change()", before="ANY CHANGE", level=pgtrigger.Statement)
