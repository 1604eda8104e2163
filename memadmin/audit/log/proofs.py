"""Proofs that the application itself names an actor: keyed hashes that the database checks (`sql/proofs.sql`).

The keys come from MEMADMIN_SECRET_KEY. `migrate` stores them where only the owner of the database can read them; so a
connection with the application's role, but without its environment, can name no person.
"""

from __future__ import annotations

import hashlib
import hmac
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

PURPOSE = b"memadmin: proof of an actor"
BLOCK = 64
"""Bytes of a block of SHA-256."""

KEPT_BY_DATABASE = ("tokens", "tombstones")
"""Keys that the database made, and that no environment has."""

UNKNOWN_KEY = (
    "The database does not know this MEMADMIN_SECRET_KEY, so the audit log cannot name people: run `memadmin migrate`"
    " with the same key."
)

CLOCKS_DIFFER = (
    "The clocks of this machine and of the database differ by more than five minutes, so the database believes no proof"
    " of who acts, and nothing can be changed: synchronise them."
)


def proof_of(kind: str, label: str, user_id: int | None) -> str:
    """A proof for the arguments of `memadmin_name_actor` or, of the kind `cause`, `memadmin_name_cause`; valid for five
    minutes.
    """
    key = _key(settings.SECRET_KEY)
    seconds = int(time.time())
    message = f"{seconds}:{'' if user_id is None else user_id}:{kind}:{label}"
    return f"{_name(key)}.{seconds}.{hmac.new(key, message.encode(), hashlib.sha256).hexdigest()}"


@contextmanager
def cursor_for_proofs(connection: BaseDatabaseWrapper) -> Iterator[CursorWrapper]:
    """A cursor that sends parameters apart from the statement: others who use the same role would see a proof in its
    text, in pg_stat_activity, and could use it.
    """
    connection.ensure_connection()
    raw: Any = psycopg.Cursor(connection.connection)
    with connection.make_debug_cursor(raw) if connection.queries_logged else connection.make_cursor(raw) as cursor:
        yield cursor


def share_keys(*, using: str = DEFAULT_DB_ALIAS, **kwargs: Any) -> None:
    """Stores the keys of this installation in the database, and removes others. Receiver of `post_migrate`.

    Does nothing for a role that may not write them, or before their table exists.
    """
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT coalesce(has_table_privilege(to_regclass('memadmin_secret'), 'INSERT, DELETE'), false)")
        if not cursor.fetchone()[0]:
            return
        keys = {_name(key): key for key in map(_key, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS])}
        cursor.execute("DELETE FROM memadmin_secret WHERE name <> ALL (%s)", [[*KEPT_BY_DATABASE, *keys]])
        for name, key in keys.items():
            cursor.execute(
                "INSERT INTO memadmin_secret VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [name, _padded(key, 0x36), _padded(key, 0x5C)],
            )


def reasons_not_to_serve() -> Sequence[str]:
    """A sentence if the database does not know the key, or believes no proof. One query."""
    event = str(uuid.uuid4())
    with cursor_for_proofs(connections[DEFAULT_DB_ALIAS]) as cursor:
        cursor.execute(
            "SELECT memadmin_knows_key(%s), memadmin_name_cause(%s, %s)",
            [_name(_key(settings.SECRET_KEY)), event, proof_of("cause", event, None)],
        )
        is_known, named = cursor.fetchone()
    return [] if named != event else [CLOCKS_DIFFER if is_known else UNKNOWN_KEY]


def _key(secret: str) -> bytes:
    return hmac.new(secret.encode(), PURPOSE, hashlib.sha256).digest()


def _name(key: bytes) -> str:
    """Identifies a key, and reveals nothing of it."""
    return hashlib.sha256(PURPOSE + key).hexdigest()[:16]


def _padded(key: bytes, pad: int) -> bytes:
    """The key as RFC 2104 hashes it, inside (0x36) or outside (0x5c)."""
    return bytes(byte ^ pad for byte in key.ljust(BLOCK, b"\0"))
