"""Who acts: a signed-in person, an agent, a job, a command, or nobody but a database role."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Kind = Literal["person", "agent", "job", "command", "database", "system"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts. The label is for people and lives in `audit_actor` alone, which can be erased."""

    kind: Kind
    label: str
    user_id: int | None = None


_acting: ContextVar[Actor | None] = ContextVar("acting", default=None)


def person(user: User) -> Actor:
    return Actor("person", user.get_full_name() or user.get_username(), user.pk)


@contextmanager
def acting(actor: Actor | None) -> Iterator[None]:
    """Whoever is recorded as acting inside this block, where a verb is not told otherwise."""
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def current_actor() -> Actor | None:
    """Who acts here and now; None where only the database knows: the role of the connection."""
    return _acting.get()


def ref_of(actor: Actor, *, using: str = DEFAULT_DB_ALIAS) -> uuid.UUID:
    """The random id by which events name this actor, made when it acts for the first time. One query."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT memadmin_actor(%s, %s, %s)", [actor.kind, actor.label[:200], actor.user_id])
        found: uuid.UUID = cursor.fetchone()[0]
    return found
