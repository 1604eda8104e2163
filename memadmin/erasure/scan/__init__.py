"""Search for what is left of people: by key in every store, and literally in every table, store and file.

One search serves one case or many: it reads every place once, and stores with each case what it has found of its
person. `people` has those for whom it searches, `variants` the forms in which an id is looked for, `tables`, `sessions`
and `files` the places, and `progress` the state with which an interrupted search goes on. A case outside of a batch is
searched for in its own run, the cases of a batch in the run of the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.transparency.canonical import utc
from memadmin.batching import batched
from memadmin.derived_keys import SecretKeyChanged
from memadmin.erasure import audit_events, locators
from memadmin.erasure.exceptions import Left, OutOfReach
from memadmin.erasure.models import RequestNote, SubjectRequest
from memadmin.erasure.preview import out_of_reach_row, replace_out_of_reach
from memadmin.erasure.scan import files, sessions, tables
from memadmin.erasure.scan.people import People, ScannedPerson
from memadmin.erasure.scan.progress import KEY, RunProgress
from memadmin.erasure.scan.vacuum import touched_tables, vacuum_touched
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.away import RETRY_BUSY, wait_for_stores
from memadmin.erasure.steps.left_over import left_over
from memadmin.runs.engine import Lease, Wait
from memadmin.runs.models import Run
from sessions_app.models import Subject

CLEAN = "clean"
"""Key of a case's run's cursor: the number of its scans when one found nothing more to erase."""

SEARCH_BEGINS = timedelta(hours=6)
"""Until a case looks again whether the run that searches for it still exists. What is found wakes it earlier."""

CASES_AT_ONCE = 200


# --- the scan of a case -----------------------------------------------------------------------------------------------


def scan(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> int:
    """Has every place searched, stores the result with the case, and returns how many rows a new round can erase.

    Goes on where an interrupted scan was. Raises Wait while another run searches for the case, while a store does not
    respond or a table is locked, after all other places were searched, and what the lease raises.
    """
    begin(lease, request)
    if "rows" not in request.pending_scan:
        searching = request.scanned_by
        if searching and not searching.is_finished:
            raise Wait("Erased. One scan for several requests looks for what is left.", retry_after=SEARCH_BEGINS)
        search(lease, [request])
        request.refresh_from_db()
    found = request.pending_scan
    places = found["places"] + recount(lease, request, scope)
    counts = {"rows": found["rows"], "found": sum(p["found"] for p in places if p["code"] != Left.NOT_SEARCHED)}
    with lease.chunk() as run:
        locked = SubjectRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
        audit.record(audit_events.ERASURE_SCANNED, target=locked, subject=locked.subject_id, counters=counts)
        locked.note(RequestNote.Code.FOUND if counts["found"] else RequestNote.Code.SCANNED)
        hidden = [out_of_reach_row(OutOfReach.NOT_SEARCHED, place=name) for name in found["hidden"]]
        replace_out_of_reach(locked, OutOfReach.NOT_SEARCHED, hidden)
        short = sum(len(key.strip()) < locators.SHORTEST for _, key in scope.keys)
        rows = [out_of_reach_row(OutOfReach.SHORT_IDS, count=short)] if short else []
        replace_out_of_reach(locked, OutOfReach.SHORT_IDS, rows)
        if (skipped := found["not_vacuumed"]) is not None:
            rows = [out_of_reach_row(OutOfReach.NOT_VACUUMED, count=skipped)] if skipped else []
            replace_out_of_reach(locked, OutOfReach.NOT_VACUUMED, rows)
        entry = {"at": found["at"], **counts, "places": places}
        SubjectRequest.objects.filter(pk=locked.pk).update(
            scans=[*locked.scans, entry], pending_scan={}, preview=locked.preview
        )
        if not erasable(places):
            run.cursor.setdefault(CLEAN, len(locked.scans) + 1)
    request.refresh_from_db()
    return erasable(places)


def begin(lease: Lease, request: SubjectRequest) -> None:
    """From now on the case waits for a scan. One that was begun before does not count."""
    if not request.pending_scan:
        with lease.chunk() as run:
            waits_for = {"number": len(request.scans) + 1}
            SubjectRequest.objects.filter(pk=request.pk).update(pending_scan=waits_for)
            run.cursor.pop(KEY, None)
        request.refresh_from_db()


def erasable(places: Iterable[Mapping[str, Any]]) -> int:
    return sum(row["found"] for row in places if not row["code"])


def last_erasable(request: SubjectRequest) -> int:
    """Number of rows that the last scan of a case has found and that a new round can erase."""
    return erasable(request.scans[-1]["places"]) if request.scans else 0


def recount(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> list[dict[str, Any]]:
    """Counts what the steps would erase now, without what a hold keeps or a store cannot erase."""
    left = left_over(lease, request, scope)
    return [{"place": row.place or row.name, "code": "", "found": count} for row, count in left]


# --- the search for one case, or for many -----------------------------------------------------------------------------


def search(lease: Lease, requests: Iterable[SubjectRequest]) -> None:
    """Searches every place for the people of all these cases, which wait for a scan, and leaves with each what was
    found of it; their runs take that over.

    Goes on where an interrupted search was: with the cases with which that has begun. Raises Wait while a store does
    not respond or a table is locked, and what the lease raises.
    """
    progress = RunProgress(lease)
    if not progress.state["cases"]:
        progress.state["cases"] = [[each.pk, each.pending_scan["number"]] for each in requests]
    waiting = still_waiting(progress)
    people = people_of(waiting)
    # The own run of such a case fails, and says why.
    unreadable = {each.pk for each in waiting} - people.cases
    vacuumed = [each for each in waiting if each.state == SubjectRequest.State.RUNNING]
    touched = touched_tables(vacuumed)
    vacuum_touched(lease, touched, progress)
    # Without a text that is long enough, sessions are still looked for by key.
    if people.finder:
        try:
            tables.search_tables(people, progress, agents=sessions.agents_tables(people))
        except tables.TableLocked as locked:
            raise Wait(str(locked), retry_after=RETRY_BUSY) from locked
    away = sessions.search_stores(people, progress)
    if people.finder:
        files.search_files(people, progress, later=away)
    done = {person.case for person in people if away.keys() <= set(person.left_out)}
    leave_with_cases(lease, progress, results_of(progress, people, touched), done | unreadable)
    wait_for_stores(lease, people.cases - done, away)


def still_waiting(progress: RunProgress) -> list[SubjectRequest]:
    """The cases with which the search has begun, and that wait for it as they did then."""
    numbers = dict(progress.state["cases"])
    requests = SubjectRequest.objects.open().filter(pk__in=numbers).order_by("pk")
    return [each for each in requests if each.pending_scan == {"number": numbers[each.pk]}]


def people_of(requests: Sequence[SubjectRequest]) -> People:
    """The people of these cases, but for those whose ids cannot be decrypted. Two queries."""
    groups = Subject.objects.merged_groups(each.subject_id for each in requests)
    left_out = sessions.left_out_of(requests)
    people = []
    for each in requests:
        with suppress(SecretKeyChanged):
            texts, keys = locators.unseal(each.locators), locators.unseal_keys(each.locators)
            people.append(ScannedPerson(each.pk, groups[each.subject_id], texts, keys, left_out.get(each.pk, ())))
    return People(people)


def results_of(progress: RunProgress, people: People, touched: Mapping[int, set[str]]) -> dict[int, dict[str, Any]]:
    """Progress and findings of a search for each case: counts and names of places, never the texts."""
    found, at, skipped = progress.found_by_case(), utc(now()), set(progress.state["not_vacuumed"])
    return {
        person.case: {
            "at": at,
            "rows": progress.rows(without=[sessions.part_of(name) for name in person.left_out]),
            # Place, code of `Left`, and number of rows found; the code is empty where a new round erases them.
            "places": found.get(person.case, []),
            "hidden": progress.state["hidden"],
            "not_vacuumed": len(touched[person.case] & skipped) if person.case in touched else None,
        }
        for person in people
    }


def leave_with_cases(
    lease: Lease, progress: RunProgress, results: Mapping[int, dict[str, Any]], done: Collection[int]
) -> None:
    """Stores the results with the cases that are done and wakes these; the search goes on for the others."""
    numbers, cases = dict(progress.state["cases"]), sorted(done)
    for some in batched(cases, CASES_AT_ONCE):
        with lease.chunk():
            # Runs before cases, as a case's own chunk locks them.
            runs = Run.objects.filter(subject_request__in=some)
            list(runs.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk"))
            for case in some:
                waiting = SubjectRequest.objects.filter(pk=case, pending_scan={"number": numbers[case]})
                waiting.update(pending_scan=results.get(case, {}))
            runs.filter(state=Run.State.WAITING).update(retry_at=None)
    progress.state["cases"] = [[case, numbers[case]] for case in results if case not in done]
    with lease.chunk() as run:
        others = {key: value for key, value in run.cursor.items() if key != KEY}
        run.cursor = {**others, KEY: progress.saved()} if progress.state["cases"] else others
