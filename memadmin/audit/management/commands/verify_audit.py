"""`verify_audit`: checks the tree against the events and the anchors."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.audit.transparency import verifier
from memadmin.audit.transparency.verification import verify
from memadmin.web.health import unusable_because


class Command(BaseCommand):
    help = (
        "Compares every event with the audit log's tree, signatures and anchors, reports each damage, and stores the"
        " verdict for the audit page. Exits with 1 if the log is broken, 2 if the database cannot be read, 3 if older"
        " events are not signed, and 4 if the log continues from an older state after a restore."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, as_json: bool, **options: Any) -> None:
        try:
            report = verify()
        except Exception as problem:
            # Not exit status 1, which would report a broken log.
            if reason := unusable_because(problem):
                raise CommandError(reason, returncode=verifier.CANNOT_READ) from problem
            raise
        self.stdout.write(json.dumps(report.as_json(), indent=2) if as_json else verifier.report_text(report))
        if status := verifier.EXIT_STATUS[report.verdict]:
            raise SystemExit(status)
