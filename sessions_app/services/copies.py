"""Copies that other apps keep of what is said in sessions, and which go with it.

An app registers a function when it is loaded; whoever redacts asks all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sessions_app.models import Redaction
from sessions_app.querysets import SessionRecordQuerySet
from sessions_app.redacting import Wanted

Redactor: TypeAlias = Callable[[Redaction, SessionRecordQuerySet, Wanted | None], int]
"""Takes out of its copies what a redaction is to take out of these sessions, all text of its item where no text is
given, and returns in how many it stood. May be asked again; each change is a transaction with its event."""

_redactors: list[Redactor] = []


def redacts_copies(redactor: Redactor) -> Redactor:
    """Registers a function, as a decorator."""
    _redactors.append(redactor)
    return redactor


def redact_copies(redaction: Redaction, sessions: SessionRecordQuerySet, wanted: Wanted | None) -> int:
    return sum(redact(redaction, sessions, wanted) for redact in _redactors)
