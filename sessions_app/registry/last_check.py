"""The last health check of a store, as saved in its row."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from sessions_app.models import SessionStore
from sessions_app.stores.base import StoreHealth, StoreProblem


def last_health(store: SessionStore) -> StoreHealth | None:
    """Result of the last check, which may be of another version of memadmin; None before the first. No query."""
    if store.checked_at is None:
        return None
    known = {field.name for field in fields(StoreHealth)}
    result: dict[str, Any] = {name: value for name, value in store.last_check.items() if name in known}
    result["problems"] = tuple(StoreProblem(**problem) for problem in result.get("problems", ()))
    return StoreHealth(**result)


def columns_of(health: StoreHealth) -> dict[str, Any]:
    """The columns of a store that keep a result."""
    return {"state": health.state, "last_check": asdict(health)}
