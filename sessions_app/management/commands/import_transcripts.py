"""`import_transcripts`: writes chat transcripts into a store."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from io import BufferedReader
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.transcripts import ImportReport, ImportRunning, import_transcripts
from sessions_app.stores.base import StoreUnavailable


class Command(BaseCommand):
    help = (
        "Imports conversations in chat form (role, content, tool_calls) into a store, through the agents' SDK. Reads"
        " JSON and JSON Lines, gzipped or not. Safe to repeat: items that are already stored are not written again."
        " Lines that cannot be read are listed, and the others are imported."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="JSON or JSON Lines, gzipped or not")
        parser.add_argument("--store", required=True, help="the store to write into, for example main")
        parser.add_argument(
            "--subject-field",
            default="",
            metavar="KEY",
            help="field beside the messages that contains the customer's id",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, file: Path, store: str, subject_field: str, as_json: bool, **options: Any) -> None:
        try:
            target = registry.known_store(store)
            with file.open("rb") as source, progress(source) as bar:
                report = import_transcripts(
                    source,
                    target,
                    subject_field=subject_field,
                    after_each=lambda: bar.update(source.tell() - bar.n),
                )
        except (ImportRunning, StoreUnavailable, registry.UnknownStore) as problem:
            raise CommandError(str(problem)) from problem
        except OSError as problem:
            raise CommandError(f"{file} cannot be read: {problem.strerror or problem}.") from problem
        except MemoryError as problem:
            raise CommandError(
                f"{file} contains one value that is too large for the memory of this machine."
            ) from problem
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run the same import again to continue.", returncode=130) from None
        if as_json:
            self.stdout.write(json.dumps(asdict(report)))
        else:
            self.write_report(report, target)

    def write_report(self, report: ImportReport, store: SessionStore) -> None:
        self.stdout.write(f"Imported {report.sessions:,} sessions and {report.items:,} items into {store}.")
        if report.without_record:
            self.stdout.write(
                f"The subjects of {report.without_record:,} sessions were not recorded, because {store} is not"
                f" attached. Run attach_store {store}, then this import again."
            )
        if report.skipped:
            self.stdout.write(f"Not imported ({len(report.skipped):,}):")
        for skipped in report.skipped:
            self.stdout.write(f"  line {skipped.line}: {skipped.reason}")


def progress(source: BufferedReader) -> tqdm[Any]:
    """Progress over the bytes of the file; on a terminal only."""
    return tqdm(total=Path(source.name).stat().st_size, unit="B", unit_scale=True, desc="importing", disable=None)
