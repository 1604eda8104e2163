"""Proposes what another system remembers."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories_app.services.importing import NotAProfile, entries_of_profile, import_entries


class Command(BaseCommand):
    help = "Proposes what a file says of people. Reviewers decide. Safe to repeat: what is known is left out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--format", choices=["profile"], default="profile", help="of the file")

    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            value = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as problem:
            raise CommandError(f"{file} cannot be read as JSON: {problem}") from problem
        try:
            imported = import_entries(entries_of_profile(value))
        except NotAProfile as problem:
            raise CommandError(str(problem)) from problem
        for sentence in imported.problems:
            self.stderr.write(sentence)
        self.stdout.write(
            f"{imported.proposed} proposed, {imported.known} known already, {len(imported.problems)} not readable"
        )
        if imported.problems:
            sys.exit(1)
