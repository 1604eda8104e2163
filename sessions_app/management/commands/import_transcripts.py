"""Brings chat transcripts into a store."""

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
        "Writes conversations in chat form (role, content, tool_calls) into a store, through the agents' SDK. Reads"
        " JSON and JSON Lines, gzipped or not. Safe to repeat: what is there already is not written again. What cannot"
        " be read is named by its line, and the others are imported all the same."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="JSON or JSON Lines, gzipped or not")
        parser.add_argument("--store", required=True, help="the store to write into, for example main")
        parser.add_argument(
            "--subject-field",
            default="",
            metavar="KEY",
            help="what stands beside the messages and is the customer's id",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

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
            raise CommandError(f"{file} has more in one piece than the memory of this machine holds.") from problem
        except KeyboardInterrupt:
            raise CommandError("Stopped. The same import, run again, goes on from here.", returncode=130) from None
        if as_json:
            self.stdout.write(json.dumps(asdict(report)))
        else:
            self.tell(report, target)

    def tell(self, report: ImportReport, store: SessionStore) -> None:
        self.stdout.write(f"{report.sessions:,} sessions and {report.items:,} items went into {store}.")
        if report.without_record:
            self.stdout.write(
                f"The subjects of {report.without_record:,} are not noted, because {store} is not attached. Run"
                f" attach_store {store}, then this import again."
            )
        if report.skipped:
            self.stdout.write(f"Not imported ({len(report.skipped):,}):")
        for skipped in report.skipped:
            self.stdout.write(f"  line {skipped.line}: {skipped.reason}")


def progress(source: BufferedReader) -> tqdm[Any]:
    """A bar over the bytes of the file; on a terminal only."""
    return tqdm(total=Path(source.name).stat().st_size, unit="B", unit_scale=True, desc="importing", disable=None)
