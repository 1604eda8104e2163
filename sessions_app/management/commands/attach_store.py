"""`attach_store`: installs registry and fence on the tables of a store, or removes them."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.forms import Field
from django.template.defaultfilters import pluralize

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore, WatchedPath
from sessions_app.services import path_watch
from sessions_app.services.attaching import detach_store
from sessions_app.services.connecting import attach_declared
from sessions_app.services.store_config import StoreStillNeeded, check_unneeded, declare_store, delete_store
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.kinds import kinds


class Command(BaseCommand):
    help = (
        "Registers every session of a store, follows its activity and fences off erased sessions, by triggers on the"
        " agents' tables. A store that cannot have triggers is polled instead. Safe to repeat: a second run repairs"
        " what is missing, or reports that nothing is. The store `main` is the one named by AGENT_SESSIONS_TABLE,"
        " AGENT_MESSAGES_TABLE and AGENT_TIMEZONE."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name",
            help="name of the store, for example main; with a path that contains *, the prefix of its stores' names",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print the statements as a psql script, without running them"
        )
        parser.add_argument(
            "--remove",
            action="store_true",
            help="remove registry and fence; session records are kept. Deletes an unattached store without records",
        )
        parser.add_argument(
            "--kind", default="", choices=list(kinds()), help="for a new store: its kind; default: sqlalchemy"
        )
        for setting, (field, names) in settings_of_kinds().items():
            flag = f"--{setting.replace('_', '-')}"
            about = f"{field.help_text} ({', '.join(names)})".replace("%", "%%")
            parser.add_argument(flag, dest=f"option_{setting}", metavar=setting.upper(), help=about)
        parser.add_argument(
            "--sessions-table", default="", help="for a new store: the sessions table, as table or schema.table"
        )
        parser.add_argument(
            "--messages-table", default="", help="for a new store: the messages table, as table or schema.table"
        )
        parser.add_argument("--timezone", default="", help="time zone of times that agents write without one")
        parser.add_argument(
            "--agent-role",
            dest="agent_roles",
            action="append",
            default=[],
            metavar="ROLE",
            help="database role of the agents; writes to their tables by any other role are recorded",
        )
        parser.add_argument(
            "--mode", default="", choices=SessionStore.FenceMode.values, help="reaction to a write to an erased session"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, name: str, dry_run: bool, remove: bool, as_json: bool, **options: Any) -> None:
        self.as_json = as_json
        self.summaries: list[dict[str, object]] = []
        try:
            if remove:
                watched = WatchedPath.objects.filter(name=name).first() if registry.known_stores() else None
                if watched:
                    self.stop_watching(watched, dry_run)
                else:
                    self.remove(registry.known_store(name), dry_run)
            else:
                registry.known_stores()  # Raises StoreUnavailable when the database is not responding or not migrated.
                declared = {
                    key: options[key]
                    for key in ("kind", "sessions_table", "messages_table", "timezone", "mode", "agent_roles")
                }
                declared["options"] = {
                    setting: options[f"option_{setting}"]
                    for setting in settings_of_kinds()
                    if options.get(f"option_{setting}") is not None
                }
                if path_watch.may_be_watched(declared["options"]):
                    self.watch(name, dry_run, declared)
                else:
                    self.attach(name, dry_run, declared)
            if as_json:
                self.stdout.write(json.dumps(self.summaries[0], indent=2))
        except (registry.AttachRefused, registry.UnknownStore, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal

    def attach(self, name: str, dry_run: bool, declared: dict[str, Any]) -> None:
        if dry_run:
            steps, store = self.plan(name, declared)
            self.write_report(
                store, steps, self.script(steps, f"{name} is attached; nothing is missing."), is_dry_run=True
            )
            return
        store, steps = attach_declared(name, declared, report=self.report)
        self.write_report(
            store, steps, attached(store) if steps else f"{store} is already attached; nothing was missing."
        )
        if steps and (health := registry.last_health(store)) and health.layout:
            self.report(health.layout)

    def watch(self, name: str, dry_run: bool, declared: dict[str, Any]) -> None:
        """Attaches the files that the path matches now, and lets the job attach those it will match later."""
        if declared["mode"] or declared["agent_roles"]:
            raise registry.AttachRefused(
                "Stores under a path with * cannot have triggers: omit --mode and --agent-role."
            )
        given = {key: declared[key] for key in ("options", "sessions_table", "messages_table", "timezone")}
        stores: list[dict[str, object]] = []
        refused: dict[str, str] = {}
        if dry_run:
            watched = path_watch.checked_path(name, declared["kind"], **given)
            for each, path, settings in path_watch.planned_stores(watched):
                try:
                    steps, store = self.plan(each, settings)
                except (registry.AttachRefused, StoreUnavailable) as refusal:
                    refused[path] = str(refusal)
                else:
                    stores.append(summary(store, steps, is_dry_run=True))
                    self.report(self.script(steps, f"{each} is attached; nothing is missing."))
            self.report(f"-- {watched.path} is then watched for new stores; this needs a run without --dry-run.")
        else:
            watched = path_watch.watch_path(name, declared["kind"], **given)
            look = path_watch.connect_new_places(
                watched, tries_again=True, report=lambda store: self.report(attached(store))
            )
            stores, refused = [summary(store, (), is_dry_run=False) for store in look.connected], look.refused
            new = f"{len(stores):,} new store{pluralize(stores)}"
            self.report(f"{watched.path} is now watched for new stores: {new}, {path_watch.about(watched)}")
        for path, reason in refused.items():
            self.report(f"{'-- ' if dry_run else ''}{path} is not connected: {reason}")
        self.summaries.append(
            {"watched_path": watched.path, "is_dry_run": dry_run, "stores": stores, "refused": refused}
        )

    def stop_watching(self, watched: WatchedPath, dry_run: bool) -> None:
        if not dry_run:
            path_watch.stop_watching(watched)
        about = f"{watched.path} is no longer watched. Its stores stay attached; detach them one by one."
        self.report(f"-- {about}" if dry_run else about)
        self.summaries.append({"watched_path": watched.path, "is_dry_run": dry_run, "is_watched": dry_run})

    def plan(self, name: str, declared: dict[str, Any]) -> tuple[Sequence[registry.AttachStep], SessionStore]:
        """The statements that would run, as a script; nothing is kept. The script names the store itself, under an
        unused id.
        """
        before = SessionStore.objects.filter(name=name).values().first()
        with transaction.atomic():
            store = declare_store(name, **declared)
            after = SessionStore.objects.filter(pk=store.pk).values().first()
            steps = registry.plan_attachment(store)
            transaction.set_rollback(True)
        return (steps if before == after else [registry.plan_declaration(store), *steps]), store

    def remove(self, store: SessionStore, dry_run: bool) -> None:
        if dry_run:
            steps: Sequence[registry.AttachStep] = registry.plan_removal(store)
            script = self.script(steps, f"{store} is not attached{removal_of(store)}")
            self.write_report(store, steps, script, is_dry_run=True)
            return
        steps = detach_store(store, report=self.report)
        if steps:
            kept = sessions_of(store)
            sentence = (
                f"{store} is detached. Its {kept:,} session record{pluralize(kept, ' is,s are')} kept, with subjects"
                " and erasures. New sessions are no longer listed, and erased sessions can be written to again."
            )
            if not kept:
                sentence = f"{store} is detached, without session records. Run this command again to delete the store."
        else:
            sentence = f"{store} was not attached{removal_of(store)}"
            with suppress(StoreStillNeeded):
                if store.pk:
                    delete_store(store)
        self.write_report(store, steps, sentence)

    def script(self, steps: Sequence[registry.AttachStep], nothing: str) -> str:
        return "\n\n".join(step.as_script() for step in steps) if steps else f"-- {nothing}"

    def report(self, purpose: str) -> None:
        """Prints each step before it runs; prints nothing when the output is one JSON object."""
        if not self.as_json:
            self.stdout.write(purpose)

    def write_report(
        self, store: SessionStore, steps: Sequence[registry.AttachStep], sentence: str, *, is_dry_run: bool = False
    ) -> None:
        if self.as_json:
            self.summaries.append(summary(store, steps, is_dry_run=is_dry_run))
        else:
            self.stdout.write(sentence)


def settings_of_kinds() -> dict[str, tuple[Field, list[str]]]:
    """Options of all kinds of stores, by name, with the names of the kinds that have them."""
    found: dict[str, tuple[Field, list[str]]] = {}
    for kind in kinds().values():
        for name, field in kind.form.base_fields.items():
            found.setdefault(name, (field, []))[1].append(kind.name)
    return found


def attached(store: SessionStore) -> str:
    if registry.is_discovered(store) and not store.discovered_at:
        return f"{store} is attached. It is not responding now; its sessions are found once it responds."
    sessions = sessions_of(store)
    return f"{store} is attached, with {sessions:,} registered session{pluralize(sessions)}."


def sessions_of(store: SessionStore) -> int:
    """Number of registered sessions. The main store may have no row of its own yet."""
    return SessionRecord.objects.filter(store=store).count() if store.pk else 0


def removal_of(store: SessionStore) -> str:
    """Second half of the sentence about what `--remove` does with a store that is not attached."""
    if not store.pk:
        return ": there is nothing to remove."
    try:
        check_unneeded(store)
    except StoreStillNeeded as problem:
        return f". {problem}"
    return ", and has no session records: it is deleted."


def summary(store: SessionStore, steps: Sequence[registry.AttachStep], *, is_dry_run: bool) -> dict[str, object]:
    """The JSON object for scripts: keys are added, never renamed."""
    return {
        "store": store.name,
        "is_attached": store.attached_at is not None,
        "layouts": list(registry.kind_of(store).layouts),
        "sessions": sessions_of(store),
        "is_dry_run": is_dry_run,
        "steps": [
            {"purpose": step.purpose, "statements": [statement.as_string(None) for statement in step.statements]}
            for step in steps
        ],
    }
