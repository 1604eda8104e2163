"""The run that the program is in: a `GovernedSession` says so, whoever recalls or learns asks.

The SDK tells an input filter neither the session nor which run it is. A context variable reaches all that a run does,
also in tasks of its own.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memadmin.client.subjects import Subject


@dataclass(eq=False, slots=True)
class Run:
    session_id: str
    wrapper: Any
    """The SDK's RunContextWrapper, which lasts as long as the run; None outside of one."""
    subject: Subject | None = None
    record: UUID | None = None
    """The session in the console's registry; None while that could not be asked."""
    remembered: dict[Any, Any] = field(default_factory=dict)
    """What is looked up once in a run, by whoever looks it up."""


_current: ContextVar[Run | None] = ContextVar("memadmin_run", default=None)


def enter(run: Run) -> None:
    _current.set(run)


def current(context: Any = None) -> Run | None:
    """The run that is going on; None when its context object is another than this one, so it is not ours."""
    run = _current.get()
    if run and run.wrapper is not None and context is not None and run.wrapper.context is not context:
        return None
    return run
