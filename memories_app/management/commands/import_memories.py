"""`import_memories`: proposes memories of another system."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories_app.exchange.formats import FORMATS
from memories_app.exchange.importing import Imported, NotMemories, import_file, import_store
from sessions_app import registry
from sessions_app.stores.base import StoreUnavailable


class Command(BaseCommand):
    help = (
        "Proposes the memories in a file or a table: exports of mem0, profiles, lines of export_memories (JSON or"
        " JSON Lines, gzipped or not), or the user memories of agno and phidata in a store. Reviewers decide on"
        " them. Safe to repeat: known memories are skipped. Refused memories are listed with their place and the"
        " reason, and the others are imported. Exits with 1 if any was refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", help="JSON or JSON Lines, gzipped or not")
        parser.add_argument("--store", help="store with the memories of agno or phidata, instead of a file")
        parser.add_argument(
            "--format", choices=sorted(FORMATS), default="", help="format of the file; default: detected for each value"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, file: Path | None, store: str | None, format: str, as_json: bool, **options: Any) -> None:
        if (file is None) == (store is None):
            raise CommandError("Name a file, or a store with --store.")
        try:
            if file:
                with file.open("rb") as opened:
                    imported = import_file(opened, of=format)
            else:
                imported = import_store(registry.known_store(str(store)))
        except OSError as problem:
            raise CommandError(f"{file} cannot be read: {problem.strerror or problem}.") from problem
        except (NotMemories, StoreUnavailable, registry.UnknownStore) as problem:
            raise CommandError(f"{problem}") from problem
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run the same import again to continue.", returncode=130) from None
        if as_json:
            self.stdout.write(json.dumps(asdict(imported)))
        else:
            self.print_report(imported)
        if imported.refused:
            sys.exit(1)
        if not (imported.proposed or imported.known):
            raise CommandError("It contains no memories.")

    def print_report(self, imported: Imported) -> None:
        for refused in imported.refused:
            self.stderr.write(f"{refused.place}: {refused.reason}")
        self.stdout.write(
            f"{imported.proposed:,} proposed, {imported.known:,} known, {len(imported.refused):,} refused"
        )
