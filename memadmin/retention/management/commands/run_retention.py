"""`run_retention`: carries out the retention policies in force, or counts what they would take."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from memadmin.retention.models import SweepResult
from memadmin.retention.policies.preview import preview
from memadmin.retention.policies.rules import Rule
from memadmin.retention.policies.services import rules_in_force
from memadmin.retention.sweep.metrics import metrics_of, recent_runs
from memadmin.retention.sweep.starting import request_sweep, sweepable
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows
from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.runs.progress_bar import progress_bar


class Command(BaseCommand):
    help = (
        "Carries out the retention policies in force: deletes, redacts or expires what is due and under no hold."
        " With --preview it only counts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--preview", action="store_true", help="count what would go, and change nothing")
        parser.add_argument("--policy", default="", metavar="NAME", help="only this policy")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, policy: str, as_json: bool, **options: Any) -> None:
        rules = rules_in_force()
        if policy and policy not in {rule.name for rule in rules}:
            raise CommandError(f"No policy in force has the name {policy!r}. Nothing was done.")
        if options["preview"]:
            chosen = [rule for rule in sweepable(DueRows(rules)) if policy in ("", rule.name)]
            self.write(
                {"run": None, "policies": [preview_of(rule, rules) for rule in chosen], "outcome": "preview"}, as_json
            )
            return
        run = request_sweep(policy=policy)
        try:
            with progress_bar("retention") as watch:
                run = engine.carry_out(run, watch=watch)
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. A worker continues the run; pause or cancel it at /runs/.", returncode=130
            ) from None
        report = {"run": str(run), "policies": results_of(run), "outcome": run.state, "reason": run.reason}
        self.write({**report, "metrics": metrics_of(recent_runs()).as_json()}, as_json)
        if not run.is_finished:
            raise CommandError(f"{run} is {run.get_state_display()}. {run.reason}".strip())

    def write(self, report: dict[str, Any], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(report, indent=2))
            return
        for policy in report["policies"]:
            rows = ", ".join(f"{count:,} {holder}" for holder, count in policy["rows"].items()) or "nothing"
            self.stdout.write(f"{policy['policy']} (version {policy['version']}): {rows}.")
            if policy["held"]:
                self.stdout.write(f"  {policy['held']:,} kept by holds")
            for reason in policy["skipped"]:
                self.stdout.write(f"  {reason}")
        if not report["policies"]:
            self.stdout.write("No policy in force deletes anything.")
        if report["run"]:
            self.stdout.write(f"{report['run']}: {report['outcome']}. {report['reason']}".strip())


def preview_of(rule: Rule, rules: list[Rule]) -> dict[str, Any]:
    counted = preview(rule, rules)
    target = target_named(rule.target)
    rows = {target.unit: counted.rows}
    if counted.items is not None and target.name != "items":
        rows["items"] = counted.items
    elif target.name == "items":
        rows = {"items": counted.items or 0}
    problems = [f"{place.place}: {place.problem}" for place in counted.places if place.problem]
    return {
        "policy": rule.name,
        "version": rule.number,
        "rows": rows,
        "held": counted.held,
        "live": counted.live,
        "skipped": problems,
    }


def results_of(run: Run) -> list[dict[str, Any]]:
    """One entry for each policy, over all places."""
    found: dict[UUID, dict[str, Any]] = {}
    for result in SweepResult.objects.filter(run=run).in_order().select_related("version__policy"):
        entry = found.setdefault(
            result.version_id,
            {
                "policy": result.version.policy.name,
                "version": result.version.number,
                "rows": {},
                "held": 0,
                "live": 0,
                "skipped": [],
            },
        )
        target = target_named(result.version.target)
        for holder, count in ((target.unit, result.taken), ("items", result.items)):
            if count:
                entry["rows"][holder] = entry["rows"].get(holder, 0) + count
        entry["held"] += result.held
        entry["live"] += result.live
        if result.reason:
            entry["skipped"].append(result.reason)
    return list(found.values())
