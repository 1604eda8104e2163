"""Context of log lines: the request or the job in which they are written, with the audit events that it recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

MOST_EVENTS = 20
"""Audit events that a line names."""


@dataclass(frozen=True, slots=True)
class LogContext:
    """The request or job that a line belongs to: its id, and the name of the page's URL pattern or of the job."""

    request_id: str = ""
    """Sixteen hexadecimal digits of a number below 2^63, as `request_id_of` writes it."""
    job: str = ""
    job_id: int | None = None
    events: list[str] = field(default_factory=list)


def request_id_of(number: int) -> str:
    """A request id as log, pages and headers show it."""
    return f"{number:016x}"


_context: ContextVar[LogContext | None] = ContextVar("log_context", default=None)


def current() -> LogContext | None:
    return _context.get()


@contextmanager
def within(context: LogContext) -> Iterator[None]:
    """Lines inside this block belong to this context."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def ids_for_events() -> tuple[int | None, int | None]:
    """The current request's id, as a number, and that of the current job."""
    context = current()
    if context is None:
        return None, None
    return int(context.request_id, 16) if context.request_id else None, context.job_id


def note_event(event_id: UUID) -> None:
    """Has the lines of this request or job name an audit event that it recorded."""
    context = current()
    if context is not None and len(context.events) < MOST_EVENTS:
        context.events.append(str(event_id))
