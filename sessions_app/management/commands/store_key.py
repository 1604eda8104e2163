"""`store_key`: shows or sets the encryption key of a store's agents."""

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
        "Shows or sets which key of the keyring (MEMADMIN_KEYRING) the agents of a store encrypt their sessions"
        " with, using the SDK's EncryptedSession. The database contains the name of the key only."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the store, for example main")
        key = parser.add_mutually_exclusive_group()
        key.add_argument("--key", metavar="NAME", help="name of the key, as in MEMADMIN_KEYRING")
        key.add_argument(
            "--no-key", action="store_true", help="remove the name of the key; encrypted items can no longer be read"
        )
        ttl = parser.add_mutually_exclusive_group()
        ttl.add_argument("--ttl", type=int, metavar="SECONDS", help="ttl that the agents use; the SDK's default is 600")
        ttl.add_argument(
            "--no-ttl", action="store_true", help="the ttl is unknown; expired items can no longer be purged"
        )
        parser.add_argument(
            "--session-ids",
            metavar="'INNER -> WRAPPER'",
            help="where EncryptedSession and the store inside it use different session ids: 'sealed:{id} -> {id}'",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(
        self,
        *,
        name: str,
        key: str | None,
        no_key: bool,
        ttl: int | None,
        no_ttl: bool,
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
                forgets_ttl=no_ttl,
                session_ids=session_ids,
            )
        except (EncryptionRefused, registry.UnknownStore, StoreUnavailable) as refusal:
            raise CommandError(str(refusal)) from refusal
        if as_json:
            self.stdout.write(json.dumps(summary(store), indent=2))
            return
        if store.encryption_key:
            loaded = "loaded" if keyring().get(store.encryption_key) else keyring().why_not(store.encryption_key)
            self.stdout.write(f"{store}: encrypted with the key {store.encryption_key}, {loaded}.")
        else:
            self.stdout.write(f"{store}: no encryption key is set.")
        if store.encryption_ttl_seconds is None:
            self.stdout.write("The ttl of the agents is not declared; purge_expired needs it.")
        else:
            self.stdout.write(f"Agents read an item for {store.encryption_ttl_seconds:,} seconds.")
        if store.encryption_ids:
            self.stdout.write(f"Session ids: {store.encryption_ids}")


def summary(store: SessionStore) -> dict[str, object]:
    """The JSON object for scripts: keys are added, never renamed."""
    return {
        "store": store.name,
        "key": store.encryption_key,
        "is_here": keyring().get(store.encryption_key) is not None,
        "ttl_seconds": store.encryption_ttl_seconds,
        "session_ids": store.encryption_ids,
    }
