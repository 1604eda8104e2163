"""How instants come out of PostgreSQL: by Python's own reader, which is compiled. A page of a list has a hundred."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db.backends.postgresql.psycopg_any import BaseTzLoader, get_adapters_template


class InstantLoader(BaseTzLoader):  # type: ignore[misc]  # no stubs
    """Django's takes ten times as long, and takes the time of a connection in another zone for one in UTC."""

    timezone = UTC

    def load(self, data: Any) -> datetime:
        try:
            return datetime.fromisoformat(bytes(data).decode()).astimezone(UTC)
        except ValueError:  # such as a year BC; Django has a sentence for it
            return super().load(data)  # type: ignore[no-any-return]


def read_instants_quickly() -> None:
    """For all connections that Django makes from now on."""
    get_adapters_template(settings.USE_TZ, UTC).register_loader("timestamptz", InstantLoader)
