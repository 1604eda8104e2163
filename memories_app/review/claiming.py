"""Claims: who reads a proposal at the moment, so that nobody decides the same one beside them.

A claim is a lease: it runs out by itself when a browser is closed. It is no decision, and no event of the log: who
opened a proposal is recorded as a read.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now

from memories_app.models import Memory, Review
from memories_app.services.refusals import Overtaken

LEASE = timedelta(minutes=10)


class HeldBySomebody(Overtaken):
    """Another reviewer reads it; `winner` is who."""

    def __init__(self, memory: Memory) -> None:
        self.winner = memory.claimed_by
        assert memory.claimed_until is not None
        until = f"{memory.claimed_until:%H:%M}"
        super().__init__(memory, f"{name_of(self.winner)} has claimed this proposal, until {until} UTC at the latest.")


class ReviewAlreadyDecided(Overtaken):
    """It does not wait any more; `review` is the decision, where it was one, and `winner` who took it.

    Where that was `by`, in another window for example, it says so.
    """

    def __init__(self, memory: Memory, *, by: User) -> None:
        self.review = last_review(memory)
        self.winner = self.review.reviewer if self.review else None
        if self.review and self.review.rule:
            told = f"The rule “{self.review.rule}” has already approved this proposal."
        elif self.review:
            who = "You" if self.winner == by else name_of(self.winner)
            told = f"{who} already {self.review.get_decision_display()} this proposal."
        else:
            told = f"This proposal is no longer waiting: its status is {memory.get_status_display()}."
        super().__init__(memory, f"{told} Your decision was not saved.")


def claim(memory: Memory, *, by: User) -> Memory:
    """Holds a proposal for a reviewer, for LEASE or until they take another one.

    Raises HeldBySomebody or ReviewAlreadyDecided. Two statements, each by itself: two reviewers who change places would
    otherwise wait for each other. Until when it is held is not read anew.
    """
    free = Q(claimed_by=None) | Q(claimed_by=by) | Q(claimed_until__lte=Now())
    waiting = Memory.objects.filter(pk=memory.pk, status__in=Memory.AWAITING)
    while not waiting.filter(free).update(claimed_by=by, claimed_until=Now() + LEASE):
        memory = Memory.objects.select_related("claimed_by").get(pk=memory.pk)
        if not memory.is_awaiting:
            raise ReviewAlreadyDecided(memory, by=by)
        if memory.claimed_by:
            raise HeldBySomebody(memory)
        # Let go of since we asked.
    release_others(by=by, but=memory)
    memory.claimed_by = by
    return memory


def release(memory: Memory, *, by: User) -> None:
    """Lets others decide. What somebody else holds stays theirs."""
    Memory.objects.filter(pk=memory.pk, claimed_by=by).update(claimed_by=None, claimed_until=None)


def release_others(*, by: User, but: Memory) -> None:
    """People read one proposal at a time."""
    others = Memory.objects.filter(claimed_by=by).exclude(pk=but.pk)
    # After a decision there is none, and a look takes one statement where a change takes four.
    if others.exists():
        others.update(claimed_by=None, claimed_until=None)


def locked_rows(*keys: UUID | None) -> dict[UUID | None, Memory]:
    """Memories by their keys, locked, in one order whoever locks them; each with the database's time as `moment`."""
    rows = Memory.objects.select_for_update(of=("self",), no_key=True).annotate(moment=Now())
    return {row.pk: row for row in rows.filter(pk__in=[key for key in keys if key]).order_by("pk")}


def last_review(memory: Memory) -> Review | None:
    """The decision that counts last, whoever took it."""
    standing = memory.reviews.filter(undone_at=None).select_related("reviewer", "rule")
    return standing.order_by("-decided_at", "-pk").first()


def name_of(person: User | None) -> str:
    return str(person.get_full_name() or person.get_username()) if person else "Somebody"
