"""Which stores there are, and how the sessions of each come to be on record."""

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
    """No store has this name; the message says where the names are."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no store {name}. Run check_stores to see which there are.")


def known_stores() -> list[SessionStore]:
    """All stores, and the main one though it was never attached. Raises StoreUnavailable when nobody can tell."""
    main = SessionStore(
        name=MAIN_STORE,
        sessions_table=settings.AGENT_SESSIONS_TABLE,
        messages_table=settings.AGENT_MESSAGES_TABLE,
        writer_timezone=settings.AGENT_TIMEZONE,
    )
    try:
        connection.ensure_connection()
    except Error as problem:  # a page only says that it is away; who runs a command can mend what the driver says
        raise StoreUnavailable(f"The database does not answer: {' '.join(str(problem).split())}") from problem
    with in_plain_words(main):
        if SessionStore._meta.db_table not in connection.introspection.table_names():
            raise StoreUnavailable("The console's own tables are not in this database yet. Run migrate.")
        stores = list(SessionStore.objects.all())
    return stores if any(store.name == MAIN_STORE for store in stores) else [main, *stores]


def known_store(name: str) -> SessionStore:
    """One of them. Raises UnknownStore, and StoreUnavailable when nobody can tell."""
    for store in known_stores():
        if store.name == name:
            return store
    raise UnknownStore(name)


def has_fence(store: SessionStore) -> bool:
    """Whether triggers register its sessions and keep erased ones erased."""
    return Capability.FENCE in backend_for(store).capabilities


def is_discovered(store: SessionStore) -> bool:
    """Whether its sessions have to be looked for; the triggers of others register them."""
    return store.attached_at is not None and not has_fence(store)
