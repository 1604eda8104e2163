"""Triggers that record changes to governed tables, so that no path to the database bypasses the log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pgtrigger
from django.apps import apps
from django.db.models import Model

from memadmin.audit.log.triggers import Calling, by_proven
from memadmin.audit.log.types import declare

EVENTS = {
    "INSERT": ("row_inserted", "Rows of {} were added.", "{{actor}} added {{rows}} of the table “{}”[: {{object}}]"),
    "UPDATE": (
        "row_updated",
        "Governed columns in rows of {} were changed.",
        "{{actor}} changed {{rows}} of the table “{}”[: {{object}}]",
    ),
    "DELETE": ("row_deleted", "Rows of {} were deleted.", "{{actor}} deleted {{rows}} of the table “{}”[: {{object}}]"),
    "TRUNCATE": (
        "table_truncated",
        "All rows of {} were deleted at once.",
        "{{actor}} deleted all rows of the table “{}” at once",
    ),
}


# How agents write to our tables: with their own role, or through functions that run with the rights of the log's owner.
# Evaluated where the statement runs, because only there the effective role is known.
AS_THEMSELVES = "current_user = session_user"
THROUGH_US = "memadmin_through_us()"
# Checked by rights, not by being inside a trigger: any role can have triggers on its own tables.
BY_OUR_TRIGGERS = "memadmin_by_our_trigger()"


class RowTrigger(Calling):
    """A trigger that records the row changes of one statement."""

    def __init__(
        self,
        operation: str,
        noun: str,
        columns: Collection[str],
        subject: str,
        hidden: Collection[str],
        *,
        may_be_agents: bool = False,
        **options: Any,
    ) -> None:
        self.statement = operation
        self.may_be_agents = may_be_agents
        self.noun, self.columns, self.subject, self.hidden = noun, columns, subject, hidden
        seen = {"old": "old_rows"} if operation in ("UPDATE", "DELETE") else {}
        seen |= {"new": "new_rows"} if operation in ("UPDATE", "INSERT") else {}
        super().__init__(
            f"note_{'agents_' * may_be_agents}{operation.lower()}",
            "memadmin_note_rows",
            after=operation,
            level=pgtrigger.Statement,
            asks_for_actor=True,
            referencing=pgtrigger.Referencing(**seen) if seen else None,  # type: ignore[no-untyped-call]
            **options,
        )

    def render_execute(self, model: Model) -> str:
        meta = model._meta
        key = meta.pk
        concrete = meta.concrete_model
        assert key is not None
        assert concrete is not None
        arguments = (
            self.noun,
            concrete._meta.label_lower,
            key.column,
            "uuid" if key.get_internal_type() == "UUIDField" else "ref",
            self.column(meta, self.subject),
            ",".join(self.column(meta, name) for name in self.columns),
            ",".join(self.column(meta, name) for name in self.hidden),
            *(["agents"] if self.may_be_agents else []),
        )
        quoted = ", ".join(f"'{argument}'" for argument in arguments)
        return f"{self.call}({quoted})"

    @staticmethod
    def column(meta: Any, name: str) -> str:
        return str(meta.get_field(name).column) if name else ""


def govern(
    noun: str,
    *,
    columns: Collection[str],
    subject: str = "",
    hidden: Collection[str] = (),
    except_by_triggers: bool = False,
    forgotten_when_deleted: bool = False,
    except_inserts: bool = False,
    agents_add: bool = False,
    agents_through_us: Collection[str] = (),
) -> list[Calling]:
    """Triggers for a model's `Meta.triggers`: one event for each statement that adds, deletes or actually changes rows,
    which web servers and workers do as a proven actor.

    `columns` are the fields whose changes count; their values before and after are stored beside the event, where they
    can be erased. For a `hidden` field only the fact of a change is stored. `subject` is the field with the subject's
    id. With `except_by_triggers`, writes by our other triggers are not recorded: they follow from recorded changes.
    With `forgotten_when_deleted` a deletion is recorded without the row's values. With `except_inserts` new rows are
    not recorded: for tables to which every run of an agent adds.

    Changes by the agents' role have an agent as their actor where the client makes them: adding rows (`agents_add`), or
    operations through our functions (`agents_through_us`). All its other changes have the role as their actor.
    """
    ways = dict.fromkeys(agents_through_us, THROUGH_US) | ({"INSERT": AS_THEMSELVES} if agents_add else {})

    def trigger(operation: str, *conditions: str, may_be_agents: bool = False) -> RowTrigger:
        if except_by_triggers and operation != "TRUNCATE":
            conditions = (f"NOT {BY_OUR_TRIGGERS}", *conditions)
        return RowTrigger(
            operation,
            noun,
            () if forgotten_when_deleted and operation == "DELETE" else columns,
            subject,
            hidden,
            may_be_agents=may_be_agents,
            condition=pgtrigger.Condition(" AND ".join(conditions)) if conditions else None,
        )

    triggers: list[Calling] = [by_proven()]
    for operation in EVENTS:
        if except_inserts and operation == "INSERT":
            continue
        if way := ways.get(operation):
            triggers.append(trigger(operation, f"({way})", may_be_agents=True))
            triggers.append(trigger(operation, f"NOT ({way})"))
        else:
            triggers.append(trigger(operation))
    return triggers


def row_triggers(model: type[Model]) -> list[RowTrigger]:
    return [trigger for trigger in getattr(model._meta, "triggers", ()) if isinstance(trigger, RowTrigger)]


def declare_row_events() -> None:
    """Declares the event types of all governed tables, once all models are loaded."""
    for model in apps.get_models(include_auto_created=True):
        for trigger in row_triggers(model):
            concrete = model._meta.concrete_model
            assert concrete is not None
            label = concrete._meta.label_lower
            name, meaning, sentence = EVENTS[trigger.statement]
            declare(
                f"{trigger.noun}.{name}",
                meaning.format(f"`{label}`"),
                sentence=sentence.format(trigger.noun.replace("_", " ")),
                object=label,
                counters=("rows",),
            )
