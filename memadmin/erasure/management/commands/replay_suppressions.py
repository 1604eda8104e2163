"""`replay_suppressions`: repeats erasures after a backup was restored."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.erasure.suppression.ledger import LedgerError
from memadmin.erasure.suppression.replay import replay


class Command(BaseCommand):
    help = (
        "Repeats the erasures that a restored database does not know, by the suppression ledger"
        " (MEMADMIN_SUPPRESSION_LEDGER). The console shows no page before that."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, as_json: bool, **_: Any) -> None:
        try:
            done = replay()
        except LedgerError as problem:
            raise CommandError(str(problem)) from problem
        if as_json:
            self.stdout.write(json.dumps(asdict(done), indent=2))
        else:
            self.stdout.write(f"{done.entries} entries of the ledger, {done.subjects} subjects erased again.")
        if done.unfinished:
            raise CommandError("Not finished. " + " ".join(done.unfinished))
