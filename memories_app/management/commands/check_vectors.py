"""Holds another index of vectors against the database."""

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
        "Holds the vectors of MEMADMIN_VECTOR_INDEX against those of approved memories: what is lacking there, what is"
        " of another text, and what should not be there any more. Run it with --mend to fill a new index. The worker"
        " does so once a night. Ends with 1 where something differed and was not mended."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--mend", action="store_true", help="put right what differs")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

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
                f"{compared.held:,} there, {compared.lacking:,} lacking, {compared.outdated:,} of another text,"
                f" {compared.left_over:,} left over{', mended' if mend and not compared.is_alike else ''}"
            )
        if not (mend or compared.is_alike):
            sys.exit(1)
