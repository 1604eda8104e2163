"""Services of approvals: ask, approve, reject, withdraw, make void.

They work on an object with an `approval`, which the caller has locked. The digest of what is shown is taken when an
approval is asked for; who approves sends the one of the page that was read, and both must be that of the object now.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model
from django.utils.crypto import constant_time_compare
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.approvals.kinds import ApprovalKind, kind_called
from memadmin.accounts.approvals.models import Approval
from memadmin.accounts.same_person import is_same_person
from memadmin.audit.log import ids
from memadmin.derived_keys import derived_keys

Decision = Approval.Decision

PURPOSE = "approvals"
"""Purpose of the derived key of digests."""


class ApprovalError(Exception):
    """A decision that is not possible; the message is a sentence for the user. Nothing was changed."""


class NotAllowed(ApprovalError):
    """This person may not decide."""


class AlreadyDecided(ApprovalError):
    def __init__(self, approval: Approval | None) -> None:
        by = approval.decided_by if approval else None
        super().__init__(
            f"{by} has already decided on this request. Your decision was not saved."
            if by
            else "This request is already decided or has expired. Nothing was changed."
        )


class ShownChanged(ApprovalError):
    def __init__(self) -> None:
        super().__init__("This has changed since you opened the page. Nothing was approved. Read it again.")


class ChangedSinceAsked(ApprovalError):
    def __init__(self) -> None:
        super().__init__(
            "This has changed since the approval was requested. Nothing was approved. Reject it; it can be requested"
            " again as it is now."
        )


@dataclass(frozen=True, slots=True)
class Steps:
    """Actions of a user on an approval."""

    decide: bool = False
    reject: bool = False
    withdraw: bool = False
    why_not: str = ""
    """Why the user, who has the right to decide, cannot approve this one."""
    shown: str = ""
    """Digest of what the page shows, which its form sends back."""


def digest_of(shown: Any) -> str:
    """Keyed digest (HMAC-SHA256), in hexadecimal digits, of values that JSON can hold: it tells nothing of texts that
    are erased later.
    """
    return _digest_under(derived_keys(PURPOSE)[0], shown)


def is_digest_of(digest: str, shown: Any) -> bool:
    """True if it is the digest of these values, under any of the secret keys."""
    return any(constant_time_compare(digest, _digest_under(key, shown)) for key in derived_keys(PURPOSE))


def _digest_under(key: bytes, shown: Any) -> str:
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"), default=str)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def shown_now(about: Any) -> str:
    """The digest that a page of this object would have now: for commands and tests, which have no page."""
    kind = kind_called(about.approval.kind)
    return digest_of(kind.shown(about))


@contextmanager
def asking(
    kind: ApprovalKind,
    about: Any,
    *,
    by: User | None,
    is_needed: bool = True,
    names: Iterable[Model | UUID] = (),
    reason_code: str = "",
    details: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """A block that saves `about`, after the event of the request and before its approval.

    The event names `names` besides, and has this reason and these details. Without a second person (`is_needed`) the
    approval is decided at once.
    """
    audit.record(
        audit_events.APPROVAL_REQUESTED,
        by=by,
        target=about,
        subject=subject_of(about),
        shown=names,
        reason_code=reason_code,
        details=details,
    )
    yield
    at = now()
    about.approval = Approval.objects.create(
        kind=kind.name,
        object_ref=ids.ref_of(about),
        digest=digest_of(kind.shown(about)),
        asked_by=by,
        expires_at=at + kind.answer_within if kind.answer_within else None,
        decision="" if is_needed else Decision.NOT_NEEDED,
    )
    about.approval.refresh_from_db(fields=["asked_at", "decided_at"])
    about.save(update_fields=["approval"])


def ask(kind: ApprovalKind, about: Any, *, by: User | None) -> None:
    """Asks for the approval of an object that is saved already."""
    with asking(kind, about, by=by):
        pass


@contextmanager
def deciding(about: Any, *, by: User) -> Iterator[None]:
    """A transaction for a decision. That of a person who may not decide is recorded, after its rollback."""
    try:
        with transaction.atomic():
            yield
    except NotAllowed:
        event = audit_events.APPROVAL_DECIDED
        audit.record_alone(event, by=by, target=about, subject=subject_of(about), outcome="denied")
        raise


def approve(about: Any, *, by: User, shown: str, check: Callable[[], object] = lambda: None) -> None:
    """Raises NotAllowed, AlreadyDecided, ShownChanged and ChangedSinceAsked; and what `check` raises about what else
    was entered, before anything is written.
    """
    approval, kind = waiting_approval(about)
    require_decider(kind, approval, about, by)
    now_shown = kind.shown(about)
    if not is_digest_of(shown, now_shown):
        raise ShownChanged
    if not is_digest_of(approval.digest, now_shown):
        raise ChangedSinceAsked
    check()
    close(about, approval, Decision.APPROVED, by)


def reject(about: Any, *, by: User) -> None:
    """Rejects a request of another person, or withdraws one's own. Raises NotAllowed and AlreadyDecided."""
    approval, kind = waiting_approval(about)
    if approval.asked_by_id == by.pk:
        close(about, approval, Decision.WITHDRAWN, by)
        return
    require_right(kind, by)
    close(about, approval, Decision.REJECTED, by)


def make_void(about: Any, *, by: User | None = None) -> None:
    """Ends the approval of the object if nobody has decided: what it is about changes or ends. In a transaction."""
    approval = Approval.objects.select_for_update(of=("self",)).filter(pk=about.approval_id, decision="").first()
    if approval is not None:
        close(about, approval, Decision.VOID, by)


def is_as_approved(kind: ApprovalKind, about: Any) -> bool:
    """True if the object was approved, and is what was shown then."""
    return is_approved_as(kind, about, kind.shown)


def is_approved_as(kind: ApprovalKind, about: Any, shown: Callable[[Any], Any]) -> bool:
    """True if the object was approved, as what this shows of it now."""
    approval: Approval | None = about.approval
    if approval is None or not approval.is_approved or approval.object_ref != ids.ref_of(about):
        return False
    return approval.kind == kind.name and is_digest_of(approval.digest, shown(about))


def waiting_approval(about: Any) -> tuple[Approval, ApprovalKind]:
    """The approval of the object, locked. Raises AlreadyDecided."""
    several = Approval.objects.select_for_update(of=("self",)).select_related("asked_by", "decided_by")
    approval = several.filter(pk=about.approval_id).first()
    if approval is None or not approval.is_waiting_at(now()):
        raise AlreadyDecided(approval)
    return approval, kind_called(approval.kind)


def require_right(kind: ApprovalKind, by: User) -> None:
    if not by.is_active or not by.has_perm(kind.permission):
        raise NotAllowed("Your role does not allow this.")


def require_decider(kind: ApprovalKind, approval: Approval, about: Any, by: User) -> None:
    """Raises NotAllowed for the requester, under any account, and for whom else the kind excludes."""
    require_right(kind, by)
    if approval.asked_by is None:
        raise NotAllowed("The account that requested this was deleted. Reject it; it can be requested again.")
    if is_same_person(by, approval.asked_by):
        raise NotAllowed("You requested this yourself. Another person has to decide.")
    if refusal := kind.refusal(about, by):
        raise NotAllowed(refusal)


def close(about: Any, approval: Approval, decision: Decision, by: User | None) -> None:
    event = audit_events.APPROVAL_DECIDED
    audit.record(event, by=by, target=about, subject=subject_of(about), reason_code=decision)
    approval.decision, approval.decided_by, approval.decided_at = decision, by, now()
    approval.save(update_fields=["decision", "decided_by", "decided_at"])
    about.approval = approval


def subject_of(about: Any) -> UUID | None:
    """The subject whom an object is about, for its events."""
    subject: UUID | None = getattr(about, "subject_id", None)
    return subject


def steps_for(about: Any, user: User) -> Steps:
    """Actions of a user on an object's approval, with the digest for its form. Up to five queries, and the kind's."""
    approval: Approval | None = about.approval
    if approval is None or not approval.is_waiting_at(now()):
        return Steps()
    kind, is_own = kind_called(approval.kind), approval.asked_by_id == user.pk
    if is_own or not user.has_perm(kind.permission):
        return Steps(withdraw=is_own)
    shown = kind.shown(about)
    try:
        require_decider(kind, approval, about, user)
        if not is_digest_of(approval.digest, shown):
            raise ChangedSinceAsked
    except ApprovalError as refused:
        return Steps(reject=True, why_not=str(refused))
    return Steps(decide=True, reject=True, shown=digest_of(shown))


def steps_in_list(about: Any, user: User, shown: Any) -> Steps:
    """Actions on one of many waiting objects, without a query: who may not decide is told by `approve`."""
    is_own = about.approval.asked_by_id == user.pk
    return Steps(withdraw=is_own, decide=not is_own, reject=not is_own, shown=digest_of(shown))
