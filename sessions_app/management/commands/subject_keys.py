"""`subject_keys`: the folder of subjects' keys, and a change of the key that wraps them."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from memadmin.client.subject_keys import SubjectKeysUnavailable
from sessions_app.encryption.subject_keys import key_folder
from sessions_app.services.subject_keys import wrap_subject_keys


class Command(BaseCommand):
    help = "Counts the keys of subjects by the key of the keyring that wraps them, or wraps all with another one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--wrap-with", metavar="NAME", help="wrap all keys with this key of the keyring")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, wrap_with: str | None, as_json: bool, **options: Any) -> None:
        folder = key_folder()
        if folder is None:
            raise CommandError("There is no folder of subjects' keys here: MEMADMIN_SUBJECT_KEYS_DIR is not set.")
        try:
            wrapped = wrap_subject_keys(folder, key=wrap_with) if wrap_with else 0
            counts = folder.wrapped_with()
        except SubjectKeysUnavailable as problem:
            raise CommandError(str(problem)) from problem
        destroyed = counts.pop("", 0)
        problems = folder.problems()
        if as_json:
            report = {"keys": dict(counts), "destroyed": destroyed, "wrapped": wrapped, "problems": problems}
            self.stdout.write(json.dumps(report, indent=2))
            return
        if wrap_with:
            self.stdout.write(f"{wrapped:,} key{pluralize(wrapped)} had another key around it before.")
        for name, count in sorted(counts.items()):
            self.stdout.write(f"{count:,} key{pluralize(count)} wrapped with {name}")
        self.stdout.write(f"{destroyed:,} destroyed")
        for sentence in problems:
            self.stdout.write(f"  - {sentence}")
