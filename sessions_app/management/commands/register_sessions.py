"""Takes sessions into the registry that their store cannot list."""

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
"""How many ids are named one by one; with --json all are."""


class Command(BaseCommand):
    help = (
        "Registers sessions by their ids, where the store cannot list them (OpenAI Conversations, Dapr). Safe to"
        " repeat: what is on record already stays as it is, what was erased stays erased, and what the store does not"
        " know is named and not registered."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("store", help="the store, for example helpdesk")
        parser.add_argument("ids", nargs="*", metavar="ID", help="the id of a session")
        parser.add_argument("--file", default="", help="a file with an id on each line, or - for what is piped in")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

    def handle(self, *, store: str, ids: Sequence[str], file: str, as_json: bool, **options: Any) -> None:
        if not ids and not file:
            raise CommandError("Give the ids of the sessions, or a --file with an id on each line.")
        try:
            target = registry.known_store(store)
            told = register_sessions(target, [*ids, *(ids_in(file) if file else ())])
        except (registry.UnknownStore, CannotRegister, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal
        if as_json:
            self.stdout.write(json.dumps(asdict(told)))
        else:
            self.tell(told, target)
        if told.not_there:
            sys.exit(1)

    def tell(self, told: Registration, store: SessionStore) -> None:
        self.stdout.write(
            f"{told.new:,} session{pluralize(told.new)} of {store} registered, {told.known:,} on record before."
        )
        self.name(told.erased, "Erased before, and left so")
        self.name(told.not_there, f"Not in {store}, and not registered")

    def name(self, ids: Sequence[str], what: str) -> None:
        if ids:
            self.stdout.write(f"{what} ({len(ids):,}):")
            for session_id in ids[:NAMED]:
                self.stdout.write(f"  {session_id!a}")
            if len(ids) > NAMED:
                self.stdout.write(f"  and {len(ids) - NAMED:,} more; --json names all")


def ids_in(file: str) -> Iterator[str]:
    """Of a file with an id on each line; an id may have spaces at its ends, so only empty lines are passed over."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise CommandError(f"{file} is not a text in UTF-8.") from problem
    except OSError as problem:
        raise CommandError(f"{file} cannot be read: {problem.strerror or problem}.") from problem
    lines = text.split("\n")
    bad = next((number for number, line in enumerate(lines, start=1) if "\0" in line), None)
    if bad:
        raise CommandError(f"{file} has a NUL in line {bad}; no id has one.")
    return (line for line in (line.removesuffix("\r") for line in lines) if line.strip())
