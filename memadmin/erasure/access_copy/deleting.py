"""Deletion of copies: by an erasure, by expiry, and with a cancelled run."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models.functions import Now

from memadmin import audit
from memadmin.erasure import audit_events
from memadmin.erasure.access_copy import files
from memadmin.erasure.models import AccessCopy, RequestNote, SubjectRequest
from memadmin.runs import services as runs
from memadmin.runs.services import ChunkUnderWay

logger = logging.getLogger(__name__)

Code, State = RequestNote.Code, SubjectRequest.State
CopyState = AccessCopy.State


@transaction.atomic
def delete_copy(copy: AccessCopy, *, reason: str) -> bool:
    """Deletes the file and its key; true if there was something to delete. An open case can build another copy.

    `reason` is a code of `audit_events.COPY_DELETED`. Raises OSError, with the copy kept.
    """
    request = SubjectRequest.objects.select_for_update().get(pk=copy.request_id)
    copy = AccessCopy.objects.select_for_update().get(pk=copy.pk)
    if copy.state == CopyState.DELETED:
        return False
    files.delete_all(copy)
    audit.record(audit_events.COPY_DELETED, target=request, subject=request.subject_id, reason_code=reason)
    request.note(Code.COPY_DELETED)
    AccessCopy.objects.filter(pk=copy.pk).update(
        state=CopyState.DELETED, key=b"", file_name="", token_digest="", token_until=None, deleted_at=Now()
    )
    if request.state == State.RUNNING:
        SubjectRequest.objects.filter(pk=request.pk).update(state=State.CHECKED, run=None)
    return True


def stop_and_delete(copy: AccessCopy, *, reason: str) -> None:
    """The same for a copy in any state. Raises OSError and ChunkUnderWay."""
    if not copy.run.is_finished:
        # The end of the run deletes what was built.
        runs.cancel_run(copy.run)
    delete_copy(copy, reason=reason)


def delete_expired() -> int:
    """Deletes the copies whose time is over, also unfinished ones; returns their number.

    One that cannot be deleted now is tried again with the next job, and stops no other.
    """
    expired = AccessCopy.objects.filter(state__in=AccessCopy.KEPT, expires_at__lte=Now()).select_related("run")
    deleted = 0
    for copy in expired:
        try:
            stop_and_delete(copy, reason="expired")
            deleted += 1
        except (OSError, ChunkUnderWay) as problem:
            logger.warning("the expired copy %s was not deleted: %s", copy.pk, type(problem).__name__)
    return deleted
