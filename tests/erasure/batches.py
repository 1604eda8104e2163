"""Batches for tests."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User

from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.erasure.batches import services
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.models import Subject, SubjectAlias
from tests.approvals import shown
from tests.erasure.builders import waits_for_log


def csv_of(*lines: str) -> bytes:
    return "\n".join(["key,kind,note", *lines]).encode()


def make_subjects(keys: Iterable[str]) -> list[Subject]:
    """Many subjects in two statements."""
    keys = list(keys)
    subjects = Subject.objects.bulk_create([Subject() for _ in keys])
    SubjectAlias.objects.bulk_create(
        SubjectAlias(subject=subject, kind="user", key=key, is_primary=True)
        for subject, key in zip(subjects, keys, strict=True)
    )
    return subjects


def uploaded(data: bytes, *, by: User) -> RequestBatch:
    """A batch that is counted."""
    batch = services.upload(data, name="list.csv", ground="consent", note="closed accounts", by=by)
    if batch.preview_run:
        carry_on(batch.preview_run)
    batch.refresh_from_db()
    return batch


def awaiting_batch(data: bytes, *, by: User) -> RequestBatch:
    return services.request_approval(uploaded(data, by=by), by=by)


def approved_batch(data: bytes, *, by: User, second: User) -> RequestBatch:
    """A batch whose time to cancel is over."""
    batch = awaiting_batch(data, by=by)
    count = services.accepted_lines(batch).count()
    return services.approve(batch, by=second, typed=f"erase {count}", shown=shown(batch), window=timedelta(0))


def work_off_batch(batch: RequestBatch) -> Run:
    """Works on the batch until every case is scanned and has its receipt, or waits for something else than the log."""
    assert batch.run is not None, "it is approved"
    run = carry_on(batch.run)
    cases = Run.objects.filter(subject_request__batch_lines__batch=batch)
    while receipts := [case.pk for case in cases.all() if waits_for_log(case)]:
        while (turn := Sequencer().step(is_last=True)) and turn.is_full:
            pass
        Run.objects.filter(pk__in=[run.pk, *receipts]).update(retry_at=None)
        run = carry_on(run)
    batch.refresh_from_db()
    return run


def let_a_day_pass(batch: RequestBatch) -> None:
    """The first scans were two days ago."""
    for request in SubjectRequest.objects.filter(batch_lines__batch=batch, state="scanning"):
        scans = [{**scan, "at": "2020-01-01T00:00:00.000000Z"} for scan in request.scans]
        SubjectRequest.objects.filter(pk=request.pk).update(scans=scans)
    Run.objects.filter(state=Run.State.WAITING).update(retry_at=None)
