"""Kinds of runs that work on memories."""

from __future__ import annotations

from typing import ClassVar

from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run
from memories_app.review import queue_changes


@register
class QueueChangesKind(RunKind):
    name = queue_changes.RUN_KIND
    title = "Decision about proposals"
    unit = "proposals"
    counters: ClassVar = {
        "changed": "Proposals decided about",
        "unchanged": "Proposals left: decided or claimed by others, your own, or gone",
    }
    requester_permission = queue_changes.REVIEW

    def work(self, lease: Lease) -> None:
        queue_changes.work(lease)

    def describe(self, run: Run) -> str:
        return queue_changes.QueueAction(run.parameters["action"]).label
