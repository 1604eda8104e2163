"""Services of retention policies: propose, approve, withdraw, reject, cancel, end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.services import NotAllowed
from memadmin.counting import count_up_to
from memadmin.retention import audit_events
from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies.comparing import could_take_more
from memadmin.retention.policies.preview import preview_change
from memadmin.retention.policies.rules import Rule
from memadmin.retention.targets.base import target_named

CHANGE, APPROVE = "retention.change_policy", "retention.approve_policy"

CONFIRM_ROWS = 10_000
CONFIRM_SHARE = 0.1
"""A change that takes more rows than this, or a larger share of what it is about, is confirmed by typing."""


class PolicyError(Exception):
    """A change that is not possible; the message is a sentence for the operator. Nothing was changed."""


class ChangeAlreadyOpen(PolicyError):
    def __init__(self, policy: RetentionPolicy) -> None:
        super().__init__(f"A change of {policy} is open already. Approve or stop it first. Nothing was saved.")


class ChangeAlreadyDecided(PolicyError):
    def __init__(self) -> None:
        super().__init__("This change was decided meanwhile. Nothing was saved; this is its current state.")


class PolicyNameTaken(PolicyError):
    def __init__(self) -> None:
        super().__init__("There is a policy with this name already. Choose another name, or change that policy.")


class NotConfirmed(PolicyError):
    def __init__(self) -> None:
        super().__init__(
            "The change covers a large share of the data: type the name of the policy to confirm it. Nothing was saved."
        )


class DefaultStays(PolicyError):
    def __init__(self) -> None:
        super().__init__("The default policy cannot end: it decides where no other does. Change what it says.")


class NothingChanged(PolicyError):
    def __init__(self) -> None:
        super().__init__("This is what the policy says already. Nothing was saved.")


def shown_of(version: PolicyVersion) -> dict[str, Any]:
    """What a decision about a change is about. One query, and one for its policy."""
    current = current_version(version.policy)
    return {
        "policy": version.policy.name,
        "number": version.number,
        "content": {name: getattr(version, name) for name in PolicyVersion.CONTENT},
        "replaces": [current.pk, current.number] if current else None,
        "preview": version.preview,
        "reason": version.reason,
    }


POLICY_CHANGE = declare(
    ApprovalKind(
        "policy_change",
        APPROVE,
        shown_of,
        waiting="policy changes",
        page="policies:list",
        facts="Data can be kept for less time, or otherwise, under a changed retention policy.",
        symbol="hourglass",
    )
)


def rules_in_force() -> list[Rule]:
    """The rules of all policies in force. One query."""
    return [version.rule() for version in PolicyVersion.objects.in_force()]


def current_version(policy: RetentionPolicy) -> PolicyVersion | None:
    """The version in force; None before the first, and after the end. One query."""
    return PolicyVersion.objects.in_force().filter(policy=policy).first()


def propose_policy(name: str, content: dict[str, Any], *, reason: str, by: User | None) -> PolicyVersion:
    """A new policy; see `propose_change`. Raises PolicyNameTaken."""
    try:
        with transaction.atomic():
            policy = RetentionPolicy.objects.create(name=name)
            return propose_change(policy, content, reason=reason, by=by)
    except IntegrityError as problem:
        if RetentionPolicy.objects.filter(name=name).exists():
            raise PolicyNameTaken from problem
        raise


@transaction.atomic
def propose_change(policy: RetentionPolicy, content: dict[str, Any], *, reason: str, by: User | None) -> PolicyVersion:
    """Another version of a policy. In force at once if it surely keeps more, otherwise after approval and grace.

    `content` has the columns of `PolicyVersion.CONTENT` that are not empty. Counts what the change would take, which
    can take seconds. Raises ChangeAlreadyOpen and NothingChanged.
    """
    policy = RetentionPolicy.objects.select_for_update().get(pk=policy.pk)
    if PolicyVersion.objects.open().filter(policy=policy).exists():
        raise ChangeAlreadyOpen(policy)
    current = current_version(policy)
    version = PolicyVersion(policy=policy, number=next_number(policy), reason=reason, **content)
    new = None if version.is_end else version.rule()
    old = current.rule() if current else None
    if old and new and same_content(old, new) and current and current.note == version.note:
        raise NothingChanged
    version.needs_approval = could_take_more(old, new)
    if version.needs_approval:
        version.preview = preview_change(version.rule(), rules_in_force(), is_end=version.is_end).as_json()
    with approvals.asking(POLICY_CHANGE, version, by=by, is_needed=version.needs_approval):
        version.save(force_insert=True)
        # As every later reader gets the preview.
        version.refresh_from_db()
    if not version.needs_approval:
        audit.record(audit_events.CHANGE_MADE, by=by, target=version)
        return changed(version, starts_at=Now())
    return version


@transaction.atomic
def end_policy(policy: RetentionPolicy, *, reason: str, by: User | None) -> PolicyVersion:
    """Proposes the end of a policy: from then on the others decide about its data. Raises PolicyError."""
    if policy.is_default:
        raise DefaultStays
    current = current_version(policy)
    if current is None:
        raise ChangeAlreadyDecided
    content = {name: getattr(current, name) for name in PolicyVersion.CONTENT if name != "note"}
    return propose_change(policy, content | {"is_end": True}, reason=reason, by=by)


def needs_typing(version: PolicyVersion) -> bool:
    """Whether so much would go, or it is not known how much, that the approval is confirmed by typing.

    One query, which counts no further than necessary.
    """
    rows = version.preview.get("rows", 0)
    is_counted = all(place.get("is_complete", True) for place in version.preview.get("places", ()))
    if rows > CONFIRM_ROWS or not is_counted:
        return True
    target, enough = target_named(version.target), int(rows / CONFIRM_SHARE)
    return bool(rows) and count_up_to(target.rows().filter(target.scope_q(version.rule())), enough) < enough


def approve_change(
    version: PolicyVersion, *, by: User, shown: str, confirmation: str = "", after: timedelta | None = None
) -> PolicyVersion:
    """Approves a change, as it was `shown`, as the second person; it takes effect after the grace period, or `after` so
    long.

    Raises ApprovalError and NotConfirmed.
    """
    with approvals.deciding(version, by=by):
        version = locked(version)
        approvals.approve(version, by=by, shown=shown)
        if needs_typing(version) and confirmation.strip() != version.policy.name:
            raise NotConfirmed
        audit.record(audit_events.CHANGE_APPROVED, by=by, target=version)
        return changed(version, starts_at=Now() + (grace() if after is None else after))


def grace() -> timedelta:
    """Time between the approval of a change and its effect, in which it can be cancelled."""
    length: timedelta = settings.RETENTION_GRACE
    return length


def stop_change(version: PolicyVersion, *, reason: str, by: User) -> PolicyVersion:
    """Withdraws one's own change, rejects that of another, or cancels an approved one in its grace period.

    Raises ApprovalError, and ChangeAlreadyDecided once it is in force.
    """
    with approvals.deciding(version, by=by):
        version = locked(version)
        if version.awaits_approval:
            approvals.reject(version, by=by)
        elif not version.is_in_grace:
            raise ChangeAlreadyDecided
        elif not by.has_perm(CHANGE):
            raise NotAllowed("Your role does not allow this.")
        else:
            audit.record(audit_events.CHANGE_CANCELLED, by=by, target=version)
        return changed(version, closed_at=Now(), closed_by=by, closing_reason=reason)


def locked(version: PolicyVersion) -> PolicyVersion:
    return PolicyVersion.objects.select_for_update(of=("self",)).with_names().get(pk=version.pk)


def changed(version: PolicyVersion, **columns: Any) -> PolicyVersion:
    PolicyVersion.objects.filter(pk=version.pk).update(**columns)
    version.refresh_from_db()
    return version


def next_number(policy: RetentionPolicy) -> int:
    last = PolicyVersion.objects.filter(policy=policy).aggregate(last=Max("number"))["last"]
    return int(last or 0) + 1


def same_content(old: Rule, new: Rule) -> bool:
    neutral = {"version": UUID(int=0), "number": 0}
    return replace(old, **neutral) == replace(new, **neutral)  # type: ignore[arg-type]
