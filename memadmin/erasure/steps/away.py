"""Stores that stop responding after their step was finished: what counts or searches them has to wait."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.steps.sessions import Sessions
from memadmin.runs.engine import Lease, Wait

State = ErasureStep.State


def wait_for_store(lease: Lease, request: SubjectRequest, store: str, *, retry_after: timedelta) -> Wait:
    """What to raise. The store's step waits from now on, so that a person can decide to leave it out; a store without
    data of the person gets one.
    """
    sentence = f"The store {store} does not respond."
    columns = {"state": State.WAITING, "reason": sentence, "changed_at": Now()}
    with lease.chunk():
        ErasureStep.objects.update_or_create(
            request=request,
            name=Sessions.name,
            place=store,
            defaults=columns,
            # Sessions come first.
            create_defaults={**columns, "position": 0, "ended_at": Now()},
        )
    return Wait(sentence, retry_after=retry_after)


def stop_waiting(lease: Lease, request: SubjectRequest) -> None:
    """Steps that `wait_for_store` has set back are finished again, until it finds that the store is still away."""
    set_back = ErasureStep.objects.filter(request=request, state=State.WAITING, ended_at__isnull=False)
    if set_back.exists():
        with lease.chunk():
            set_back.update(state=State.DONE, reason="", changed_at=Now())
