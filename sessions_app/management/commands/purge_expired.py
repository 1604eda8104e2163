"""`purge_expired`: deletes encrypted items that are too old for the agents to read."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from memadmin.runs.progress_bar import progress_bar
from sessions_app import registry
from sessions_app.services.purging import PurgeRefused, PurgeReport, preview_purge, purge_expired
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.rewriting import CannotRewrite

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def length_of_time(text: str) -> timedelta:
    """`90d`, `12h`, `30m` or `600s`."""
    found = re.fullmatch(r"([0-9]{1,5})([smhd])", text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is not a duration such as 90d, 12h, 30m or 600s")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


class Command(BaseCommand):
    help = (
        "Deletes encrypted items whose time to live is over (see store_key --ttl): the SDK hides them, but leaves"
        " them in the store. Needs a declared ttl, and no key: the envelope states the time, which cannot be verified"
        " without the key. Deletes whole turns, under the agents' own locks. First counts what would go, and asks."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the store, for example main")
        parser.add_argument(
            "--older-than",
            type=length_of_time,
            metavar="90d",
            help="keep items for longer than the agents' ttl: 90d, 12h, 30m or 600s",
        )
        parser.add_argument("--dry-run", action="store_true", help="report what would be deleted, without deleting")
        parser.add_argument("--yes", action="store_true", help="delete without asking, for scripts")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, name: str, older_than: timedelta | None, dry_run: bool, as_json: bool, **options: Any) -> None:
        try:
            store = registry.known_store(name)
            preview = preview_purge(store, older_than=older_than)
            report = preview.report
            if not dry_run and report.purged:
                if not options["yes"]:
                    self.ask(report)
                with progress_bar("purging") as watch:
                    report = purge_expired(preview, watch=watch)
        except (CannotRewrite, PurgeRefused, StoreUnavailable, registry.UnknownStore) as problem:
            raise CommandError(str(problem)) from problem
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. A worker continues the run; pause or cancel it at /runs/.", returncode=130
            ) from None
        if as_json:
            summary = {"store": store.name, "is_dry_run": dry_run, **asdict(report)}
            self.stdout.write(json.dumps(summary, indent=2))
        else:
            self.write_report(report, is_dry_run=dry_run)

    def ask(self, report: PurgeReport) -> None:
        """Asks on a terminal. Raises CommandError unless the answer is yes."""
        self.write_report(report, is_dry_run=True)
        if not sys.stdin.isatty():
            raise CommandError("Nothing was deleted. To delete without a question, run it with --yes.")
        if input("Delete them permanently? [y/N] ").strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was deleted.")

    def write_report(self, report: PurgeReport, *, is_dry_run: bool) -> None:
        items = f"{report.purged:,} expired item{pluralize(report.purged)}"
        sessions = f"{report.purged_sessions:,} of {report.sessions:,} session{pluralize(report.sessions)}"
        self.stdout.write(f"{items} of {sessions} {'would be' if is_dry_run else 'were'} deleted.")
        if report.unproven:
            self.stdout.write(
                f"The times of {report.unproven:,} of them come from the envelope and are unverified: their key is"
                " not loaded."
            )
        if report.kept:
            self.stdout.write(
                f"{report.kept:,} expired items are kept: newer items were written with them or answer them."
            )
        if report.busy:
            self.stdout.write(
                f"{report.busy:,} session{pluralize(report.busy, ' was,s were')} locked the whole time. Run it again."
            )
