"""`verify_receipt`: checks a receipt against the keys, the anchors and the log of this installation."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.audit.transparency import receipts, verifier
from memadmin.web.health import unusable_because


class Command(BaseCommand):
    help = (
        "Verifies the receipt of a request such as an erasure, and that its event is in the audit log of this database;"
        " prints what the receipt states. Exits with 1 if the receipt or the log was changed, and 2 if the file is no"
        " receipt or the database cannot be read."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the receipt")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, file: Path, as_json: bool, **options: Any) -> None:
        try:
            with file.open("rb") as opened:
                report = receipts.verify(opened.read(verifier.MOST_RECEIPT + 1))
        except OSError as problem:
            message = f"{file} cannot be read: {problem.strerror}."
            raise CommandError(message, returncode=verifier.CANNOT_READ) from problem
        except verifier.CannotRead as problem:
            raise CommandError(str(problem), returncode=verifier.CANNOT_READ) from problem
        except Exception as problem:
            # Not exit status 1, which would report a changed receipt.
            if reason := unusable_because(problem):
                raise CommandError(reason, returncode=verifier.CANNOT_READ) from problem
            raise
        self.stdout.write(json.dumps(report.as_json(), indent=2) if as_json else verifier.receipt_text(report))
        if status := verifier.EXIT_STATUS[report.verdict]:
            raise SystemExit(status)
