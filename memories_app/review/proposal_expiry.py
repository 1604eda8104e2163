"""Expiry of proposals without a decision, so that the queue contains only current ones.

Never for memories approved before, or for proposals with a first approval; and not while they are snoozed or claimed.
Pages of the queue and the digest announce it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memories_app import audit_events
from memories_app.models import Memory
from memories_app.models.querysets import APPROVED_ONCE, MemoryQuerySet
from memories_app.review.claiming import locked_rows
from memories_app.services.refusals import Overtaken

WARNED_BEFORE = timedelta(days=3)

BATCH = 200


class NotLapsed(Overtaken):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory, f"This proposal has not expired: its status is {memory.get_status_display()}.")


def lapsing(*, within: timedelta = timedelta()) -> MemoryQuerySet:
    """Proposals that expire `within` this time without a decision, longest waiting first; none if expiry is off."""
    waiting = Memory.objects.awaiting_review()
    if not settings.PROPOSAL_LIFETIME:
        return waiting.none()
    return waiting.not_snoozed().filter(
        ~APPROVED_ONCE,
        status=Memory.Status.PROPOSED,
        awaiting_since__lte=now() - settings.PROPOSAL_LIFETIME + within,
    )


def lapses_at(memory: Memory) -> datetime | None:
    """Time at which a proposal expires without a decision, snooze or approval; None if it never does."""
    if not settings.PROPOSAL_LIFETIME or memory.status != Memory.Status.PROPOSED:
        return None
    end: datetime = memory.awaiting_since + settings.PROPOSAL_LIFETIME
    return max(end, memory.snoozed_until or end)


def lapse_proposals(limit: int = BATCH) -> int:
    """Expires up to `limit` due proposals, each in a transaction of its own, and returns their number. Claimed ones,
    and those being decided, are skipped."""
    over = lapsing().filter(Q(claimed_by=None) | Q(claimed_until__lte=Now()))
    count = 0
    for key in list(over.values_list("pk", flat=True)[:limit]):
        with transaction.atomic():
            memory = over.filter(pk=key).select_for_update(of=("self",), skip_locked=True).first()
            if memory is not None:
                lapse(memory)
                count += 1
    return count


def lapse(memory: Memory) -> None:
    days = (now() - memory.awaiting_since).days
    audit.record(audit_events.PROPOSAL_LAPSED, target=memory, subject=memory.subject_id, counters={"days": days})
    Memory.objects.filter(pk=memory.pk).update(
        status=Memory.Status.LAPSED, decided_at=Now(), claimed_by=None, claimed_until=None, snoozed_until=None
    )


@transaction.atomic
def reopen_proposal(memory: Memory, *, by: User) -> Memory:
    """Returns an expired proposal to the queue. Raises NotLapsed."""
    memory = locked_rows(memory.pk)[memory.pk]
    if memory.status != Memory.Status.LAPSED:
        raise NotLapsed(memory)
    audit.record(audit_events.PROPOSAL_REOPENED, by=by, target=memory, subject=memory.subject_id)
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.PROPOSED, decided_at=None, awaiting_since=Now())
    memory.refresh_from_db()
    return memory


def count_lapsed(*, within: timedelta) -> int:
    """Number of recently expired proposals. One query, by an index of these."""
    return Memory.objects.filter(status=Memory.Status.LAPSED, decided_at__gt=now() - within).count()
