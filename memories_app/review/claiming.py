"""Claims of proposals by their current reviewer, so that two reviewers do not decide the same one.

A claim is a lease: it expires when a browser is closed. It is not a decision and not an audit event: opening a proposal
is recorded as a read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.timezone import localtime

from memories_app.models import Memory, Review
from memories_app.services.refusals import MemoryActionRefused, Overtaken

LEASE = timedelta(minutes=10)


class ClaimedByOther(Overtaken):
    """Another reviewer, `winner`, has claimed it."""

    def __init__(self, memory: Memory) -> None:
        self.winner = memory.claimed_by
        assert memory.claimed_until is not None
        until = f"{localtime(memory.claimed_until):%H:%M %Z}"
        super().__init__(memory, f"{name_of(self.winner)} has claimed this proposal, until {until} at the latest.")


class NotReadYet(MemoryActionRefused):
    """The proposal was opened a moment ago: a held key or a double click would decide what nobody has read."""

    sentence = "This proposal was on screen only for a moment. Nothing was decided; read it, then decide."


class ReviewAlreadyDecided(Overtaken):
    """The memory is no longer waiting; `review` is the decision, if any, and `winner` its reviewer.

    The message differs if that was `by`, for example in another window.
    """

    def __init__(self, memory: Memory, *, by: User) -> None:
        self.review = last_review(memory)
        self.winner = self.review.reviewer if self.review else None
        if self.review and self.review.rule:
            sentence = f"The rule “{self.review.rule}” has already approved this proposal."
        elif self.review:
            who = "You" if self.winner == by else name_of(self.winner)
            sentence = f"{who} already {self.review.get_decision_display()} this proposal."
        else:
            sentence = f"This proposal is no longer waiting: its status is {memory.get_status_display()}."
        super().__init__(memory, f"{sentence} Your decision was not saved.")


def claim(memory: Memory, *, by: User) -> Memory:
    """Claims a proposal for a reviewer, for LEASE or until they claim another one.

    Raises ClaimedByOther or ReviewAlreadyDecided. Two statements in separate transactions: two reviewers who swap
    proposals would otherwise wait for each other. The end of the claim is not read again.
    """
    free = Q(claimed_by=None) | Q(claimed_by=by) | Q(claimed_until__lte=Now())
    waiting = Memory.objects.filter(pk=memory.pk, status__in=Memory.AWAITING)
    while not waiting.filter(free).update(claimed_by=by, claimed_until=Now() + LEASE):
        memory = Memory.objects.select_related("claimed_by").get(pk=memory.pk)
        if not memory.is_awaiting:
            raise ReviewAlreadyDecided(memory, by=by)
        if memory.claimed_by:
            raise ClaimedByOther(memory)
        # Released since the query.
    release_others(by=by, but=memory)
    memory.claimed_by = by
    return memory


def refuse_unread(memory: Memory, *, by: User) -> None:
    """Raises NotReadYet if this reviewer opened the proposal less than REVIEW_AFTER ago. One query.

    A claim begins when the page is opened, so its end tells when that was.
    """
    at_least = Now() + LEASE - settings.REVIEW_AFTER
    if Memory.objects.filter(pk=memory.pk, claimed_by=by, claimed_until__gt=at_least).exists():
        raise NotReadYet(memory)


def release(memory: Memory, *, by: User) -> None:
    """Releases a claim of this reviewer; claims of others stay."""
    Memory.objects.filter(pk=memory.pk, claimed_by=by).update(claimed_by=None, claimed_until=None)


def release_others(*, by: User, but: Memory) -> None:
    """Releases the other claims: reviewers have one at a time."""
    others = Memory.objects.filter(claimed_by=by).exclude(pk=but.pk)
    # After a decision there is none; a read takes one statement, a change four.
    if others.exists():
        others.update(claimed_by=None, claimed_until=None)


def locked_rows(*keys: UUID | None) -> dict[UUID | None, Memory]:
    """Memories by their keys, locked in a fixed order; each with the database's time: see moment_of."""
    rows = Memory.objects.select_for_update(of=("self",), no_key=True).annotate(moment=Now())
    # The worker, which decides for a person, may not read password hashes.
    people = ("claimed_by", "proposed_by", "approval__asked_by")
    rows = rows.select_related(*people).defer(*(f"{person}__password" for person in people))
    return {row.pk: row for row in rows.filter(pk__in=[key for key in keys if key]).order_by("pk")}


def moment_of(memory: Memory) -> datetime:
    """The database's time when locked_rows read it."""
    moment: datetime = memory.moment  # type: ignore[attr-defined]  # annotated by locked_rows
    return moment


def is_claimed_by_other(memory: Memory, user: User, moment: datetime) -> bool:
    """Whether another reviewer has claimed it, at this time."""
    until = memory.claimed_until
    return memory.claimed_by_id not in (None, user.pk) and until is not None and until > moment


def last_review(memory: Memory) -> Review | None:
    """The latest decision."""
    valid = memory.reviews.filter(undone_at=None).select_related("reviewer", "rule").defer("reviewer__password")
    return valid.order_by("-decided_at", "-pk").first()


def name_of(person: User | None) -> str:
    return str(person.get_full_name() or person.get_username()) if person else "Unknown user"
