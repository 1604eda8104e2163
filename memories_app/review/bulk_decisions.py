"""Bulk decisions: a preview of qualifying and excluded proposals, then the decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models.functions import Now

from memadmin.accounts.same_person import addresses_of
from memories_app.models import Memory
from memories_app.review.claiming import is_claimed_by_other, last_review, moment_of, name_of
from memories_app.review.decisions import approve_memory, reject_memory, snooze_memory
from memories_app.services.refusals import MemoryActionRefused

AT_ONCE = 100

VERBS: Mapping[str, Callable[..., Memory]] = {
    "approve": approve_memory,
    "reject": reject_memory,
    "snooze": snooze_memory,
}


@dataclass(frozen=True, slots=True)
class TickedProposal:
    """A selected proposal, and the reason for its exclusion; empty if it qualifies."""

    memory: Memory
    why_not: str


def chosen(read: Mapping[UUID, str], *, by: User, verb: str) -> list[TickedProposal]:
    """Selected proposals, oldest first, with reasons for exclusion. `read` has the content hash of each as shown.

    Three queries, and one for each person who proposed some of them and for each that no longer waits.
    """
    found = Memory.objects.filter(pk__in=list(read)[:AT_ONCE]).select_related("claimed_by", "proposed_by")
    # Also called by the worker, which may not read password hashes.
    found = found.defer("claimed_by__password", "proposed_by__password")
    memories = list(found.annotate(moment=Now()).order_by("awaiting_since", "pk"))
    mine = addresses_of(by)
    people = {memory.proposed_by for memory in memories if memory.proposed_by}
    own = {person.pk for person in people if person.pk == by.pk or mine & addresses_of(person)}
    return [TickedProposal(memory, why_not(memory, read[memory.pk], by, own, verb)) for memory in memories]


def why_not(memory: Memory, read_hash: str, by: User, own: Collection[int | None], verb: str) -> str:
    if not memory.is_awaiting:
        return decided_by(memory, by)
    if is_claimed_by_other(memory, by, moment_of(memory)):
        return f"{name_of(memory.claimed_by)} has claimed it"
    if memory.content_hash != read_hash:
        return "was changed since you read it"
    if verb == "snooze":
        return ""
    if memory.proposed_by_id in own:
        return "you proposed it"
    if verb == "approve":
        if memory.needs_two:
            return "needs a second approver; open it separately"
        if memory.replaces_id:
            return "changes a memory; open it separately"
        if not memory.is_screened:
            return "its risk check is pending"
    return ""


def decided_by(memory: Memory, by: User) -> str:
    """The person and the decision about a proposal that no longer waits: "you already approved it". One query."""
    review = last_review(memory)
    if review is None or review.rule:
        return f"is {memory.get_status_display()} already"
    who = "you" if review.reviewer == by else name_of(review.reviewer)
    return f"{who} already {review.get_decision_display()} it"


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    done: list[Memory]
    left: list[TickedProposal]

    @property
    def reasons(self) -> str:
        """Why proposals stay as they were, with the number of each reason, the most frequent first."""
        counts = Counter(each.why_not.removesuffix(".") for each in self.left)
        return "; ".join(f"{count} ({reason})" for reason, count in counts.most_common())


def decide_many(read: Mapping[UUID, str], *, by: User, verb: str, **said: Any) -> BulkOutcome:
    """Decides about each qualifying proposal in a transaction of its own: a failure does not stop the others.

    `said` contains further arguments of the verb: a reason, a length.
    """
    done, left = [], []
    for one in chosen(read, by=by, verb=verb):
        if one.why_not:
            left.append(one)
            continue
        said_of_it = said if verb == "snooze" else said | {"content_hash": read[one.memory.pk]}
        try:
            done.append(partial(VERBS[verb], one.memory, by=by)(**said_of_it))
        except MemoryActionRefused as problem:
            left.append(TickedProposal(one.memory, str(problem)))
    return BulkOutcome(done, left)
