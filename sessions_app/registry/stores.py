"""The stores, and how the sessions of each are registered."""

from __future__ import annotations

from django.conf import settings
from django.db import Error, connection

from sessions_app.models import SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, StoreUnavailable
from sessions_app.stores.sqlalchemy.postgres import in_plain_words

MAIN_STORE = "main"
"""The store whose tables and zone the environment names."""

MAIN_KIND = "sqlalchemy"


class UnknownStore(Exception):
    """No store has this name; the message names the command that lists them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no store {name}. Run check_stores for a list.")


def known_stores(kind: str = "") -> list[SessionStore]:
    """All stores, or those of a kind, also the main one if it was never attached.

    Raises StoreUnavailable if they cannot be read.
    """
    main = SessionStore(
        name=MAIN_STORE,
        sessions_table=settings.AGENT_SESSIONS_TABLE,
        messages_table=settings.AGENT_MESSAGES_TABLE,
        writer_timezone=settings.AGENT_TIMEZONE,
    )
    try:
        connection.ensure_connection()
    except Error as problem:  # pages show only that it is not responding; an operator needs the driver's message, too
        raise StoreUnavailable(f"The database is not responding: {' '.join(str(problem).split())}") from problem
    with in_plain_words(main):
        if SessionStore._meta.db_table not in connection.introspection.table_names():
            raise StoreUnavailable("The console's own tables are not in this database yet. Run migrate.")
        stores = list(SessionStore.objects.filter(kind=kind) if kind else SessionStore.objects.all())
    return stores if any(store.name == MAIN_STORE for store in stores) else [main, *stores]


def known_store(name: str) -> SessionStore:
    """One store. Raises UnknownStore, and StoreUnavailable if stores cannot be read."""
    for store in known_stores():
        if store.name == name:
            return store
    raise UnknownStore(name)


def has_fence(store: SessionStore) -> bool:
    """True if triggers register its sessions and keep erased ones erased."""
    return Capability.FENCE in backend_for(store).capabilities


def is_discovered(store: SessionStore) -> bool:
    """True if its sessions have to be looked for; the triggers of other stores register them."""
    return store.attached_at is not None and not has_fence(store)
