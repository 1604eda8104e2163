"""`check_deploy`: errors and risks of a deployment."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from memadmin.deploy import checks


class Command(BaseCommand):
    help = (
        "Checks roles, grants, triggers, the audit log, worker, stores, backups and settings. Run it with the"
        " environment of the web server. Exits with 1 if there is an error."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, as_json: bool, **options: Any) -> None:
        found = checks.findings()
        if as_json:
            self.stdout.write(json.dumps({"findings": [asdict(finding) for finding in found]}, indent=2))
        elif not found:
            self.stdout.write("No problems found.")
        else:
            for finding in found:
                self.stdout.write(f"{finding.level}: {finding.check}: {finding.hint}")
        if any(finding.level == "error" for finding in found):
            sys.exit(1)
