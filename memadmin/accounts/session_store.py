"""Session engine: Django's sessions in the database, under a digest of their key.

The key is in the user's cookie alone. Whoever reads the table, or a dump of it, can sign in with none of its rows; and
whoever writes it cannot copy the data of one session to another, because its signature is of this digest.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.utils.timezone import now

DIGITS = 40
"""Length of Django's column: 160 bits of SHA-256, of keys that have 165."""


def digest_of(key: str) -> str:
    """The stored form of a session's key."""
    return hashlib.sha256(key.encode()).hexdigest()[:DIGITS]


def data_of(row: Session) -> dict[str, Any]:
    """The data of a stored session; none if its signature is not of this row. No query."""
    store = DigestSessions()
    store.digest = row.session_key
    data: dict[str, Any] = store.decode(row.session_data)
    return data


class DigestSessions(db.SessionStore):
    """Django's store of sessions, by digests."""

    digest = ""
    """Stored digest of a session whose key is not known; empty for one that has its key."""

    def load(self) -> dict[str, Any]:
        key = self.session_key
        row = Session.objects.filter(session_key=digest_of(key), expire_date__gt=now()).first() if key else None
        if row is None:
            self._session_key = None
            return {}
        return self.decode(row.session_data)

    @property
    def key_salt(self) -> str:
        return f"memadmin.sessions.{self.digest or digest_of(self.session_key or '')}"

    def exists(self, session_key: str) -> bool:
        return super().exists(digest_of(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        row = super().create_model_instance(data)
        row.session_key = digest_of(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(digest_of(key))

    # The base class answers these through the methods above; Django's class for the database asks by the key itself.
    aload = SessionBase.aload
    aexists = SessionBase.aexists
    acreate = SessionBase.acreate
    asave = SessionBase.asave
    adelete = SessionBase.adelete


SessionStore = DigestSessions
"""The name that Django looks for in an engine."""
