"""Events of the audit log about runs."""

from __future__ import annotations

from memadmin.audit.log.types import declare

RUN = "runs.run"

RUN_PAUSED = declare("run.paused", "A person paused a run; what is done stays done.", object=RUN)
RUN_RESUMED = declare("run.resumed", "A person let a paused, stopped or failed run continue.", object=RUN)
RUN_CANCELLED = declare("run.cancelled", "A person cancelled a run; what is done stays done.", object=RUN)
RUN_STOPPED = declare("run.stopped", "A run stopped until a person decides.", object=RUN)
RUN_FAILED = declare("run.failed", "A run failed after several attempts.", object=RUN)
