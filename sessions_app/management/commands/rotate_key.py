"""`rotate_key`: re-encrypts the items of a store with another key."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from memadmin.runs.progress_bar import progress_bar
from sessions_app import registry
from sessions_app.encryption.rotation import ItemKeyState
from sessions_app.encryption.subject_keys import keys_wrapped_with
from sessions_app.models import SessionStore
from sessions_app.services.rotation import RotationRefused, RotationReport, rotate_key
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.rewriting import CannotRewrite

SESSIONS_NAMED = 10


class Command(BaseCommand):
    help = (
        "Re-encrypts every item of a store from one key of the keyring to another, session by session under the"
        " agents' own locks; the times in the tokens are kept. Agents must already use the new key. After an"
        " interruption the same command continues. Items that neither key opens are left unchanged and listed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the store, for example main")
        parser.add_argument(
            "--from", dest="old", required=True, metavar="NAME", help="name of the key that agents used so far"
        )
        parser.add_argument(
            "--to", dest="new", required=True, metavar="NAME", help="name of the key that agents use now"
        )
        parser.add_argument("--dry-run", action="store_true", help="report what would be re-encrypted, without writing")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, name: str, old: str, new: str, dry_run: bool, as_json: bool, **options: Any) -> None:
        try:
            store = registry.known_store(name)
            with progress_bar("encrypting") as watch:
                report = rotate_key(store, old=old, new=new, dry_run=dry_run, watch=watch)
        except (CannotRewrite, RotationRefused, StoreUnavailable, registry.UnknownStore) as problem:
            raise CommandError(str(problem)) from problem
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. A worker continues the run; pause or cancel it at /runs/.", returncode=130
            ) from None
        if as_json:
            self.stdout.write(json.dumps(summary(store, report, is_dry_run=dry_run), indent=2))
        else:
            self.write_report(store, report, old, new, is_dry_run=dry_run)
        if not dry_run and not report.is_complete:
            raise CommandError(f"{old} is still needed: items of {store} are encrypted with it.")

    def write_report(
        self, store: SessionStore, report: RotationReport, old: str, new: str, *, is_dry_run: bool
    ) -> None:
        done = "would be re-encrypted" if is_dry_run else "were re-encrypted"
        items = f"{report.resealed:,} item{pluralize(report.resealed)}"
        self.stdout.write(f"{items} of {report.sessions:,} session{pluralize(report.sessions)} {done}.")
        self.stdout.write(f"{report.items_by_key[ItemKeyState.NEW]:,} are encrypted with {new}.")
        if plain := report.items_by_key[ItemKeyState.PLAIN]:
            self.stdout.write(f"{plain:,} are in plain text and stay so.")
        if of_subject := report.items_by_key[ItemKeyState.OF_SUBJECT]:
            self.stdout.write(f"{of_subject:,} are encrypted with keys of subjects and stay so.")
        if report.unreadable:
            count = sum(report.unreadable.values())
            self.stdout.write(f"{count:,} open with neither key and were not changed:")
            self.name(report.unreadable)
        if is_dry_run:
            return
        if report.busy:
            self.stdout.write(
                f"{len(report.busy):,} session{pluralize(report.busy, ' was,s were')} locked the whole time:"
            )
            self.name(report.busy)
        if report.left:
            self.stdout.write(
                f"{sum(report.left.values()):,} were encrypted with {old} during the run: an agent still uses it."
            )
            self.name(report.left)
        if report.is_complete:
            self.stdout.write(
                f"Every item was checked again. No item of {store} needs {old} any more; remove it from the keyring"
                " once no agent has it."
            )
            if wrapped := keys_wrapped_with(old):
                self.stdout.write(
                    f"Do not remove {old} yet: it wraps the keys of {wrapped:,} id{pluralize(wrapped)} of subjects."
                    f" Run subject_keys --wrap-with {new}."
                )

    def name(self, sessions: dict[str, int]) -> None:
        """Prints the sessions' addresses with their number of items."""
        for place, count in list(sessions.items())[:SESSIONS_NAMED]:
            self.stdout.write(f"  {place}, items: {count:,}")
        if len(sessions) > SESSIONS_NAMED:
            self.stdout.write(f"  and {len(sessions) - SESSIONS_NAMED:,} more")


def summary(store: SessionStore, report: RotationReport, *, is_dry_run: bool) -> dict[str, object]:
    """The JSON object for scripts: keys are added, never renamed."""
    return {
        "store": store.name,
        "is_dry_run": is_dry_run,
        "is_complete": report.is_complete,
        "sessions": report.sessions,
        "resealed": report.resealed,
        "with_new_key": report.items_by_key[ItemKeyState.NEW],
        "with_old_key": report.items_by_key[ItemKeyState.OLD],
        "in_plain_text": report.items_by_key[ItemKeyState.PLAIN],
        "with_key_of_subject": report.items_by_key[ItemKeyState.OF_SUBJECT],
        "unreadable": report.items_by_key[ItemKeyState.UNREADABLE],
        "busy": sum(report.busy.values()),
    }
