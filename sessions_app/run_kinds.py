"""Kinds of runs that work on sessions."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run
from sessions_app.models import Redaction
from sessions_app.services import redaction
from sessions_app.services.redacting_sessions import COUNTERS, HINTS, Left


@register
class RedactionKind(RunKind):
    name = redaction.RUN_KIND
    title = "Redaction"
    unit = "sessions"
    counters = COUNTERS
    sentences = {left.value: left.sentence for left in Left}  # noqa: RUF012
    hints = frozenset(left.value for left in HINTS)

    def work(self, lease: Lease) -> None:
        redaction.work(lease)

    def before_end(self, run: Run) -> None:
        redaction.finish(run)

    def describe(self, run: Run) -> str:
        of = Redaction.objects.get(run=run)
        if of.item_id:
            return "One item of a session"
        return "One text in a session" if of.record_id else "One text in all sessions of a subject"

    def url(self, run: Run, viewer: User) -> str:
        may_open = viewer.has_perms(["sessions_app.read_content", redaction.REDACT])
        return Redaction.objects.get(run=run).get_absolute_url() if may_open else ""

    def may_retry(self, run: Run) -> bool:
        """The text is forgotten once the run has ended."""
        return False
