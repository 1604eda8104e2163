"""Puts registry and fence on the tables of a store, or takes them off."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import StoreUnavailable


class Command(BaseCommand):
    help = (
        "Registers every session of a store, follows its activity, and fences erased sessions off, by triggers on the"
        " agents' tables. Safe to repeat: it says so when nothing is missing, and repairs what is. The store `main` is"
        " the one that AGENT_SESSIONS_TABLE, AGENT_MESSAGES_TABLE and AGENT_TIMEZONE name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the store, for example main")
        parser.add_argument("--dry-run", action="store_true", help="print every statement, as a script for psql")
        parser.add_argument("--remove", action="store_true", help="take everything off again; registry rows stay")
        parser.add_argument("--sessions-table", default="", help="of a new store: table, or schema.table")
        parser.add_argument("--messages-table", default="", help="of a new store: table, or schema.table")
        parser.add_argument("--timezone", default="", help="the zone in which the agents write times without one")
        parser.add_argument("--mode", default="", choices=SessionStore.FenceMode.values, help="what a late write meets")

    def handle(self, *, name: str, dry_run: bool, remove: bool, **options: Any) -> None:
        try:
            if remove:
                self.remove(registry.known_store(name), dry_run)
            else:
                registry.known_stores()  # fails with a sentence when the database is away or not migrated
                declared = {key: options[key] for key in ("sessions_table", "messages_table", "timezone", "mode")}
                self.attach(name, dry_run, declared)
        except (registry.AttachRefused, registry.UnknownStore, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal

    def attach(self, name: str, dry_run: bool, declared: dict[str, str]) -> None:
        if dry_run:
            self.print_script(self.plan(name, declared), f"{name} is attached; nothing is missing.")
            return
        store = registry.declare_store(name, **declared)
        if not registry.attach(store, report=self.stdout.write):
            self.stdout.write(f"{store} is already attached; nothing was missing.")
        else:
            sessions = SessionRecord.objects.filter(store=store).count()
            self.stdout.write(f"{store} is attached, with {sessions:,} sessions on record.")

    def plan(self, name: str, declared: dict[str, str]) -> list[registry.Step]:
        """What would run, and nothing of it is kept: the script names the store itself, under an id that stays free."""
        before = SessionStore.objects.filter(name=name).values().first()
        with transaction.atomic():
            store = registry.declare_store(name, **declared)
            after = SessionStore.objects.filter(pk=store.pk).values().first()
            steps = registry.plan_attachment(store)
            transaction.set_rollback(True)
        return steps if before == after else [registry.plan_declaration(store), *steps]

    def remove(self, store: SessionStore, dry_run: bool) -> None:
        if dry_run:
            self.print_script(registry.plan_removal(store), f"{store} is not attached; nothing is there to remove.")
        elif not registry.remove(store, report=self.stdout.write):
            self.stdout.write(f"{store} was not attached; nothing was there to remove.")
        else:
            kept = SessionRecord.objects.filter(store=store).count()
            self.stdout.write(
                f"{store} is detached. Its {kept:,} registry rows stay, with subjects and erasures; from now on new"
                " sessions appear in no list, and an erased session can be written to again."
            )

    def print_script(self, steps: list[registry.Step], nothing: str) -> None:
        self.stdout.write("\n\n".join(step.as_script() for step in steps) if steps else f"-- {nothing}")
