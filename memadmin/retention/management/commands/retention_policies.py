"""`retention_policies`: the retention policies as a file, for a team that keeps them in version control."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.accounts.commands import acting_person
from memadmin.counting import counted
from memadmin.retention.policies import as_code
from memadmin.retention.policies.drafts import Problem, text_of

CHANGE = "retention.change_policy"

LARGEST = 1024**2


class Command(BaseCommand):
    help = (
        "Writes the retention policies in force to a TOML file, or proposes what such a file would change. Changes that"
        " could delete more wait until a second person approves them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["export", "import"], help="what to do")
        parser.add_argument("file", nargs="?", default="-", help="the file; export: - or none for standard output")
        parser.add_argument("--dry-run", action="store_true", help="import: print the differences, and change nothing")
        parser.add_argument("--end-others", action="store_true", help="import: policies that are not in the file end")
        parser.add_argument("--reason", default="", help="import: why; stored with the changes")
        parser.add_argument("--by", default="", metavar="NAME", help="import: the person who proposes the changes")

    def handle(self, *, action: str, file: str, **options: Any) -> None:
        if action == "export":
            self.export(file)
            return
        try:
            self.import_from(file, **options)
        except as_code.FileError as problem:
            mistakes = "\n".join(f"{file}: {mistake}" for mistake in problem.mistakes)
            raise CommandError(f"{mistakes}\nNothing was changed.") from problem

    def export(self, file: str) -> None:
        text = as_code.exported()
        if file == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise CommandError(f"{file} cannot be written: {problem.strerror}.") from problem

    def import_from(self, file: str, *, dry_run: bool, end_others: bool, reason: str, by: str, **options: Any) -> None:
        """Prints the differences, and then proposes them: all, or none."""
        changes = as_code.changes_by(as_code.drafts_from(text_from(file)), end_others=end_others)
        self.show(changes)
        if dry_run or all(change.is_proposed for change in changes):
            return
        if not reason.strip():
            raise CommandError("Changes need a --reason. Nothing was changed.")
        for made in as_code.carry_out(
            changes, reason=checked_reason(reason), by=acting_person(by, CHANGE) if by else None
        ):
            rows = f"{counted(made.rows, 'rows')} would go now"
            state = f"waits for a second person; {rows}" if made.awaits_approval else "in force"
            self.stdout.write(f"{made.name}: {state}.")

    def show(self, changes: Sequence[as_code.Change]) -> None:
        if not changes:
            self.stdout.write("The policies in force are those of the file.")
        for change in changes:
            state = "proposed already" if change.is_proposed else "new" if change.policy is None else "changes"
            self.stdout.write(f"{change.name} ({state})")
            for each in change.differences:
                if each.old:
                    self.stdout.write(f"  - {each.label}: {each.old}")
                if each.new:
                    self.stdout.write(f"  + {each.label}: {each.new}")


def text_from(file: str) -> str:
    """The text of a file. Raises FileError."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except OSError as problem:
        raise as_code.FileError(f"It cannot be read: {problem.strerror}.") from problem
    if len(content) > LARGEST:
        raise as_code.FileError("It is larger than 1 MB.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise as_code.FileError("It is no text in UTF-8.") from problem


def checked_reason(reason: str) -> str:
    try:
        return text_of("reason", reason)
    except Problem as problem:
        raise CommandError(f"{problem} Nothing was changed.") from problem
