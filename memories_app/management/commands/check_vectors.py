"""`check_vectors`: compares the external vector index with the database."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories_app.recall.indexing import NoOtherIndex, compare_vectors
from memories_app.recall.vectors import IndexAway


class Command(BaseCommand):
    help = (
        "Compares the vectors in MEMADMIN_VECTOR_INDEX with those of approved memories, and counts vectors that are"
        " missing, outdated (of an earlier text) or left over. Run it with --mend to fill a new index. The worker"
        " does so once a night. Exits with 1 if differences were found and not repaired."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--mend", action="store_true", help="repair the differences")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, mend: bool, as_json: bool, **options: Any) -> None:
        try:
            compared = compare_vectors(mend=mend)
        except NoOtherIndex as nothing:
            raise CommandError(str(nothing)) from nothing
        except IndexAway as away:
            raise CommandError(f"The vector index is not responding ({away}).") from away
        if as_json:
            self.stdout.write(json.dumps({"mended": mend, **asdict(compared)}))
        else:
            self.stdout.write(
                f"{compared.held:,} in the index, {compared.lacking:,} missing, {compared.outdated:,} outdated,"
                f" {compared.left_over:,} left over{'; repaired' if mend and not compared.is_alike else ''}"
            )
        if not (mend or compared.is_alike):
            sys.exit(1)
