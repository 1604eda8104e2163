"""Audit events of runs."""

from __future__ import annotations

from memadmin.audit.log.groups import EventGroup, assign
from memadmin.audit.log.types import declare

assign(EventGroup.SETTINGS, "run")

RUN = "runs.run"

RUN_PAUSED = declare(
    "run.paused", "A person paused a run; completed work is kept.", sentence="{actor} paused {object}", object=RUN
)
RUN_RESUMED = declare(
    "run.resumed", "A person resumed a paused, stopped or failed run.", sentence="{actor} resumed {object}", object=RUN
)
RUN_CANCELLED = declare(
    "run.cancelled",
    "A person cancelled a run; completed work is kept.",
    sentence="{actor} cancelled {object}",
    object=RUN,
)
RUN_LIMITED = declare(
    "run.limited",
    "A person set the speed limit of a run; 0 rows per second is no limit.",
    sentence="{actor} set the speed limit of {object}",
    object=RUN,
    counters=("rows_per_second",),
)
RUN_STOPPED = declare(
    "run.stopped",
    "A run stopped and waits for a person's decision.",
    sentence="{object} stopped and waits for a decision",
    object=RUN,
)
RUN_FAILED = declare("run.failed", "A run failed after several attempts.", sentence="{object} failed", object=RUN)
