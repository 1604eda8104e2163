"""`export_audit`: the log, or the proof of one event, as a file for the stand-alone verifier."""

from __future__ import annotations

import gzip
import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from memadmin.audit.audit_events import EVENT_PROOF_EXPORTED, LOG_EXPORTED
from memadmin.audit.log.recording import before_showing
from memadmin.audit.models import AuditCheckpoint, AuditEvent
from memadmin.audit.transparency import log_export
from memadmin.audit.transparency.proofs import NotProvableYet, consistency_of, proof_of
from memadmin.audit.transparency.tree_store import TreeDamaged


class Command(BaseCommand):
    help = (
        "Writes the whole audit log, or the proof for one event or for two checkpoints, for the stand-alone verifier"
        " memadmin/audit/transparency/verifier.py, which needs no other part of memadmin."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="output file; - for standard output; compressed if it ends in .gz")
        only = parser.add_mutually_exclusive_group()
        only.add_argument("--event", type=UUID, help="id of an event: write its proof")
        only.add_argument(
            "--between",
            nargs=2,
            type=int,
            metavar=("OLD", "NEW"),
            help="sizes of two checkpoints: write the proof that the log of the second begins with that of the first",
        )
        parser.add_argument(
            "--signed",
            action="store_true",
            help="end with the newest checkpoint, without newer events, which the verifier reports as unsigned",
        )
        parser.add_argument(
            "--details", action="store_true", help="include reasons and values, which may contain personal data"
        )

    def handle(
        self,
        *,
        file: Path,
        event: UUID | None,
        between: tuple[int, int] | None,
        signed: bool,
        details: bool,
        **options: Any,
    ) -> None:
        if event:
            self.export_proof(file, event, with_details=details)
            return
        if between:
            self.export_consistency(file, *between)
            return
        with opened(file) as target:
            before_showing(LOG_EXPORTED, reason_code="whole")
            for line in log_export.as_json_lines(with_details=details, only_signed=signed):
                target.write(line.encode())

    def export_proof(self, file: Path, event_id: UUID, *, with_details: bool) -> None:
        event = AuditEvent.objects.filter(id=event_id).first()
        if event is None:
            raise CommandError(f"The log has no event {event_id}.")
        try:
            proof = proof_of(event)
        except (NotProvableYet, TreeDamaged) as problem:
            raise CommandError(str(problem)) from problem
        with opened(file) as target:
            before_showing(EVENT_PROOF_EXPORTED, target=event)
            target.write(proof.as_file(with_details=with_details))

    def export_consistency(self, file: Path, old: int, new: int) -> None:
        found = AuditCheckpoint.objects.in_bulk([old, new])
        for size in (old, new):
            if size not in found:
                raise CommandError(f"There is no checkpoint of size {size:,}.")
        if not 0 < old <= new:
            raise CommandError("The first checkpoint must be the smaller one, and not empty.")
        with opened(file) as target:
            before_showing(LOG_EXPORTED, reason_code="consistency")
            target.write(json.dumps(consistency_of(found[old], found[new]), indent=1).encode() + b"\n")


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    try:
        if str(file) == "-":
            yield sys.stdout.buffer
        elif file.suffix == ".gz":
            with gzip.open(file, "wb", compresslevel=5) as target:
                yield target  # type: ignore[misc]
        else:
            with file.open("wb") as target:
                yield target
    except OSError as problem:
        raise CommandError(f"{file} cannot be written: {problem.strerror}.") from problem
