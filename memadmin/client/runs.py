"""The run that the program is in: a `GovernedSession` says so, whoever recalls or learns asks.

The SDK tells an input filter neither the session nor which run it is. A context variable reaches all that a run does,
also in tasks of its own; and what the same task does afterwards. So a run is known to go on by its trace, which the SDK
makes for each, also where tracing is off, and which has ended with it. A trace around several runs tells nothing: then
it is their context objects that do.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agents import get_current_trace

from memadmin.client.subjects import Subject


@dataclass(eq=False, slots=True)
class CurrentRun:
    session_id: str
    wrapper: Any
    """The SDK's RunContextWrapper, which lasts as long as the run; None outside of one."""
    subject: Subject | None = None
    record: UUID | None = None
    """The session in the console's registry; None while that could not be asked."""
    remembered: dict[Any, Any] = field(default_factory=dict)
    """What is looked up once in a run, by whoever looks it up."""
    trace: Any = field(default_factory=get_current_trace)


_current: ContextVar[CurrentRun | None] = ContextVar("memadmin_run", default=None)


def enter(run: CurrentRun) -> None:
    _current.set(run)


def current() -> CurrentRun | None:
    """The run that is going on, also around another one, as with agents as tools; where none is, the one that this task
    was in last. None within a run that is not ours."""
    run = _current.get()
    return run if run and (get_current_trace() is None or _goes_on(run.trace)) else None


def current_in(context: Any) -> CurrentRun | None:
    """The run that is going on with this context object; None when that has another, so it is not ours."""
    run = current()
    return run if run and (run.wrapper is None or run.wrapper.context is context) else None


def _goes_on(trace: Any) -> bool:
    """A trace that has ended gave its place back. Where the SDK does not say so any more, it is the one of now."""
    place: Any = getattr(trace, "_prev_context_token", NOT_SAID)
    return place is not None if place is not NOT_SAID else trace is not None and trace is get_current_trace()


NOT_SAID = object()
