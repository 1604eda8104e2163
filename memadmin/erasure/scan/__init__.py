"""Search for what is left of a person: by key in every store, and literally in every table, store and file.

`scan` is the one of a case, `scan_texts` the one of a restored database. `variants` says in which forms an id is looked
for, `tables`, `sessions` and `files` where, and `progress` how a scan that was interrupted goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.transparency.canonical import utc
from memadmin.erasure import audit_events, locators
from memadmin.erasure.exceptions import Left, OutOfReach
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.erasure.preview import out_of_reach_row, replace_out_of_reach
from memadmin.erasure.scan import files, sessions, tables
from memadmin.erasure.scan.progress import CLEAN, KEY, Progress, RunProgress
from memadmin.erasure.scan.variants import Finder
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.away import RETRY_BUSY, wait_for_step, wait_for_stores
from memadmin.erasure.steps.left_over import left_over
from memadmin.runs.engine import Lease, Wait
from sessions_app.stores.base import StoreUnavailable


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan read and found: counts and names of places, never the texts."""

    rows: int
    places: list[dict[str, Any]]
    """Place, code of `Left`, and number of rows found; the code is empty where a new round erases them."""
    hidden: list[str]
    """Tables of which this role may not read every column."""

    @property
    def found(self) -> int:
        return sum(row["found"] for row in self.places if row["code"] != Left.NOT_SEARCHED)

    @property
    def erasable(self) -> int:
        return sum(row["found"] for row in self.places if not row["code"])


def scan(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> int:
    """Searches every place, stores the result with the case, and returns how many rows a new round can erase.

    Goes on where an interrupted scan was. Raises Wait while a store does not respond or a table is locked, after all
    other places were searched, and what the lease raises.
    """
    progress = RunProgress(lease)
    recount(lease, request, scope, progress)
    search(lease, request, scope, progress)
    result = result_of(progress)
    with lease.chunk() as run:
        locked = SubjectRequest.objects.select_for_update().get(pk=request.pk)
        audit.record(
            audit_events.ERASURE_SCANNED,
            target=locked,
            subject=locked.subject_id,
            counters={"rows": result.rows, "found": result.found},
        )
        locked.note(RequestNote.Code.FOUND if result.found else RequestNote.Code.SCANNED)
        entry = {
            "at": utc(now()),
            "rows": result.rows,
            "found": result.found,
            "places": result.places,
        }
        hidden = [out_of_reach_row(OutOfReach.NOT_SEARCHED, place=name) for name in result.hidden]
        replace_out_of_reach(locked, OutOfReach.NOT_SEARCHED, hidden)
        short = sum(len(key.strip()) < locators.SHORTEST for _, key in scope.keys)
        rows = [out_of_reach_row(OutOfReach.SHORT_IDS, count=short)] if short else []
        replace_out_of_reach(locked, OutOfReach.SHORT_IDS, rows)
        SubjectRequest.objects.filter(pk=locked.pk).update(scans=[*locked.scans, entry])
        run.cursor = {key: value for key, value in run.cursor.items() if key != KEY}
        if not result.erasable:
            run.cursor.setdefault(CLEAN, len(locked.scans) + 1)
    request.refresh_from_db()
    return result.erasable


def last_erasable(request: SubjectRequest) -> int:
    """Number of rows that the last scan of a case has found and that a new round can erase."""
    return sum(row["found"] for row in request.scans[-1]["places"] if not row["code"]) if request.scans else 0


def scan_texts(texts: Collection[str], *, keep: Callable[[], object] = lambda: None) -> ScanResult:
    """Searches our database and all files for these texts, whoever's they are: for a database that was restored.

    `keep` is called often. Raises TableLocked.
    """
    progress, finder = Progress(keep), Finder(texts)
    if finder:
        tables.search_tables(finder, progress)
        files.search_files(finder, progress)
    return result_of(progress)


def search(lease: Lease, request: SubjectRequest, scope: SubjectScope, progress: Progress) -> None:
    # Without a text that is long enough, sessions are still looked for by key.
    finder = Finder(scope.texts)
    if finder:
        try:
            agents = sessions.agents_tables(scope)
            tables.search_tables(finder, progress, own_subjects=scope.group, agents=agents)
        except tables.TableLocked as locked:
            raise Wait(str(locked), retry_after=RETRY_BUSY) from locked
    away = sessions.search_stores(scope, finder, progress, left_out=sessions.left_out_of(request))
    if finder:
        files.search_files(finder, progress, later=away)
    wait_for_stores(lease, request, away)


def recount(lease: Lease, request: SubjectRequest, scope: SubjectScope, progress: Progress) -> None:
    """Counts what the steps would erase now, without what a hold keeps or a store cannot erase."""
    part = "steps"
    if progress.is_done(part):
        return
    progress.begin(part)
    for row in ErasureStep.objects.filter(request=request, state=ErasureStep.State.DONE):
        try:
            progress.found(row.place or row.name, count=left_over(scope, row))
        except StoreUnavailable as problem:
            raise wait_for_step(lease, row, problem) from problem
        lease.keep()
    progress.finish(part)


def result_of(progress: Progress) -> ScanResult:
    return ScanResult(progress.rows, progress.state["places"], progress.state["hidden"])
