"""Says with which key the agents of a store seal their sessions."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions_app import registry
from sessions_app.encryption import keyring
from sessions_app.models import SessionStore
from sessions_app.services.encryption import EncryptionRefused, declare_encryption
from sessions_app.stores.base import StoreUnavailable


class Command(BaseCommand):
    help = (
        "Says, or tells, with which key of the keyring (MEMADMIN_KEYRING) the agents of a store seal their sessions,"
        " with the SDK's EncryptedSession. Only the name of the key is kept in the database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the store, for example main")
        key = parser.add_mutually_exclusive_group()
        key.add_argument("--key", metavar="NAME", help="the name of the key, as MEMADMIN_KEYRING lists it")
        key.add_argument("--no-key", action="store_true", help="nobody has said which key; sealed items stay closed")
        parser.add_argument("--ttl", type=int, metavar="SECONDS", help="the ttl that the agents give; the SDK's is 600")
        parser.add_argument(
            "--session-ids",
            metavar="'INNER -> WRAPPER'",
            help="where EncryptedSession has another session id than the store inside it: 'sealed:{id} -> {id}'",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

    def handle(
        self,
        *,
        name: str,
        key: str | None,
        no_key: bool,
        ttl: int | None,
        session_ids: str | None,
        as_json: bool,
        **options: Any,
    ) -> None:
        try:
            store = registry.known_store(name)
            if store.pk is None:
                raise CommandError(f"{name} is not attached. Run attach_store {name} first.")
            store = declare_encryption(
                store,
                key="" if no_key else key,
                ttl=None if ttl is None else timedelta(seconds=ttl),
                session_ids=session_ids,
            )
        except (EncryptionRefused, registry.UnknownStore, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal
        if as_json:
            self.stdout.write(json.dumps(summary(store), indent=2))
            return
        if not store.encryption_key:
            self.stdout.write(f"{store}: nobody has said with which key its agents seal sessions.")
            return
        loaded = "here" if keyring().get(store.encryption_key) else keyring().why_not(store.encryption_key)
        self.stdout.write(f"{store}: sealed with the key {store.encryption_key}, {loaded}.")
        self.stdout.write(f"Agents read an item for {store.encryption_ttl_seconds:,} seconds.")
        if store.encryption_ids:
            self.stdout.write(f"Session ids: {store.encryption_ids}")


def summary(store: SessionStore) -> dict[str, object]:
    """In the shape that scripts rely on: keys are added, never renamed."""
    return {
        "store": store.name,
        "key": store.encryption_key,
        "is_here": keyring().get(store.encryption_key) is not None,
        "ttl_seconds": store.encryption_ttl_seconds,
        "session_ids": store.encryption_ids,
    }
