"""View models of runs: state, progress, speed and available actions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.runs.kinds import RunKind, kind_named
from memadmin.runs.models import Run

State = Run.State

LOOKS = {
    State.WAITING: ("secondary", "clock"),
    State.RUNNING: ("blue", "loader-2"),
    State.PAUSED: ("yellow", "player-pause"),
    State.STOPPED: ("red", "alert-octagon"),
    State.CANCELLED: ("secondary", "ban"),
    State.FAILED: ("red", "alert-octagon"),
    State.COMPLETE: ("green", "check"),
    State.COMPLETE_WITH_EXCEPTIONS: ("orange", "alert-triangle"),
}
"""Colour and symbol of each state."""

SLOW_START = timedelta(seconds=30)
"""A run that no worker took for so long gets a sentence about it."""

FEWEST_SECONDS = 1.0
"""Minimum of work before a speed is shown."""


@dataclass(frozen=True, slots=True)
class ExceptionLine:
    sentence: str
    place: str
    count: int
    is_hint: bool


@dataclass(frozen=True, slots=True)
class RunView:
    """One run for one viewer."""

    run: Run
    kind: RunKind
    description: str
    url: str
    may_control: bool

    @property
    def colour(self) -> str:
        return LOOKS[State(self.run.state)][0]

    @property
    def symbol(self) -> str:
        return LOOKS[State(self.run.state)][1]

    @property
    def state(self) -> str:
        if self.run.state == State.COMPLETE_WITH_EXCEPTIONS:
            count = sum(line.count for line in self.exceptions if not line.is_hint)
            return f"{count:,} exception{'s' * (count != 1)}"
        return State(self.run.state).label

    @property
    def percent(self) -> int | None:
        """Progress against an estimate: 100 only when the run is complete. None when the total is unknown."""
        if self.run.state in (State.COMPLETE, State.COMPLETE_WITH_EXCEPTIONS):
            return 100
        if not self.run.total:
            return None
        return min(99, self.run.done * 100 // self.run.total)

    @property
    def rate(self) -> float | None:
        """Units per second of work, pauses left out."""
        seconds = self.run.worked_ms / 1000
        return self.run.done / seconds if seconds >= FEWEST_SECONDS and self.run.done else None

    @property
    def time_left(self) -> timedelta | None:
        if self.run.state != State.RUNNING or not self.rate or not self.run.total or self.run.done >= self.run.total:
            return None
        return timedelta(seconds=round((self.run.total - self.run.done) / self.rate))

    @property
    def took(self) -> timedelta | None:
        """From its first chunk to its end."""
        return self.run.ended_at - self.run.started_at if self.run.ended_at and self.run.started_at else None

    @property
    def why(self) -> str:
        """Why the run does not move, in a sentence; empty when it does."""
        run = self.run
        if run.state == State.PAUSED:
            by = f" by {run.reason_by.username}" if run.reason_by else ""
            return f"Paused{by}{f': “{run.reason}”' if run.reason else '.'}"
        if run.reason:
            return run.reason
        # A run may begin, or continue, at a set time: an erasure after its time to cancel.
        last = max(run.chunk_at or run.requested_at, run.retry_at or run.requested_at)
        if run.state in (State.WAITING, State.RUNNING) and run.lease_until is None and now() - last > SLOW_START:
            return "No worker has started this run yet. Check that a worker is running."
        if run.lease_until and run.lease_until < now():
            return "The worker is not responding; another worker takes over."
        return ""

    @property
    def exceptions(self) -> list[ExceptionLine]:
        return [
            ExceptionLine(self.kind.sentences.get(code, code), place, count, code in self.kind.hints)
            for code, place, count in self.run.exceptions
        ]

    @property
    def counters(self) -> list[tuple[str, int]]:
        """Label and value of each counter that is not zero."""
        counts = self.run.counters
        return [(label, counts[name]) for name, label in self.kind.counters.items() if counts.get(name)]

    @property
    def may_pause(self) -> bool:
        return self.may_control and self.run.state in (State.WAITING, State.RUNNING)

    @property
    def may_limit(self) -> bool:
        return self.may_control and not self.run.is_finished

    @property
    def resume_label(self) -> str:
        """Label of the button that continues the run; empty when there is none."""
        if not self.may_control:
            return ""
        if self.run.state == State.WAITING:
            return "Retry now" if self.run.retry_at else ""
        if self.run.state == State.STOPPED:
            return "Resume" if self.kind.may_resume(self.run) else ""
        if self.run.state == State.FAILED and not self.kind.may_retry(self.run):
            return ""
        return {State.PAUSED: "Resume", State.FAILED: "Retry"}.get(State(self.run.state), "")

    @property
    def may_cancel(self) -> bool:
        return self.may_control and not self.run.is_finished and self.kind.may_cancel(self.run)


def view_of(run: Run, viewer: User) -> RunView:
    """The run for this viewer."""
    kind = kind_named(run.kind)
    return RunView(
        run,
        kind,
        description=kind.describe(run),
        url=kind.url(run, viewer),
        may_control=viewer.has_perm("runs.control_run"),
    )
