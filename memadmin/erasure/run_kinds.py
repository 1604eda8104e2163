"""Kind of runs that erase a person's data."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.erasure import closing, work
from memadmin.erasure.batches import run_kinds as batch_kinds  # noqa: F401  # registers them
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import SubjectRequest
from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run


@register
class ErasureKind(RunKind):
    name = work.RUN_KIND
    title = "Erasure"
    unit = "rows"
    sentences = dict(Left.choices)  # noqa: RUF012

    def work(self, lease: Lease) -> None:
        work.work(lease)

    def before_end(self, run: Run) -> None:
        closing.close(run)

    def describe(self, run: Run) -> str:
        return f"Request {SubjectRequest.objects.get(run=run)}"

    def url(self, run: Run, viewer: User) -> str:
        may_open = viewer.has_perm("erasure.view_request")
        return SubjectRequest.objects.get(run=run).get_absolute_url() if may_open else ""

    def may_cancel(self, run: Run) -> bool:
        """Until something was erased: an erasure that has begun is finished."""
        return not SubjectRequest.objects.get(run=run).is_started
