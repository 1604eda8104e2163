"""`register_sessions`: registers sessions by id, for stores that cannot list them."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.registering import CannotRegister, Registration, register_sessions
from sessions_app.stores.base import StoreUnavailable

NAMED = 20
"""Number of ids that are printed; --json prints all."""


class Command(BaseCommand):
    help = (
        "Registers sessions by their ids, where the store cannot list them (OpenAI Conversations, Dapr). Safe to"
        " repeat: registered sessions stay as they are, erased sessions stay erased, and ids that the store does not"
        " have are listed and not registered."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("store", help="name of the store, for example helpdesk")
        parser.add_argument("ids", nargs="*", metavar="ID", help="id of a session")
        parser.add_argument("--file", default="", help="file with one id per line; - reads standard input")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, store: str, ids: Sequence[str], file: str, as_json: bool, **options: Any) -> None:
        if not ids and not file:
            raise CommandError("Give the ids of the sessions, or a --file with one id per line.")
        try:
            target = registry.known_store(store)
            result = register_sessions(target, [*ids, *(ids_in(file) if file else ())])
        except (registry.UnknownStore, CannotRegister, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal
        if as_json:
            self.stdout.write(json.dumps(asdict(result)))
        else:
            self.write_report(result, target)
        if result.not_there:
            sys.exit(1)

    def write_report(self, result: Registration, store: SessionStore) -> None:
        self.stdout.write(
            f"Registered {result.new:,} new session{pluralize(result.new)} of {store}; {result.known:,} were already"
            " registered."
        )
        self.name(result.erased, "Erased before, and not registered")
        self.name(result.not_there, f"Not in {store}, and not registered")

    def name(self, ids: Sequence[str], what: str) -> None:
        if ids:
            self.stdout.write(f"{what} ({len(ids):,}):")
            for session_id in ids[:NAMED]:
                self.stdout.write(f"  {session_id!a}")
            if len(ids) > NAMED:
                self.stdout.write(f"  and {len(ids) - NAMED:,} more; --json names all")


def ids_in(file: str) -> Iterator[str]:
    """The ids in a file with one per line; an id may begin or end with spaces, so only empty lines are skipped."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise CommandError(f"{file} is not UTF-8 text.") from problem
    except OSError as problem:
        raise CommandError(f"{file} cannot be read: {problem.strerror or problem}.") from problem
    lines = text.split("\n")
    bad = next((number for number, line in enumerate(lines, start=1) if "\0" in line), None)
    if bad:
        raise CommandError(f"{file} has a NUL character in line {bad}; ids cannot contain one.")
    return (line for line in (line.removesuffix("\r") for line in lines) if line.strip())
