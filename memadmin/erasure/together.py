"""Runs that carry out many cases and scan for all of them at once: those of batches, and of repeated erasures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import chain

from django.db.models import Min, QuerySet
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin.erasure import scan
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.scan.progress import KEY
from memadmin.erasure.steps.away import RETRY_BUSY
from memadmin.runs import engine
from memadmin.runs.engine import Lease, Wait
from memadmin.runs.models import Run

SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=10)


def work_off(lease: Lease, children: QuerySet[Run], watch: Callable[[], object]) -> Wait | None:
    """Carries on with the runs of cases, and searches for those cases that this run scans, until none of them can go
    on now. Returns why the search waits, if it does. `watch` is called after each. Raises what the lease raises.
    """
    problem: Wait | None = None
    while True:
        # Twice: the second scans of all are due in nearly the same moment.
        for child in chain(list(workable(children)), workable(children)):
            engine.carry_on(child, seconds=engine.SLICE_SECONDS)
            watch()
        if problem:
            return problem
        try:
            if not search(lease):
                return None
        except Wait as wait:
            # It may be over for some of the cases.
            problem = wait


def wait_for_cases(children: QuerySet[Run], sentence: str, problem: Wait | None) -> Wait:
    """The Wait to raise while cases are open. It ends when the next case is due, soon while another worker has one, or,
    after a `problem`, when the search may be tried again.
    """
    next_at = children.filter(state=Run.State.WAITING).aggregate(at=Min("retry_at"))["at"]
    rest = min(next_at - now() if next_at else LONGEST_WAIT, problem.retry_after if problem else LONGEST_WAIT)
    if children.filter(state=Run.State.RUNNING, lease_until__gt=Now()).exists():
        # Afterwards it may wait for the scan of this run.
        rest = min(rest, RETRY_BUSY)
    return Wait(sentence, retry_after=min(max(rest, SHORTEST_WAIT), LONGEST_WAIT))


def workable(children: QuerySet[Run]) -> QuerySet[Run]:
    """Runs of cases that no worker has, and that need not wait any more."""
    return children.filter(pk__in=Run.objects.workable().order_by().values("pk")).order_by("pk")


def search(lease: Lease) -> bool:
    """Searches for the cases that wait for this run to scan; False if none does. Raises Wait as `scan.search` does."""
    cases = SubjectRequest.objects.filter(scanned_by=lease.run)
    waiting: list[SubjectRequest] = []
    # One that was interrupted goes on, for the cases with which it has begun.
    if KEY not in lease.run.cursor:
        waiting = list(cases.filter(run__state=Run.State.WAITING, pending_scan__has_key="number"))
        if not waiting:
            return False
        if cases.filter(run__state=Run.State.RUNNING, run__lease_until__gt=Now()).exists():
            # What it erases would need another scan.
            raise Wait("Another worker erases a subject. The scan begins afterwards.", retry_after=RETRY_BUSY)
    scan.search(lease, waiting)
    return True
