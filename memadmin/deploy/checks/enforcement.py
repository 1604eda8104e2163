"""Checks of what the database enforces: functions with their owner's rights, and triggers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import connection

from memadmin.audit.log.triggers import Calling
from memadmin.deploy.checks.finding import APPLY, CheckFinding
from memadmin.deploy.steps import fetch
from memadmin.retention.holds.guard import HOLD_TRIGGERS

FUNCTIONS = """
SELECT p.oid::regprocedure::text, has_function_privilege('public', p.oid, 'EXECUTE'),
       NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search_path=%%pg_temp'),
       p.proowner = c.relowner OR (SELECT rolsuper FROM pg_roles WHERE oid = p.proowner), p.proowner::regrole::text
FROM pg_proc AS p, pg_class AS c
WHERE p.prosecdef AND p.proname LIKE 'memadmin\\_%%' AND p.pronamespace = current_schema()::regnamespace
  AND c.oid = 'audit_event'::regclass
ORDER BY 1
"""


def functions() -> Iterator[CheckFinding]:
    """Functions with the owner's rights: ours only, with a fixed search path, and not callable by everybody."""
    [(schema,)] = fetch("SELECT quote_ident(current_schema())", [])
    for name, is_open, is_loose, is_ours, owner in fetch(FUNCTIONS, []):
        if is_open:
            hint = f"Every role that can connect may call {name}, which runs with its owner's rights. {APPLY}"
            yield CheckFinding("error", "functions", hint)
        if is_loose:
            hint = (
                f"{name} runs with its owner's rights and any search_path: it differs from the one that migrate"
                f" creates. Find out who changed it, and run ALTER FUNCTION {name} SET search_path = {schema}, pg_temp;"
            )
            yield CheckFinding("error", "functions", hint)
        if not is_ours:
            hint = (
                f"{name} has one of our names and belongs to {owner}. Find out who created it, and run DROP"
                f" FUNCTION {name};"
            )
            yield CheckFinding("error", "functions", hint)


TRIGGER = """
SELECT t.tgenabled, p.proname FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE t.tgrelid = to_regclass(%s) AND t.tgname = %s
"""

WITHOUT = {
    "guard": "it can be rewritten",
    "stamp": "clients choose time and role of an event, and it is not sequenced",
    "refuse_forgotten": "erased sessions can be written again",
    "note_forgotten": "erased sessions can be written again",
    **dict.fromkeys(
        (
            *("keep_erased", "keep_shell", "refuse_erased", "refuse_erased_change", "keep_until_forgotten"),
            *("subject_given", "subject_changed", "not_of_erased", "not_to_erased", "note_added", "note_changed"),
        ),
        "data about erased subjects can be stored again",
    ),
}


def triggers() -> Iterator[CheckFinding]:
    """Triggers that protect the log, and those that record the changes of governed tables."""
    for model in apps.get_models(include_auto_created=True):
        for trigger in getattr(model._meta, "triggers", ()):
            if isinstance(trigger, Calling):
                yield from _fault_of(trigger, model)
    identity = (
        "SELECT attidentity::text FROM pg_attribute WHERE attrelid = 'audit_event'::regclass AND attname = 'number'"
    )
    if fetch(identity) != [("a",)]:
        hint = (
            "A client may choose the numbers of events. Run ALTER TABLE audit_event ALTER number SET GENERATED ALWAYS;"
        )
        yield CheckFinding("error", "triggers", hint)


def holds() -> Iterator[CheckFinding]:
    """Triggers that keep what is under a legal hold."""
    for table, name in HOLD_TRIGGERS:
        installed = fetch(TRIGGER, [connection.ops.quote_name(table), name])
        if not installed:
            hint = (
                f"The trigger {name} of {table} is missing: data under a legal hold can be deleted. Run"
                " memadmin/retention/sql/hold_triggers.sql as the migrator."
            )
            yield CheckFinding("error", "holds", hint)
        elif installed[0][0] == "D":
            hint = (
                f"The trigger {name} of {table} is disabled: data under a legal hold can be deleted. Run ALTER TABLE"
                f" {table} ENABLE TRIGGER {name};"
            )
            yield CheckFinding("error", "holds", hint)


def tombstones() -> Iterator[CheckFinding]:
    """The key with which digests of erased ids are made."""
    if fetch("SELECT memadmin_knows_key('tombstones')") == [(False,)]:
        hint = (
            "The key of the digests of erased ids is missing from memadmin_secret: erased sessions and subjects can"
            " come back. Restore this row from a backup."
        )
        yield CheckFinding("error", "tombstones", hint)


def _fault_of(trigger: Calling, model: Any) -> Iterator[CheckFinding]:
    table, name = model._meta.db_table, trigger.get_pgid(model)
    installed = fetch(TRIGGER, [connection.ops.quote_name(table), name])
    what = WITHOUT.get(trigger.name or "", "changes to it are not recorded")
    if not installed or installed[0][1] != trigger.call.partition("(")[0]:
        hint = (
            f"The trigger {name} of {table} is missing or calls something else: {what}."
            f" Run `pgtrigger install {model._meta.label}:{trigger.name}`."
        )
        yield CheckFinding("error", "triggers", hint)
    elif installed[0][0] != ("A" if trigger.always else "O"):
        enable = f"ALTER TABLE {table} ENABLE {'ALWAYS ' if trigger.always else ''}TRIGGER {name};"
        hint = f"The trigger {name} of {table} is disabled: {what}. Run {enable}"
        yield CheckFinding("error", "triggers", hint)
