"""Actions on the run of a request or batch, and the errors that actions on requests and batches are refused with."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.accounts.approvals.services import ApprovalError
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.services import RequestError, WrongState
from memadmin.runs import services as runs
from memadmin.runs.models import Run
from memadmin.runs.services import ChunkUnderWay, InvalidRunState

REFUSED = (ApprovalError, RequestError, InvalidRunState, ChunkUnderWay)


def pause_run(shown: SubjectRequest | RequestBatch, *, by: User) -> None:
    """Raises WrongState before the approval, and as the run does."""
    runs.pause_run(run_of(shown), by=by)


def resume_run(shown: SubjectRequest | RequestBatch, *, by: User) -> None:
    """Raises WrongState before the approval, and as the run does."""
    runs.resume_run(run_of(shown), by=by)


def run_of(shown: SubjectRequest | RequestBatch) -> Run:
    if shown.run is None:
        raise WrongState(shown)
    return shown.run
