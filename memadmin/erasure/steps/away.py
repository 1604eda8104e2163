"""Stores that stop responding after their step was finished: what counts or searches them has to wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.steps.sessions import Sessions
from memadmin.runs.engine import Lease, Wait
from sessions_app.stores.base import SessionBusy, StoreUnavailable

RETRY_STORE = timedelta(minutes=5)
RETRY_BUSY = timedelta(seconds=10)

State = ErasureStep.State


def store_steps(cases: Iterable[int], store: str) -> QuerySet[ErasureStep]:
    """The steps of a store in these cases; where the store has no data of the person, the case gets one, which is done.

    In the caller's transaction.
    """
    # Sessions come first.
    columns = {"name": Sessions.name, "place": store, "position": 0, "state": State.DONE, "ended_at": now()}
    ErasureStep.objects.bulk_create([ErasureStep(request_id=case, **columns) for case in cases], ignore_conflicts=True)
    return ErasureStep.objects.filter(request__in=cases, name=Sessions.name, place=store)


def wait_for_stores(lease: Lease, cases: Collection[int], away: Mapping[str, StoreUnavailable]) -> None:
    """Raises Wait if there are cases and stores are away, by their names, after their steps were set back to waiting,
    so that a person can decide to leave a store out.
    """
    waits = []
    for name, problem in away.items() if cases else ():
        with lease.chunk():
            waits.append(set_back(store_steps(cases, name), name, problem))
    if waits:
        raise min(waits, key=lambda wait: wait.retry_after)


def wait_for_step(lease: Lease, step: ErasureStep, problem: StoreUnavailable) -> Wait:
    """Sets a finished step back to waiting, as `wait_for_stores` does; returns the Wait to raise."""
    with lease.chunk():
        return set_back(ErasureStep.objects.filter(pk=step.pk), step.place, problem)


def set_back(steps: QuerySet[ErasureStep], place: str, problem: StoreUnavailable) -> Wait:
    sentence = waiting_sentence(place, problem)
    steps.filter(state=State.DONE).update(state=State.WAITING, reason=sentence, changed_at=Now())
    return Wait(sentence, retry_after=retry_after(problem))


def stop_waiting(lease: Lease, request: SubjectRequest) -> None:
    """Finishes the steps that were set back; the next count or search sets them back if the store is still away."""
    steps = ErasureStep.objects.filter(request=request, state=State.WAITING, ended_at__isnull=False)
    if steps.exists():
        with lease.chunk():
            steps.update(state=State.DONE, reason="", changed_at=Now())


def waiting_sentence(place: str, problem: StoreUnavailable) -> str:
    """Without the store's own words: these may contain addresses."""
    if not place:
        return str(problem)
    is_busy = isinstance(problem, SessionBusy)
    if is_busy:
        return f"An agent uses a session of {place}."
    return f"The store {place} does not respond. To leave it out, choose “End without it” on the page of the case."


def retry_after(problem: StoreUnavailable) -> timedelta:
    return RETRY_BUSY if isinstance(problem, SessionBusy) else RETRY_STORE
