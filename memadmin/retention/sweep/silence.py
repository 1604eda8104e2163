"""Detection of silence: no sweep has succeeded for days, because a run is paused and forgotten, or no worker runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Min
from django.utils.timezone import now

from memadmin.retention.models import PolicyVersion
from memadmin.retention.policies.rules import Action
from memadmin.retention.sweep.metrics import SUCCEEDED
from memadmin.retention.sweep.starting import RUN_KIND
from memadmin.runs.models import Run

LONGEST = timedelta(days=2)
"""Two nights."""

State = Run.State


@dataclass(frozen=True, slots=True)
class Silence:
    """A period, longer than LONGEST, in which no sweep under all policies has succeeded."""

    since: datetime
    """End of the last successful sweep, or start of the first policy that takes anything."""
    run: Run | None
    """The unfinished run, or else the newest one; None before the first."""

    @property
    def sentence(self) -> str:
        """Without personal data."""
        return f"No retention run has succeeded since {self.since:%-d %B %Y}, and policies are in force. {self.why}"

    @property
    def why(self) -> str:
        run = self.run
        if run is None or (run.ended_at and run.ended_at <= self.since):
            return "None has begun since: check that a worker is running."
        if run.state == State.PAUSED:
            return f"{run} is paused: resume or cancel it."
        if run.state == State.STOPPED:
            return f"{run} is stopped and needs a decision."
        if run.ended_at:
            return f"The last one, {run}, ended as {run.get_state_display()}."
        if run.state == State.WAITING and run.reason:
            return f"{run} waits. {run.reason}"
        if run.lease_until and run.lease_until > now():
            return f"{run} is still running."
        return f"No worker works on {run}: check that one is running."


def silence() -> Silence | None:
    """The silence if it lasts longer than LONGEST and a policy in force takes anything; three queries at most."""
    taking = PolicyVersion.objects.in_force().order_by().exclude(action=Action.KEEP).values("policy")
    # Not of the version in force: each change would be an excuse for two nights more.
    begun = PolicyVersion.objects.filter(policy__in=taking, closed_at__isnull=True).exclude(action=Action.KEEP)
    first = begun.aggregate(at=Min("starts_at"))["at"]
    if first is None:
        return None
    runs = Run.objects.filter(kind=RUN_KIND, parameters__policy="").order_by("-number")
    last = runs.filter(state__in=SUCCEEDED).values_list("ended_at", flat=True).first()
    since = max(last or first, first)
    if now() - since <= LONGEST:
        return None
    return Silence(since, runs.filter(ended_at__isnull=True).first() or runs.first())
