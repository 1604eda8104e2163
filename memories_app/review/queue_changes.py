"""One decision about all proposals that a filter of the queue matched, as a run: reject or snooze them.

Approval is not offered: nobody has read these texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import TextChoices

from memadmin.runs.engine import Lease, NeedsDecision
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from memories_app.models import Memory
from memories_app.review.bulk_decisions import AT_ONCE, decide_many
from memories_app.review.forms import SNOOZES

RUN_KIND = "queue_changes"

REVIEW = "memories_app.review_memory"

MOST_PROPOSALS = 10_000
"""Maximum number of proposals of one run: it stores their ids."""


class QueueAction(TextChoices):
    REJECT = "reject", "Reject"
    SNOOZE = "snooze", "Snooze"


def begin(memory_ids: Sequence[UUID], action: QueueAction, *, by: User, said: str) -> Run:
    """Requests a run that decides about these proposals, whatever matches later. `said` is the reason of a rejection,
    or the name of a snooze time. The caller checked the permission; the run checks it again.
    """
    parameters = {"action": action.value, "said": said, "memories": [str(each) for each in memory_ids]}
    return request_run(RUN_KIND, by=by, parameters=parameters, total=len(memory_ids))


def work(lease: Lease) -> None:
    """Raises what the lease raises, and NeedsDecision if the person may no longer decide."""
    parameters, by = lease.run.parameters, lease.run.requester()
    if by is None or not by.is_active or not by.has_perm(REVIEW):
        raise NeedsDecision("The account that requested this may no longer review proposals. Cancel this run.")
    ids, action = parameters["memories"], QueueAction(parameters["action"])
    said = arguments_of(action, parameters["said"])

    def step(run: Run, limit: int) -> int:
        position = run.cursor.get("position", 0)
        wanted = ids[position : position + min(limit, AT_ONCE)]
        # The person chose by filters and read no text, so the decision is about the text of this moment.
        read = dict(Memory.objects.filter(pk__in=wanted).values_list("pk", "content_hash"))
        outcome = decide_many(read, by=by, verb=action.value, **said)
        run.count(changed=len(outcome.done), unchanged=len(wanted) - len(outcome.done))
        run.cursor = {"position": position + len(wanted)}
        return len(wanted)

    lease.in_chunks(step)


def arguments_of(action: QueueAction, said: str) -> dict[str, Any]:
    """Arguments of the decision besides its proposals."""
    return {"reason": said} if action == QueueAction.REJECT else {"length": SNOOZES[said]}
