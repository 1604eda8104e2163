"""Plain functions that put something into the database, with defaults for what a test does not care about."""

from __future__ import annotations

from itertools import count
from typing import Any

from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectAlias, SubjectKind

numbers = count(1)


def make_store(name: str = "main", **columns: Any) -> SessionStore:
    """The store of this name, made when it is not there. Nothing is attached."""
    return SessionStore.objects.get_or_create(name=name, defaults=columns)[0]


def make_subject(key: str = "", kind: SubjectKind = SubjectKind.USER) -> Subject:
    subject = Subject.objects.create()
    SubjectAlias.objects.create(subject=subject, kind=kind, key=key or f"cust_{next(numbers)}", is_primary=True)
    return subject


def make_session(session_id: str = "", *, store: SessionStore | None = None, **columns: Any) -> SessionRecord:
    """A row of the registry alone; the agents' tables know nothing of it."""
    record = SessionRecord.objects.create(
        store=store or make_store(), session_id=session_id or f"session-{next(numbers)}", **columns
    )
    record.refresh_from_db()
    return record
