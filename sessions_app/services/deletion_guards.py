"""Checks before content of sessions, or what was learned from it, is deleted or redacted.

Upper apps add theirs, such as legal holds. A check runs in the transaction of the change, before it, and stays true
until its end. Triggers of upper apps may refuse a change, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeAlias
from uuid import UUID

from django.db import DatabaseError

REFUSED_BY_TRIGGER = ("P0H01", "P0H02")
"""SQLSTATEs with which a trigger refuses a change of data that must be kept; its message is a sentence."""


class DeletionRefused(Exception):
    """The data must be kept. The message is a sentence for an operator; nothing was changed."""


Guard: TypeAlias = Callable[[Collection[UUID], Collection[UUID]], None]
"""Called with the ids of session records and of subjects. Raises DeletionRefused."""

_guards: list[Guard] = []


def guards_deletion(guard: Guard) -> Guard:
    """Registers a check, as a decorator."""
    _guards.append(guard)
    return guard


def check_deletion(*, records: Collection[UUID] = (), subjects: Collection[UUID] = ()) -> None:
    """Raises DeletionRefused if something of these sessions, or about these subjects, must be kept."""
    for guard in _guards:
        guard(records, subjects)


@contextmanager
def refusals_explained() -> Iterator[None]:
    """Converts refusals of triggers inside the block to DeletionRefused."""
    try:
        yield
    except DatabaseError as problem:
        if getattr(problem.__cause__, "sqlstate", None) not in REFUSED_BY_TRIGGER:
            raise
        raise DeletionRefused(problem.__cause__.diag.message_primary) from problem  # type: ignore[union-attr]
