"""The approval of a batch: what it is about, who does not decide, and which lines are as they were counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.services import digest_of, is_approved_as
from memadmin.accounts.same_person import addresses_of
from memadmin.erasure.approving import own_request
from memadmin.erasure.extents import extents_of
from memadmin.erasure.models import BatchLine, RequestBatch
from memadmin.erasure.permissions import APPROVE
from sessions_app.models import SubjectAlias


def shown_of(batch: RequestBatch) -> dict[str, Any]:
    """Values that a decision is about: the counts, and the subjects, IDs and sessions of each line as they are now. Two
    queries.
    """
    return shown_with(batch, digest_of_lines(extents_now(batch)))


def as_counted(batch: RequestBatch) -> dict[str, Any]:
    """The same with the subjects, IDs and sessions that were counted."""
    return shown_with(batch, batch.preview.get("covers", ""))


def shown_with(batch: RequestBatch, covers: str) -> dict[str, Any]:
    return {"ground": batch.ground, "preview": batch.preview, "covers": covers}


def extents_now(batch: RequestBatch, *, of: BatchLine | None = None) -> dict[int, str]:
    """Digest of what each line covers, or this one, as of the moment of the count, by its number. Two queries."""
    if "at" not in batch.preview:
        return {}
    lines = BatchLine.objects.filter(batch=batch, problem="", **({"pk": of.pk} if of else {}))
    subjects = dict(lines.order_by().values_list("number", "subject_id"))
    found = extents_of(subjects.values(), datetime.fromisoformat(batch.preview["at"]))
    return {number: found.get(subject_id, "") for number, subject_id in subjects.items()}


def digest_of_lines(extents: Mapping[int, str]) -> str:
    return digest_of(sorted(extents.items()))


def is_approved(batch: RequestBatch) -> bool:
    """True if the batch was approved as it was counted. What changed since, `extents_now` finds for each line."""
    return is_approved_as(ERASURE_BATCH, batch, as_counted)


def is_about(batch: RequestBatch, user: User) -> bool:
    """True if a line is about this operator: by the user name or an e-mail address. Three queries."""
    names = {user.username.casefold(), *addresses_of(user)}
    keys = SubjectAlias.objects.filter(subject__in=BatchLine.objects.filter(batch=batch, problem="").values("subject"))
    return any(key.casefold() in names for key in keys.values_list("key", flat=True).iterator())


ERASURE_BATCH = declare(
    ApprovalKind(
        "erasure_batch",
        APPROVE,
        shown_of,
        waiting="batches of erasures",
        page="batches:batches",
        facts="By another person than the requester, who reads the preview.",
        symbol="user-check",
        refusal=lambda batch, user: own_request("A line of this batch") if is_about(batch, user) else "",
    )
)
