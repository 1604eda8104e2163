"""`export_memories`: writes memories as JSON Lines."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from memadmin import audit
from memories_app.exchange.exporting import export_memories
from memories_app.models import Memory
from sessions_app.models import SubjectKind
from sessions_app.services.subjects import UnknownKey, known_subject, merge_target


class Command(BaseCommand):
    help = (
        "Writes the memories of one subject or of all, with their evidence, as JSON Lines. import_memories proposes"
        " them in another installation. The export is recorded in the audit log."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--subject", metavar="KEY", help="id of one subject, to export its memories only")
        parser.add_argument(
            "--subject-kind", choices=SubjectKind.values, default=SubjectKind.USER, help="kind of that subject"
        )
        parser.add_argument(
            "--status",
            choices=Memory.Status.values,
            action="append",
            default=[],
            help="status to export; may be repeated",
        )
        parser.add_argument(
            "--output", type=Path, help="new file, readable by its owner only; default: standard output"
        )

    def handle(
        self, *, subject: str | None, subject_kind: str, status: list[str], output: Path | None, **options: Any
    ) -> None:
        try:
            whose = merge_target(known_subject(subject_kind, subject)) if subject else None
            lines = export_memories(subject=whose, statuses=status)
            if output is None:
                for line in lines:
                    self.stdout.write(_as_text(line))
                return
            with open(output, "x", encoding="utf-8", opener=_for_owner_alone) as file:
                for line in tqdm(lines, unit=" memories", disable=None):
                    file.write(_as_text(line) + "\n")
        except UnknownKey as unknown:
            raise CommandError(str(unknown)) from unknown
        except audit.AuditUnavailable as unavailable:
            raise CommandError(str(unavailable)) from unavailable
        except FileExistsError as problem:
            raise CommandError(f"{output} already exists and was not changed.") from problem
        except OSError as problem:
            raise CommandError(f"{output} cannot be written: {problem.strerror or problem}.") from problem


def _as_text(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False)


def _for_owner_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
