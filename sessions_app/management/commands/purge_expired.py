"""Removes what agents sealed and no longer read."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from memadmin.runs.progress_bar import progress_bar
from sessions_app import registry
from sessions_app.services.purging import PurgeRefused, PurgeReport, purge_expired
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.rewriting import CannotRewrite

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def length_of_time(text: str) -> timedelta:
    """`90d`, `12h`, `30m` or `600s`."""
    found = re.fullmatch(r"([0-9]{1,5})([smhd])", text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is not a length of time such as 90d, 12h, 30m or 600s")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


class Command(BaseCommand):
    help = (
        "Removes sealed items that are older than agents read them (see store_key --ttl): the SDK hides those, and"
        " leaves them in the store for ever. Takes no key, since the time stands in the envelope; without the key"
        " nobody can prove that time. Goes by whole turns, under the agents' own locks. Try it with --dry-run first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the store, for example main")
        parser.add_argument(
            "--older-than", type=length_of_time, metavar="90d", help="keep more than agents read: 90d, 12h, 30m or 600s"
        )
        parser.add_argument("--dry-run", action="store_true", help="only read, and say what would go")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

    def handle(self, *, name: str, older_than: timedelta | None, dry_run: bool, as_json: bool, **options: Any) -> None:
        try:
            store = registry.known_store(name)
            with progress_bar("purging") as watch:
                report = purge_expired(store, older_than=older_than, dry_run=dry_run, watch=watch)
        except (CannotRewrite, PurgeRefused, StoreUnavailable, registry.UnknownStore) as problem:
            raise CommandError(str(problem)) from problem
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. A worker continues the run; pause or cancel it at /runs/.", returncode=130
            ) from None
        if as_json:
            told = {"store": store.name, "is_dry_run": dry_run, **asdict(report)}
            self.stdout.write(json.dumps(told, indent=2))
        else:
            self.tell(report, is_dry_run=dry_run)

    def tell(self, report: PurgeReport, *, is_dry_run: bool) -> None:
        items = f"{report.purged:,} expired item{pluralize(report.purged)}"
        sessions = f"{report.purged_sessions:,} of {report.sessions:,} session{pluralize(report.sessions)}"
        self.stdout.write(f"{items} of {sessions} {'would be' if is_dry_run else 'were'} removed.")
        if report.unproven:
            self.stdout.write(
                f"The time of {report.unproven:,} is the envelope's own and unproven: their key is not here."
            )
        if report.kept:
            self.stdout.write(f"{report.kept:,} as old stay: younger ones were written with them or answer them.")
        if report.busy:
            self.stdout.write(f"{report.busy:,} sessions were held by somebody all the time. Run it again.")
