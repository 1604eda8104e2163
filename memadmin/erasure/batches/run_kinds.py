"""Kinds of runs that count and carry out batches."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.erasure.batches import previews, services, work
from memadmin.erasure.models import RequestBatch
from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run


def address(batch: RequestBatch | None, viewer: User) -> str:
    return batch.get_absolute_url() if batch and viewer.has_perm("erasure.view_request") else ""


@register
class BatchPreviewKind(RunKind):
    name = services.PREVIEW_KIND
    title = "Preview of a batch"
    unit = "subjects"

    def work(self, lease: Lease) -> None:
        previews.work(lease)

    def describe(self, run: Run) -> str:
        batch = RequestBatch.objects.filter(preview_run=run).first()
        return f"Batch {batch}" if batch else ""

    def url(self, run: Run, viewer: User) -> str:
        return address(RequestBatch.objects.filter(preview_run=run).first(), viewer)


@register
class BatchKind(RunKind):
    name = services.RUN_KIND
    title = "Erasure of a batch"
    unit = "subjects"

    def work(self, lease: Lease) -> None:
        work.work(lease)

    def before_end(self, run: Run) -> None:
        work.close(run)

    def describe(self, run: Run) -> str:
        return f"Batch {RequestBatch.objects.get(run=run)}"

    def url(self, run: Run, viewer: User) -> str:
        return address(RequestBatch.objects.filter(run=run).first(), viewer)

    def may_cancel(self, run: Run) -> bool:
        """Until a case was opened."""
        return not RequestBatch.objects.get(run=run).is_started
