"""Kinds of runs that erase people's data, or copy it for a person, and those of batches."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import User

from memadmin.erasure import closing, work
from memadmin.erasure.access_copy import building
from memadmin.erasure.access_copy.deleting import delete_copy
from memadmin.erasure.access_copy.exclusions import NotIncluded
from memadmin.erasure.batches import previews
from memadmin.erasure.batches import services as batches
from memadmin.erasure.batches import work as batch_work
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import AccessCopy, RequestBatch, RequestNote, SubjectRequest
from memadmin.erasure.permissions import VIEW
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


class RequestRunKind(RunKind):
    """A kind whose runs work for one request or batch, and are described by it."""

    def owner(self, run: Run) -> SubjectRequest | RequestBatch | None:
        """The request or batch; None if another run took the place of this one."""
        raise NotImplementedError

    def describe(self, run: Run) -> str:
        owner = self.owner(run)
        return f"{'Batch' if isinstance(owner, RequestBatch) else 'Request'} {owner}" if owner else ""

    def url(self, run: Run, viewer: User) -> str:
        owner = self.owner(run) if viewer.has_perm(VIEW) else None
        return owner.get_absolute_url() if owner else ""


@register
class ErasureKind(RequestRunKind):
    name = work.RUN_KIND
    title = "Erasure"
    unit = "rows"
    sentences: ClassVar = dict(Left.choices)

    def owner(self, run: Run) -> SubjectRequest:
        return SubjectRequest.objects.get(run=run)

    def work(self, lease: Lease) -> None:
        work.work(lease)

    def before_end(self, run: Run) -> None:
        closing.close(run)

    def may_cancel(self, run: Run) -> bool:
        """Until something was erased: an erasure that has begun, or is in the ledger, is finished."""
        request = self.owner(run)
        return not request.is_started and not may_be_entered(request)


@register
class AccessCopyKind(RequestRunKind):
    name = building.RUN_KIND
    title = "Copy for a person"
    unit = "items"
    counters: ClassVar = {"sessions": "Sessions"}
    sentences: ClassVar = dict(NotIncluded.choices)

    def copy(self, run: Run) -> AccessCopy:
        return AccessCopy.objects.select_related("request").get(run=run)

    def owner(self, run: Run) -> SubjectRequest:
        return self.copy(run).request

    def work(self, lease: Lease) -> None:
        building.work(lease)

    def before_end(self, run: Run) -> None:
        if run.state == Run.State.CANCELLED:
            delete_copy(self.copy(run), reason="cancelled")
        elif run.state == Run.State.FAILED:
            self.copy(run).request.note(RequestNote.Code.STOPPED)


@register
class BatchPreviewKind(RequestRunKind):
    name = batches.PREVIEW_KIND
    title = "Preview of a batch"
    unit = "subjects"

    def owner(self, run: Run) -> RequestBatch | None:
        return RequestBatch.objects.filter(preview_run=run).first()

    def work(self, lease: Lease) -> None:
        previews.work(lease)


@register
class BatchKind(RequestRunKind):
    name = batches.RUN_KIND
    title = "Erasure of a batch"
    unit = "subjects"

    def owner(self, run: Run) -> RequestBatch:
        return RequestBatch.objects.get(run=run)

    def work(self, lease: Lease) -> None:
        batch_work.work(lease)

    def before_end(self, run: Run) -> None:
        batch_work.close(run)

    def may_cancel(self, run: Run) -> bool:
        """Until a case was opened."""
        return not self.owner(run).is_started
