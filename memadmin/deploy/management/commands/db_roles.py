"""`db_roles`: the database roles, printed as a script or applied."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, transaction

from memadmin import audit
from memadmin.deploy import audit_events, plan
from memadmin.deploy.roles import Roles
from memadmin.deploy.steps import SqlStep, run
from sessions_app.stores.base import StoreUnavailable


class Command(BaseCommand):
    help = (
        "Creates the roles web, worker, migrator, auditor and agents, each with the rights it needs and no others."
        " An administrator of the database runs it once, the migrator after each migrate. Then the web server, the"
        " worker and the agents connect under their own roles."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verb = parser.add_mutually_exclusive_group(required=True)
        verb.add_argument("--apply", action="store_true", help="run the statements in one transaction")
        verb.add_argument(
            "--print", action="store_true", dest="as_script", help="print the statements as a psql script"
        )
        parser.add_argument("--prefix", default="memadmin", help="prefix of the role names")
        parser.add_argument(
            "--raw-edits", action="store_true", help="let users with that right change the agents' rows from the pages"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, apply: bool, prefix: str, raw_edits: bool, as_json: bool, **options: Any) -> None:
        roles = Roles(prefix)
        try:
            steps = plan.plan(roles, raw_edits=raw_edits)
        except StoreUnavailable as away:
            raise CommandError(str(away)) from away
        left = [step for step in steps if not step.is_allowed] if apply else []
        if apply and len(steps) > len(left):
            self.apply([step for step in steps if step.is_allowed])
        if as_json:
            steps_as_json = [{"purpose": step.purpose, "statements": step.as_text} for step in steps]
            self.stdout.write(json.dumps({"roles": roles.names, "is_applied": apply, "steps": steps_as_json}, indent=2))
        elif apply:
            names = ", ".join(roles.names.values())
            self.stdout.write(
                f"Roles and rights set up: {names}." if steps else f"No change needed: {names} have all their rights."
            )
        elif steps:
            self.stdout.write("BEGIN;\n\n" + "\n\n".join(step.as_script() for step in steps) + "\n\nCOMMIT;")
        else:
            self.stdout.write("-- Nothing is missing.")
        if left:
            statements = "\n".join(f"{statement};" for step in left for statement in step.as_text)
            raise CommandError(
                f"The owner of the agents' tables, or an administrator of the roles, has to run the rest:\n{statements}"
            )

    def apply(self, steps: Sequence[SqlStep]) -> None:
        count = sum(len(step.statements) for step in steps)
        try:
            with transaction.atomic(durable=True):
                run(steps)
                # After them: it may be they that let us write to the log.
                audit.record(audit_events.DATABASE_RIGHTS_CHANGED, counters={"statements": count})
        except Error as problem:
            reason = str(problem).splitlines()[0]
            raise CommandError(
                f"Nothing was changed: {reason}. Only an administrator can change roles and the owners of tables;"
                " --print shows the statements to run."
            ) from problem
