"""The current run of the program: set by a `GovernedSession`, read by recall and learning.

The SDK passes to an input filter neither the session nor the run. A context variable reaches everything that a run
does, also in tasks of its own; and later work of the same task. So a run is recognised by its trace, which the SDK
makes for each, also where tracing is off, and which ends with it. A trace around several runs cannot tell them apart:
then their context objects do.
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
    """The session in the console's registry; None while the database is not responding."""
    remembered: dict[Any, Any] = field(default_factory=dict)
    """Values that are looked up once in a run."""
    trace: Any = field(default_factory=get_current_trace)


_current: ContextVar[CurrentRun | None] = ContextVar("memadmin_run", default=None)


def enter(run: CurrentRun) -> None:
    _current.set(run)


def current() -> CurrentRun | None:
    """The current run, also around another one, as with agents as tools; without one, the last run of this task.
    None within a run that is not ours.
    """
    run = _current.get()
    return run if run and (get_current_trace() is None or _goes_on(run.trace)) else None


def current_in(context: Any) -> CurrentRun | None:
    """The current run with this context object; None when it has another, so it is not ours."""
    run = current()
    return run if run and (run.wrapper is None or run.wrapper.context is context) else None


def values(run: CurrentRun | None) -> dict[str, Any]:
    """The parameters `record` and `session` of statements."""
    return {"record": run.record if run else None, "session": run.session_id if run else ""}


def _goes_on(trace: Any) -> bool:
    """An ended trace is no longer current. If the SDK does not report that any more, it is the current one."""
    place: Any = getattr(trace, "_prev_context_token", NOT_SAID)
    return place is not None if place is not NOT_SAID else trace is not None and trace is get_current_trace()


NOT_SAID = object()
