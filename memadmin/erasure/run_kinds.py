"""Kinds of runs that erase a person's data, or copy it for the person."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import User

from memadmin.erasure import closing, work
from memadmin.erasure.access_copy import building
from memadmin.erasure.access_copy.deleting import delete_copy
from memadmin.erasure.access_copy.exclusions import NotIncluded
from memadmin.erasure.batches import run_kinds as batch_kinds  # noqa: F401  # registers them
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import AccessCopy, RequestNote, SubjectRequest
from memadmin.erasure.suppression import replay
from memadmin.erasure.suppression.entering import may_be_entered
from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run


@register
class ReplayKind(RunKind):
    """Repeats the erasures that a restored database does not know; their cases share its scans."""

    name = replay.RUN_KIND
    title = "Repeated erasures"
    unit = "subjects"

    def work(self, lease: Lease) -> None:
        replay.work(lease)

    def may_cancel(self, run: Run) -> bool:
        return False


@register
class ErasureKind(RunKind):
    name = work.RUN_KIND
    title = "Erasure"
    unit = "rows"
    sentences: ClassVar = dict(Left.choices)

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
        """Until something was erased: an erasure that has begun, or is in the ledger, is finished."""
        request = SubjectRequest.objects.get(run=run)
        return not request.is_started and not may_be_entered(request)


@register
class AccessCopyKind(RunKind):
    name = building.RUN_KIND
    title = "Copy for a person"
    unit = "items"
    counters: ClassVar = {"sessions": "Sessions"}
    sentences: ClassVar = dict(NotIncluded.choices)

    def work(self, lease: Lease) -> None:
        building.work(lease)

    def before_end(self, run: Run) -> None:
        copy = AccessCopy.objects.select_related("request").get(run=run)
        if run.state == Run.State.CANCELLED:
            delete_copy(copy, reason="cancelled")
        elif run.state == Run.State.FAILED:
            copy.request.note(RequestNote.Code.STOPPED)

    def describe(self, run: Run) -> str:
        return f"Request {AccessCopy.objects.select_related('request').get(run=run).request}"

    def url(self, run: Run, viewer: User) -> str:
        copy = AccessCopy.objects.select_related("request").get(run=run)
        return copy.request.get_absolute_url() if viewer.has_perm("erasure.view_request") else ""
