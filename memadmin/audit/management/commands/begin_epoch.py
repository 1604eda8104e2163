"""`begin_epoch`: lets the audit log go on after the database was restored from an older state."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.audit.audit_events import EPOCH_BEGUN
from memadmin.audit.transparency import epochs


class Command(BaseCommand):
    help = (
        "After a restore the anchors know a longer log than the database has, and events wait for their places. This"
        " writes a signed record of what is lost, anchors it, and lets the log go on. Events that were lost stay lost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reason", required=True, choices=EPOCH_BEGUN.reasons, help="recorded with it")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

    def handle(self, *, reason: str, as_json: bool, **options: Any) -> None:
        try:
            begun = epochs.begin_epoch(reason_code=reason)
        except (epochs.NothingRestored, epochs.NoSigningKey) as problem:
            raise CommandError(str(problem)) from problem
        assert begun.replaced
        if as_json:
            told = {"epoch": begun.epoch, "size": begun.size, "lost_size": begun.replaced[0]}
            self.stdout.write(json.dumps(told, indent=2))
            return
        self.stdout.write(
            f"Epoch {begun.epoch} begins at {begun.size:,}. The log was known up to {begun.replaced[0]:,}; what stood"
            " between is not in the database."
        )
