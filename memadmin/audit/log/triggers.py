"""Triggers that call a function of ours, declared with django-pgtrigger.

pgtrigger wraps each trigger in a function of its own, which obeys a setting that lets every session ignore triggers
(`pgtrigger.ignore`). The audit log must not be switched off that way: these triggers call our functions directly, and
pgtrigger's functions stay unused.
"""

from __future__ import annotations

from typing import Any

import pgtrigger
from django.db import connection
from django.db.models import Model
from pgtrigger import compiler

OPERATIONS: dict[str, Any] = {
    "INSERT": pgtrigger.Insert,
    "UPDATE": pgtrigger.Update,
    "DELETE": pgtrigger.Delete,
    "TRUNCATE": pgtrigger.Truncate,
    "INSERT OR UPDATE": pgtrigger.Insert | pgtrigger.Update,
    "WRITE": pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
    "ANY CHANGE": pgtrigger.Update | pgtrigger.Delete | pgtrigger.Truncate,
}

REFUSED = "P0A01"
"""SQLSTATE of a refused change to the audit log."""


class Calling(pgtrigger.Trigger):
    """A trigger that calls a function: `Calling("stamp", "memadmin_stamp_event()", before="INSERT")`.

    `before` or `after` names one of OPERATIONS, or "UPDATE OF" and a column. With `always` it fires for replication
    roles, too, which skip ordinary triggers. One that `asks_for_actor` looks at who acts, whom statements on its table
    then name (`actors.name_actor`).
    """

    def __init__(
        self,
        name: str,
        call: str,
        *,
        before: str = "",
        after: str = "",
        always: bool = False,
        asks_for_actor: bool = False,
        **options: Any,
    ) -> None:
        self.call, self.always, self.asks_for_actor = call, always, asks_for_actor
        super().__init__(
            name=name,
            when=pgtrigger.Before if before else pgtrigger.After,
            operation=operation_called(before or after),
            func="RETURN NULL;",
            **options,
        )

    def render_execute(self, model: Model) -> str:
        return self.call

    def compile(self, model: Model) -> compiler.Trigger:
        compiled = super().compile(model)
        return AlwaysFiring(name=compiled.name, sql=compiled.sql) if self.always else compiled


class AlwaysFiring(compiler.Trigger):
    @property
    def install_sql(self) -> str:
        table = connection.ops.quote_name(self.sql.table)
        return f"{super().install_sql}\nALTER TABLE {table} ENABLE ALWAYS TRIGGER {self.sql.pgid};"


def operation_called(name: str) -> Any:
    if name in OPERATIONS:
        return OPERATIONS[name]
    return pgtrigger.UpdateOf(name.removeprefix("UPDATE OF "))  # type: ignore[no-untyped-call]


def by_proven() -> Calling:
    """A trigger: web servers and workers change rows as an actor whom the application has proved, and not with the
    password of their role alone.
    """
    call = "memadmin_require_actor_of_rows()"
    return Calling("by_proven", call, before="WRITE", level=pgtrigger.Statement, asks_for_actor=True)


def guard() -> Calling:
    """A trigger that refuses all changes to existing rows."""
    return Calling("guard", "memadmin_refuse_change()", before="ANY CHANGE", always=True, level=pgtrigger.Statement)
