"""`check_stores`: the health of every store, with each problem."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from sessions_app import registry
from sessions_app.encryption.subject_keys import folder_problems
from sessions_app.registry.unreadable import NEWEST
from sessions_app.services import path_watch
from sessions_app.stores.base import StoreHealth, StoreProblem, StoreUnavailable

CheckedStore = tuple[str, str, StoreHealth, list[registry.UnreadableSessions]]
"""Name, kind and health of a store, and its sessions with unreadable items."""


class Command(BaseCommand):
    help = (
        "Checks every store: connection, tables, registry and fence, indexes, ids, time zone. Exits with 1 if"
        " the console's database is not responding."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, as_json: bool, **options: Any) -> None:
        is_away = False
        try:
            places = registry.Places()
            found = [
                (each.name, each.kind, registry.check(each, places=places), registry.unreadable_sessions(each))
                for each in registry.known_stores()
            ]
        except StoreUnavailable as away:
            # The main store is in the same database, so this can be reported without it.
            health = StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),), fence="off")
            found = [(registry.MAIN_STORE, registry.MAIN_KIND, health, [])]
            is_away = True
        (self.write_json if as_json else self.write_text)(found)
        if is_away:
            sys.exit(1)

    def write_json(self, found: list[CheckedStore]) -> None:
        looked_for = registry.unconnected_tables()
        unconnected = [
            {"sessions_table": each.sessions, "messages_table": each.messages, "kind": each.kind} for each in looked_for
        ]
        watched_paths = [
            {"name": watched.name, "path": watched.path, **watched.found} for watched in path_watch.watched_paths()
        ]
        report = {
            "stores": [summary(*each) for each in found],
            "unconnected": unconnected,
            "watched_paths": watched_paths,
            "subject_keys": folder_problems(),
        }
        self.stdout.write(json.dumps(report, indent=2))

    def write_text(self, found: list[CheckedStore]) -> None:
        looked_for = registry.unconnected_tables()
        for name, _, health, _ in found:
            about = "unknown" if health.sessions is None else f"{health.sessions:,}"
            self.stdout.write(f"{name}: {health.state}, sessions {about}, fence {health.fence}")
            if health.layout:
                self.stdout.write(f"  {health.layout}")
            for problem in health.problems:
                self.stdout.write(f"  - {problem.sentence}")
            for hint in health.hints:
                self.stdout.write(f"  note: {hint}")
        for watched in path_watch.watched_paths():
            self.stdout.write(f"{watched.name} watches {watched.path}: {path_watch.about(watched)}")
            for path, reason in watched.refused.items():
                self.stdout.write(f"  - {path} is not connected: {reason}")
        for sentence in folder_problems():
            self.stdout.write(f"Keys of subjects: {sentence}")
        for tables in looked_for:
            found_tables = (
                f"{tables.sessions} and {tables.messages} look like tables of the agents' SDK and belong to no store."
                if tables.messages
                else f"{tables.sessions} looks like a table of {tables.kind} and belongs to no store."
            )
            self.stdout.write(f"{found_tables} Run {tables.command}.")


def summary(
    name: str, kind: str, health: StoreHealth, unreadable: list[registry.UnreadableSessions]
) -> dict[str, object]:
    """One store in the JSON for scripts: keys are added, never renamed."""
    return {
        "name": name,
        "kind": kind,
        "state": health.state,
        "problems": [problem.sentence for problem in health.problems],
        "hints": list(health.hints),
        "layout": health.layout,
        "sessions": health.sessions,
        "fence": health.fence,
        "unreadable": [
            {"finding": each.code, "sessions": len(each.records), "of_newest": NEWEST, "example": each.page}
            for each in unreadable
        ],
    }
