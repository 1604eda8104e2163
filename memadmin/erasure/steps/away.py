"""Stores that stop responding after their step was finished: what counts or searches them has to wait."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db.models.functions import Now

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.steps.sessions import Sessions
from memadmin.runs.engine import Lease, Wait
from sessions_app.stores.base import SessionBusy, StoreUnavailable

RETRY_STORE = timedelta(minutes=5)
RETRY_BUSY = timedelta(seconds=10)

State = ErasureStep.State


def store_step(request: SubjectRequest, store: str) -> ErasureStep:
    """The step of a store; a store without data of the person gets one, which is done. In the caller's transaction."""
    step, _ = ErasureStep.objects.get_or_create(
        request=request,
        name=Sessions.name,
        place=store,
        # Sessions come first.
        defaults={"position": 0, "state": State.DONE, "ended_at": Now()},
    )
    return step


def wait_for_stores(lease: Lease, request: SubjectRequest, away: Mapping[str, StoreUnavailable]) -> None:
    """Raises Wait if stores are away, by their names, after their steps were set back to waiting."""
    waits = [wait_for_step(lease, store_step(request, name), problem) for name, problem in away.items()]
    if waits:
        raise min(waits, key=lambda wait: wait.retry_after)


def wait_for_step(lease: Lease, step: ErasureStep, problem: StoreUnavailable) -> Wait:
    """Sets a finished step back to waiting, so that a person can decide to leave it out; returns the Wait to raise."""
    sentence = waiting_sentence(step, problem)
    with lease.chunk():
        done = ErasureStep.objects.filter(pk=step.pk, state=State.DONE)
        done.update(state=State.WAITING, reason=sentence, changed_at=Now())
    return Wait(sentence, retry_after=retry_after(problem))


def stop_waiting(lease: Lease, request: SubjectRequest) -> None:
    """Steps that `wait_for_step` has set back are finished again, until it finds that the store is still away."""
    set_back = ErasureStep.objects.filter(request=request, state=State.WAITING, ended_at__isnull=False)
    if set_back.exists():
        with lease.chunk():
            set_back.update(state=State.DONE, reason="", changed_at=Now())


def waiting_sentence(step: ErasureStep, problem: StoreUnavailable) -> str:
    """Without the store's own words: these may contain addresses."""
    if not step.place:
        return str(problem)
    is_busy = isinstance(problem, SessionBusy)
    return f"An agent uses a session of {step.place}." if is_busy else f"The store {step.place} does not respond."


def retry_after(problem: StoreUnavailable) -> timedelta:
    return RETRY_BUSY if isinstance(problem, SessionBusy) else RETRY_STORE
