"""Puts registry and fence on the tables of a store, or takes them off."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.forms import Field
from django.template.defaultfilters import pluralize
from django.utils.text import slugify

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.kinds import kinds


class Command(BaseCommand):
    help = (
        "Registers every session of a store, follows its activity, and fences erased sessions off, by triggers on the"
        " agents' tables; a store that can have none is looked through from time to time. Safe to repeat: it says so"
        " when nothing is missing, and repairs what is. The store `main` is the one that AGENT_SESSIONS_TABLE,"
        " AGENT_MESSAGES_TABLE and AGENT_TIMEZONE name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the store, for example main")
        parser.add_argument("--dry-run", action="store_true", help="print every statement, as a script for psql")
        parser.add_argument("--remove", action="store_true", help="take everything off again; registry rows stay")
        parser.add_argument("--kind", default="", choices=list(kinds()), help="of a new store; sqlalchemy if not given")
        for setting, (field, names) in settings_of_kinds().items():
            flag = f"--{setting.replace('_', '-')}"
            about = f"{field.help_text} ({', '.join(names)})".replace("%", "%%")
            parser.add_argument(flag, dest=f"option_{setting}", help=about)
        parser.add_argument("--sessions-table", default="", help="of a new store: table, or schema.table")
        parser.add_argument("--messages-table", default="", help="of a new store: table, or schema.table")
        parser.add_argument("--timezone", default="", help="the zone in which the agents write times without one")
        parser.add_argument(
            "--agent-role",
            dest="agent_roles",
            action="append",
            default=[],
            metavar="ROLE",
            help="a database role under which agents write; what others write to their tables is recorded",
        )
        parser.add_argument("--mode", default="", choices=SessionStore.FenceMode.values, help="what a late write meets")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

    def handle(self, *, name: str, dry_run: bool, remove: bool, as_json: bool, **options: Any) -> None:
        self.as_json = as_json
        self.told: list[dict[str, object]] = []
        try:
            if remove:
                self.remove(registry.known_store(name), dry_run)
            else:
                registry.known_stores()  # fails with a sentence when the database is away or not migrated
                declared = {
                    key: options[key]
                    for key in ("kind", "sessions_table", "messages_table", "timezone", "mode", "agent_roles")
                }
                declared["options"] = {
                    setting: options[f"option_{setting}"]
                    for setting in settings_of_kinds()
                    if options.get(f"option_{setting}") is not None
                }
                for each, settings in several(name, declared):
                    self.attach(each, dry_run, settings)
            if as_json:
                self.stdout.write(json.dumps(self.told[0] if len(self.told) == 1 else {"stores": self.told}, indent=2))
        except (registry.AttachRefused, registry.UnknownStore, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal

    def attach(self, name: str, dry_run: bool, declared: dict[str, Any]) -> None:
        if dry_run:
            steps, store = self.plan(name, declared)
            self.tell(store, steps, self.script(steps, f"{name} is attached; nothing is missing."), is_dry_run=True)
            return
        store = registry.declare_store(name, **declared)
        steps = registry.attach(store, report=self.report)
        sessions = sessions_of(store)
        done = f"{store} is attached, with {sessions:,} session{pluralize(sessions)} on record."
        self.tell(store, steps, done if steps else f"{store} is already attached; nothing was missing.")

    def plan(self, name: str, declared: dict[str, Any]) -> tuple[Sequence[registry.Step], SessionStore]:
        """What would run, and nothing of it is kept: the script names the store itself, under an id that stays free."""
        before = SessionStore.objects.filter(name=name).values().first()
        with transaction.atomic():
            store = registry.declare_store(name, **declared)
            after = SessionStore.objects.filter(pk=store.pk).values().first()
            steps = registry.plan_attachment(store)
            transaction.set_rollback(True)
        return (steps if before == after else [registry.plan_declaration(store), *steps]), store

    def remove(self, store: SessionStore, dry_run: bool) -> None:
        if dry_run:
            steps: Sequence[registry.Step] = registry.plan_removal(store)
            script = self.script(steps, f"{store} is not attached; nothing is there to remove.")
            self.tell(store, steps, script, is_dry_run=True)
            return
        steps = registry.remove(store, report=self.report)
        kept = sessions_of(store)
        done = (
            f"{store} is detached. Its {kept:,} registry row{pluralize(kept, ' stays,s stay')}, with subjects and"
            " erasures; from now on new sessions appear in no list, and an erased session can be written to again."
        )
        self.tell(store, steps, done if steps else f"{store} was not attached; nothing was there to remove.")

    def script(self, steps: Sequence[registry.Step], nothing: str) -> str:
        return "\n\n".join(step.as_script() for step in steps) if steps else f"-- {nothing}"

    def report(self, purpose: str) -> None:
        """Says each step before it runs; nothing where the answer is one JSON object."""
        if not self.as_json:
            self.stdout.write(purpose)

    def tell(
        self, store: SessionStore, steps: Sequence[registry.Step], sentence: str, *, is_dry_run: bool = False
    ) -> None:
        if self.as_json:
            self.told.append(summary(store, steps, is_dry_run=is_dry_run))
        else:
            self.stdout.write(sentence)


def settings_of_kinds() -> dict[str, tuple[Field, list[str]]]:
    """What any kind asks for, by name, with the names of the kinds that do."""
    found: dict[str, tuple[Field, list[str]]] = {}
    for kind in kinds().values():
        for name, field in kind.form.base_fields.items():
            found.setdefault(name, (field, []))[1].append(kind.name)
    return found


def several(name: str, declared: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The stores that a path with `*` names, one per file, each called after it; those that are connected stay as they
    are. The store itself where nothing stands for several. Raises AttachRefused when there is no such file."""
    path = str(declared["options"].get("path", ""))
    if "*" not in path:
        yield name, declared
        return
    files = sorted(Path(file).resolve() for file in glob(path, recursive=True) if Path(file).is_file())
    if not files:
        raise registry.AttachRefused(f"No file is named {path}.")
    connected = set(SessionStore.objects.values_list("options__path", flat=True))
    for file in files:
        if str(file) not in connected:
            each = slugify(f"{name}-{file.stem}")[:64]
            yield each, {**declared, "options": {**declared["options"], "path": str(file)}}


def sessions_of(store: SessionStore) -> int:
    """On record. The main store may have no row of its own yet."""
    return SessionRecord.objects.filter(store=store).count() if store.pk else 0


def summary(store: SessionStore, steps: Sequence[registry.Step], *, is_dry_run: bool) -> dict[str, object]:
    """In the shape that scripts rely on: keys are added, never renamed."""
    return {
        "store": store.name,
        "is_attached": store.attached_at is not None,
        "sessions": sessions_of(store),
        "is_dry_run": is_dry_run,
        "steps": [
            {"purpose": step.purpose, "statements": [statement.as_string(None) for statement in step.statements]}
            for step in steps
        ],
    }
