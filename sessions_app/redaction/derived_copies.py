"""Copies of session content in other apps, which are redacted with it.

An app registers a function when it is loaded; a redaction calls all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from memadmin.runs.engine import Lease
from sessions_app.models import Redaction
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.redaction import TextToRedact

Redactor: TypeAlias = Callable[[Lease, Redaction, SessionRecordQuerySet, TextToRedact | None], None]
"""Removes from its copies what a redaction removes from these sessions: the text, or without one all text of its item.
Each change is a chunk of the lease, with its event, and adds to the counter `copies` of the run. Safe to repeat."""

_redactors: list[Redactor] = []


def redacts_copies(redactor: Redactor) -> Redactor:
    """Registers a function, as a decorator."""
    _redactors.append(redactor)
    return redactor


def redact_copies(
    lease: Lease, redaction: Redaction, sessions: SessionRecordQuerySet, target_text: TextToRedact | None
) -> None:
    """Asks every registered function. Raises what the lease raises."""
    for redact in _redactors:
        redact(lease, redaction, sessions, target_text)
