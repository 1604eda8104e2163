"""Where agents keep sessions: one file per kind, one protocol (`base`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app.stores.base import Backend

if TYPE_CHECKING:
    from sessions_app.models import SessionStore


def backend_for(store: SessionStore) -> Backend:
    """The store, ready to be asked. Opens nothing: the first question does."""
    # Each kind brings its own driver, so only the one that is asked for is imported.
    from sessions_app.stores.sqlalchemy import SQLAlchemyBackend

    assert store.kind == "sqlalchemy", f"no backend for stores of kind {store.kind}"
    return SQLAlchemyBackend(store)
