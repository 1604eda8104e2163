"""Decisions about proposals: one transaction each, with the proposal locked and checked again.

A decision is about a text and, for a change, about a version of the changed memory: reviewers state what they read, and
it must equal the current state. Proposers do not decide about their own proposals, not even with a second account.
Shared and risky memories need two people: the first approval asks for the second one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Greatest, Now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.models import Approval
from memadmin.accounts.same_person import is_same_person
from memories_app import audit_events
from memories_app.learning.proposing import check_statement
from memories_app.learning.risk_detection import risks_of
from memories_app.models import Evidence, Memory, Review
from memories_app.review.claiming import (
    ClaimedByOther,
    ReviewAlreadyDecided,
    is_claimed_by_other,
    locked_rows,
    moment_of,
)
from memories_app.services.refusals import (
    CannotBeMerged,
    MemoryActionRefused,
    NotScreened,
    Overtaken,
    OwnProposal,
    SecondPersonNeeded,
    gate_explained,
)

EDITABLE = ("statement", "kind", "key", "agents", "valid_until")

CONTENT = (*Memory.DETAILS, "risk_flags", "screened_hash", "extractor")
"""Columns that a change of a memory copies besides its text."""

SEARCHED_BY = ("embedding", "embedder", "embedded_hash")

REVALIDATE_AGAIN = timedelta(days=180)
"""Time until the next re-validation after a re-validation."""


def shown_of(memory: Memory) -> dict[str, Any]:
    """Values that two people approve. One query."""
    names = ("content_hash", "base_version", "risk_flags", "source", "extractor", "valid_from", "valid_until")
    evidence = memory.evidence.order_by("pk").values_list("pk", flat=True)
    return {name: getattr(memory, name) for name in names} | {"evidence": list(evidence)}


MEMORY = declare(
    ApprovalKind(
        "memory",
        "memories_app.review_memory",
        shown_of,
        waiting="second approvals",
        page="reviews:list",
        query="?show=second",
        facts="Shared or risky memories: two people approve.",
        symbol="users",
    )
)


class ChangedMeanwhile(Overtaken):
    sentence = "This proposal changed since you opened it. Your decision was not saved; read the current version."


class BaseChanged(Overtaken):
    """The text of the memory to change differs from the one at the time of writing or reading."""

    sentence = (
        "The memory that this proposal changes has a new version. Your decision was not saved; read the difference."
    )


class BaseGone(Overtaken):
    def __init__(self, memory: Memory, base: Memory) -> None:
        self.base = base
        super().__init__(
            memory,
            f"The memory that this would change is {base.get_status_display()}, and agents no longer use it. "
            "Reject this proposal, or propose a separate memory.",
        )


@transaction.atomic
def approve_memory(
    memory: Memory, *, by: User, content_hash: str, base_version: int | None = None, shown: str = "", note: str = ""
) -> Memory:
    """Approves the text that was read; agents recall it at once, or after a second approval if required.

    `content_hash` and `base_version` identify the text read, and `shown` all that the page of a second person showed.
    Raises Overtaken if it changed, or if another reviewer has claimed it or decided; OwnProposal, SecondPersonNeeded
    and NotScreened.
    """
    memory, base = locked(memory, by=by, content_hash=content_hash)
    require_fresh_base(memory, base, base_version)
    if not memory.is_screened:
        raise NotScreened(memory)
    return note_approval(memory, base, by=by, shown=shown, note=note)


@transaction.atomic
def edit_and_approve(
    memory: Memory,
    *,
    by: User,
    content_hash: str,
    changes: Mapping[str, Any],
    base_version: int | None = None,
    shown: str = "",
    note: str = "",
) -> Memory:
    """Approves a proposal with a changed text, which is screened first. The editor counts as one of two required
    approvers.

    `changes` are columns of EDITABLE. Earlier approvals were of another text and do not count. Raises what
    approve_memory raises, and Unproposable.
    """
    assert set(changes) <= set(EDITABLE), "these columns are not a reviewer's to change"
    memory, base = locked(memory, by=by, content_hash=content_hash)
    require_fresh_base(memory, base, base_version)
    changed = {name: value for name, value in changes.items() if getattr(memory, name) != value}
    if changed:
        check_statement(changed.get("statement", memory.statement))
        audit.record(audit_events.MEMORY_EDITED, by=by, target=memory, subject=memory.subject_id)
        for name, value in changed.items():
            setattr(memory, name, value)
        memory.save(update_fields=list(changed))
        memory.refresh_from_db(fields=["content_hash", "version"])
        screen(memory)
        approvals.make_void(memory)
    elif not memory.is_screened:
        raise NotScreened(memory)
    return note_approval(memory, base, by=by, shown=shown, note=note, was_edited=bool(changed))


def screen(memory: Memory) -> None:
    """Screens an edited text at once, because the reviewer waits."""
    memory.risk_flags = [risk.flag for risk in risks_of(memory.statement, memory.data, regions=settings.PHONE_REGIONS)]
    memory.screened_hash = memory.content_hash
    memory.save(update_fields=["risk_flags", "screened_hash"])


@transaction.atomic
def reject_memory(memory: Memory, *, by: User, content_hash: str, reason: str, note: str = "") -> Memory:
    """Rejects a proposal. Raises Overtaken, OwnProposal, and Undeclared for an unknown reason."""
    memory, _ = locked(memory, by=by, content_hash=content_hash)
    audit.record(
        audit_events.MEMORY_REJECTED,
        by=by,
        target=memory,
        subject=memory.subject_id,
        reason_code=reason,
        details={"note": note} if note else None,
    )
    note_review(memory, Review.Decision.REJECT, by=by, reason_code=reason, note=note)
    approvals.make_void(memory, by=by)
    return close(memory, Memory.Status.REJECTED)


@transaction.atomic
def merge_memory(memory: Memory, *, by: User, content_hash: str, into: Memory, note: str = "") -> Memory:
    """Merges a proposal into another memory: its evidence moves there, and the other text stays.

    Raises Overtaken, OwnProposal and CannotBeMerged.
    """
    memory, _ = locked(memory, by=by, content_hash=content_hash, other=into)
    into = Memory.objects.select_for_update(of=("self",), no_key=True).get(pk=into.pk)
    require_mergeable(memory, into)
    audit.record(audit_events.MEMORY_MERGED, by=by, target=memory, subject=memory.subject_id, shown=[into])
    moved = move_evidence(memory, into, version=into.version)
    approvals.make_void(memory, by=by)
    note_review(memory, Review.Decision.MERGE, by=by, note=note, before={"into": str(into.pk), "evidence": moved})
    return close(memory, Memory.Status.MERGED, merged_into=into)


@transaction.atomic
def snooze_memory(memory: Memory, *, by: User, length: timedelta) -> Memory:
    """Hides a proposal from the queue for some time; it keeps its position. Raises Overtaken."""
    memory, _ = locked(memory, by=by, is_decision=False)
    audit.record(audit_events.MEMORY_SNOOZED, by=by, target=memory, subject=memory.subject_id)
    waiting = Memory.objects.filter(pk=memory.pk)
    waiting.update(snoozed_until=Now() + length, claimed_by=None, claimed_until=None)
    memory.refresh_from_db(fields=["snoozed_until", "claimed_by", "claimed_until"])
    return memory


@transaction.atomic
def wake_memory(memory: Memory, *, by: User) -> Memory:
    """Ends a snooze."""
    memory, _ = locked(memory, by=by, is_decision=False)
    audit.record(audit_events.MEMORY_SNOOZED, by=by, target=memory, subject=memory.subject_id, counters={"ended": 1})
    memory.snoozed_until = None
    memory.save(update_fields=["snoozed_until"])
    return memory


@transaction.atomic
def accept_base(memory: Memory, *, by: User, base_version: int) -> Memory:
    """Records that a proposal was compared with the current memory. Earlier approvals were of another change.

    Raises BaseChanged when it has changed again.
    """
    memory, base = locked(memory, by=by)
    if base is None or base.version != base_version:
        raise BaseChanged(memory)
    audit.record(audit_events.BASE_ACCEPTED, by=by, target=memory, subject=memory.subject_id)
    approvals.make_void(memory, by=by)
    memory.base_version = base.version
    memory.save(update_fields=["base_version"])
    return memory


def locked(
    memory: Memory, *, by: User, content_hash: str | None = None, other: Memory | None = None, is_decision: bool = True
) -> tuple[Memory, Memory | None]:
    """The proposal and the memory it would change, locked, after checks that this person may decide."""
    by_key = locked_rows(memory.pk, memory.replaces_id, other.pk if other else None)
    memory = by_key[memory.pk]
    if not memory.is_awaiting:
        raise ReviewAlreadyDecided(memory, by=by)
    if is_claimed_by_other(memory, by, moment_of(memory)):
        raise ClaimedByOther(memory)
    if content_hash is not None and memory.content_hash != content_hash:
        raise ChangedMeanwhile(memory)
    if is_decision and is_same_person(by, memory.proposed_by):
        raise OwnProposal(memory)
    return memory, by_key.get(memory.replaces_id)


def require_fresh_base(memory: Memory, base: Memory | None, read_version: int | None) -> None:
    if base is None:
        return
    if base.status not in Memory.IN_USE:
        raise BaseGone(memory, base)
    if not memory.base_version == base.version == read_version:
        raise BaseChanged(memory)


def require_mergeable(memory: Memory, into: Memory) -> None:
    if into.pk == memory.pk:
        raise CannotBeMerged(memory, "A memory cannot be merged into itself.")
    if into.status not in (*Memory.IN_USE, Memory.Status.PROPOSED):
        raise CannotBeMerged(memory, f"That memory is {into.get_status_display()}; it cannot be a merge target.")
    if into.subject_id != memory.subject_id and not (
        into.subject and memory.subject_id in set(into.subject.group_ids())
    ):
        raise CannotBeMerged(memory, "That memory belongs to another subject.")


def note_approval(
    memory: Memory, base: Memory | None, *, by: User, shown: str, note: str, was_edited: bool = False
) -> Memory:
    first = first_approval(memory)
    if first is None and memory.needs_two:
        approvals.make_void(memory)
        approvals.ask(MEMORY, memory, by=by)
        note_review(memory, Review.Decision.APPROVE, by=by, note=note, was_edited=was_edited)
        Memory.objects.filter(pk=memory.pk).update(claimed_by=None, claimed_until=None)
        return memory
    if first and is_same_person(by, first.asked_by):
        raise SecondPersonNeeded(memory)
    if first:
        try:
            approvals.approve(memory, by=by, shown=shown)
        except approvals.ShownChanged as problem:
            raise ChangedMeanwhile(memory) from problem
        except approvals.ApprovalError as problem:
            raise MemoryActionRefused(memory, str(problem)) from problem
    counters = {"edited": int(was_edited)}
    audit.record(audit_events.MEMORY_APPROVED, by=by, target=memory, subject=memory.subject_id, counters=counters)
    review = note_review(
        memory, Review.Decision.APPROVE, by=by, note=note, was_edited=was_edited, approval=first and memory.approval
    )
    return put_in_force(memory, base, review)


def first_approval(memory: Memory) -> Approval | None:
    """The first of two approvals, if it is about what the memory is now, and its account still exists. Two queries."""
    approval = memory.approval
    if approval is None or approval.decision or approval.asked_by is None:
        return None
    return approval if approvals.is_digest_of(approval.digest, shown_of(memory)) else None


def note_review(memory: Memory, decision: Review.Decision, *, by: User, **columns: Any) -> Review:
    """The stored decision. Its event, recorded before in this transaction, proves to the database who decides."""
    with gate_explained(memory):
        return Review.objects.create(
            memory=memory,
            reviewer=by,
            decision=decision,
            content_hash=memory.content_hash,
            waited=max(moment_of(memory) - memory.awaiting_since, timedelta()),
            # A clock that was set back would date the decision before the proposal, and the gate would ignore it.
            decided_at=Greatest(Now(), Value(memory.awaiting_since)),
            **columns,
        )


def put_in_force(memory: Memory, base: Memory | None, review: Review) -> Memory:
    """Sets the memory to approved, after a check by the gate."""
    with gate_explained(memory):
        if base is None:
            columns: dict[str, Any] = {}
            if memory.revalidate_on and memory.revalidate_on <= moment_of(memory).date():
                columns["revalidate_on"] = moment_of(memory).date() + REVALIDATE_AGAIN
            return close(memory, Memory.Status.APPROVED, **columns)
        review.before = {
            "version": base.version,
            "status": base.status,
            "columns": {name: as_json(getattr(base, name)) for name in CONTENT},
        }
        for name in ("statement", "data", *CONTENT, *SEARCHED_BY):
            setattr(base, name, getattr(memory, name))
        base.status, base.decided_at = Memory.Status.APPROVED, moment_of(memory)
        base.save(update_fields=["statement", "data", *CONTENT, *SEARCHED_BY, "status", "decided_at"])
        base.refresh_from_db(fields=["version", "content_hash"])
        review.before["evidence"] = move_evidence(memory, base, version=base.version)
        review.save(update_fields=["before"])
        return close(memory, Memory.Status.MERGED, merged_into=base)


def as_json(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def move_evidence(memory: Memory, into: Memory, *, version: int) -> list[str]:
    """Moves evidence; returns its ids."""
    moved = [str(pk) for pk in Evidence.objects.filter(memory=memory).values_list("pk", flat=True)]
    if moved:
        Evidence.objects.filter(pk__in=moved).update(memory=into, version=version)
    return moved


def close(memory: Memory, status: Memory.Status, **columns: Any) -> Memory:
    """Sets a final status and releases the claim."""
    columns |= {
        "status": status,
        "decided_at": moment_of(memory),
        "claimed_by": None,
        "claimed_until": None,
        "snoozed_until": None,
    }
    for name, value in columns.items():
        setattr(memory, name, value)
    memory.save(update_fields=list(columns))
    return memory


__all__ = [
    "BaseChanged",
    "BaseGone",
    "CannotBeMerged",
    "ChangedMeanwhile",
    "ClaimedByOther",
    "MemoryActionRefused",
    "NotScreened",
    "Overtaken",
    "OwnProposal",
    "ReviewAlreadyDecided",
    "SecondPersonNeeded",
    "accept_base",
    "approve_memory",
    "edit_and_approve",
    "merge_memory",
    "reject_memory",
    "snooze_memory",
    "wake_memory",
]
