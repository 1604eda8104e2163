"""`begin_epoch`: continues the audit log after the database was restored from an older state."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.audit.audit_events import EPOCH_BEGUN
from memadmin.audit.transparency import epochs
from memadmin.audit.transparency.keys import NoSigningKey
from memadmin.audit.transparency.verified_tree import TreeRewritten


class Command(BaseCommand):
    help = (
        "After a restore the anchors contain a longer log than the database, and new events are not sequenced. This"
        " command signs and anchors a record of the lost events and continues the log. Lost events stay lost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--reason", required=True, choices=EPOCH_BEGUN.reasons, help="reason code, recorded with the epoch"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, reason: str, as_json: bool, **options: Any) -> None:
        try:
            begun = epochs.begin_epoch(reason_code=reason)
        except (epochs.NothingRestored, NoSigningKey, TreeRewritten) as problem:
            raise CommandError(str(problem)) from problem
        assert begun.replaced
        if as_json:
            begun_as_json = {"epoch": begun.epoch, "size": begun.size, "lost_size": begun.replaced[0]}
            self.stdout.write(json.dumps(begun_as_json, indent=2))
            return
        self.stdout.write(
            f"Epoch {begun.epoch} begins at {begun.size:,}. The anchors contain the log up to {begun.replaced[0]:,};"
            " the events between are not in the database."
        )
