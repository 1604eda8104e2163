"""Services of role requests: which rights take a second person, and request, confirm, reject, grant by an operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.services import NotAllowed
from memadmin.accounts.models import AccountAccess, RoleRequest
from memadmin.accounts.roles import UNGUARDED
from memadmin.accounts.same_person import is_same_person

ADMINISTER = "auth.change_user"


@dataclass(frozen=True, slots=True)
class AccountRight:
    """A role, a single permission, or, without either, the rights of a superuser."""

    role: Group | None = None
    permission: Permission | None = None

    def __str__(self) -> str:
        if self.role:
            return f"role {self.role.name}"
        return f"permission {name_of(self.permission)}" if self.permission else "superuser"

    @property
    def is_guarded(self) -> bool:
        """True if it takes a second person. One query for a role."""
        if self.role:
            return is_guarded(self.role.permissions.select_related("content_type"))
        return is_guarded([self.permission]) if self.permission else True

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of a request for this right."""
        is_superuser = self.role is None and self.permission is None
        return {"role": self.role, "permission": self.permission, "is_superuser": is_superuser}

    def take_from(self, person: User) -> None:
        if self.role:
            person.groups.remove(self.role)
        elif self.permission:
            person.user_permissions.remove(self.permission)
        else:
            person.is_superuser = False
            person.save(update_fields=["is_superuser"])

    def give_to(self, person: User) -> None:
        if self.role:
            person.groups.add(self.role)
        elif self.permission:
            person.user_permissions.add(self.permission)
        else:
            person.is_superuser = True
            person.save(update_fields=["is_superuser"])


def is_guarded(permissions: Iterable[Permission]) -> bool:
    """True if any of them opens content, decides or administers: all but those of the audit log."""
    return any(name_of(permission) not in UNGUARDED for permission in permissions)


def name_of(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def rights_of(person: User) -> list[AccountRight]:
    """Roles, single permissions and superuser rights of an account. Two queries."""
    permissions = person.user_permissions.select_related("content_type")
    return [
        *(AccountRight(role=role) for role in person.groups.all()),
        *(AccountRight(permission=permission) for permission in permissions),
        *([AccountRight()] if person.is_superuser else []),
    ]


class RoleRequestRefused(NotAllowed):
    """The rules forbid to request this right, or to decide about it."""


def shown_of(request: RoleRequest) -> dict[str, Any]:
    """Values that a decision is about: the right with all that it allows now. No query after `with_people`."""
    permissions = request.role.permissions.all() if request.role else []
    return {
        "person": request.person_id,
        "right": str(right_of(request)),
        "allows": sorted(map(name_of, permissions)),
        "reason": [request.reason, request.explanation],
    }


def refusal(request: RoleRequest, by: User) -> str:
    """Why this administrator does not confirm the request. The requester must still be allowed to request it: a request
    is not a right that outlives theirs. Up to five queries.
    """
    right, accesses = right_of(request), AccountAccess.objects.filter(person=request.person).select_related("by")
    if not may_administer(by, right):
        return why_not_administrator(right)
    if is_same_person(by, request.person):
        return "This is for you. Another administrator has to confirm it."
    if any(is_same_person(by, access.by) for access in accesses):
        return (
            "You set the password, second factor or address of this account. Another administrator has to confirm it."
        )
    if not (request.approval and request.approval.asked_by and may_administer(request.approval.asked_by, right)):
        return "The person who requested this may no longer do so. Reject the request."
    return "" if request.person.is_active else "This account is disabled. Reject the request."


ROLE = declare(
    ApprovalKind(
        "role",
        ADMINISTER,
        shown_of,
        waiting="role requests",
        page="accounts:roles",
        facts="By an administrator other than the requester.",
        symbol="shield-lock",
        answer_within=timedelta(days=3),
        refusal=refusal,
    )
)


@transaction.atomic
def request_role(person: User, right: AccountRight, *, by: User, why: audit.Why) -> RoleRequest:
    """Requests a right for a person; the waiting request if there is one. Raises RoleRequestRefused."""
    person = User.objects.select_for_update(no_key=True).get(pk=person.pk)
    require_administrator(by, right)
    if not person.is_active:
        raise RoleRequestRefused(f"This account is disabled. Activate it first, then request the {right} again.")
    waiting = RoleRequest.objects.awaiting_decision(now()).filter(person=person, **right.columns).first()
    if waiting:
        return waiting
    request = RoleRequest(person=person, reason=why.code, explanation=why.explanation, **right.columns)
    details = {"right": str(right), **(why.details or {})}
    with approvals.asking(ROLE, request, by=by, names=[person], reason_code=why.code, details=details):
        request.save(force_insert=True)
    return request


@transaction.atomic
def request_again(person: User, *, by: User, why: audit.Why) -> list[AccountRight]:
    """Takes the guarded rights of an account away and requests them again; returns them. Before its password, second
    factor or address is set by another person, who could then sign in with it.

    Raises RoleRequestRefused if `by` may not administer one of the rights.
    """
    note_access(person, by=by)
    if by.pk == person.pk or not person.is_active:
        return []
    return take_and_request(person, by=by, why=why)


@transaction.atomic
def take_and_request(person: User, *, by: User, why: audit.Why) -> list[AccountRight]:
    """Takes the guarded rights of an active account away and requests them again; returns them.

    Raises RoleRequestRefused if `by` may not administer one of the rights.
    """
    taken = [right for right in rights_of(person) if right.is_guarded]
    for right in taken:
        require_administrator(by, right)
    for right in taken:
        request_role(person, right, by=by, why=why)
        right.take_from(person)
    return taken


def note_access(person: User, *, by: User) -> None:
    """Notes that `by` sets how the account is signed in to: they do not confirm its rights."""
    if by.pk != person.pk:
        AccountAccess.objects.get_or_create(person=person, by=by)


def confirm_role(request: RoleRequest, *, by: User, shown: str) -> RoleRequest:
    """Gives the person the right, as it was `shown`. Raises ApprovalError."""
    with approvals.deciding(request, by=by):
        request = locked(request)
        approvals.approve(request, by=by, shown=shown)
        details = {"explanation": request.explanation}
        give_right(request.person, right_of(request), by=by, reason_code="confirmed", details=details)
    return request


def refuse_role(request: RoleRequest, *, by: User) -> RoleRequest:
    """Rejects a request, or withdraws one's own. Raises ApprovalError."""
    with approvals.deciding(request, by=by):
        request = locked(request)
        require_administrator(by, right_of(request))
        approvals.reject(request, by=by)
    return request


@transaction.atomic
def grant_as_operator(person: User, right: AccountRight, *, reason: str) -> None:
    """Gives a right without a second person: for the operator's command, where there is only one administrator."""
    person = User.objects.select_for_update(no_key=True).get(pk=person.pk)
    give_right(person, right, by=None, reason_code="operator", details={"explanation": reason})


def give_right(
    person: User, right: AccountRight, *, by: User | None, reason_code: str, details: dict[str, str]
) -> None:
    # Its permissions must not change between the decision and its members.
    if right.role:
        Group.objects.select_for_update(no_key=True).get(pk=right.role.pk)
    audit.record(
        audit_events.ROLE_GRANTED,
        by=by,
        target=person,
        reason_code=reason_code,
        details={"right": str(right), **details},
    )
    right.give_to(person)


def locked(request: RoleRequest) -> RoleRequest:
    """The request, locked, and before its role is read that role, too: its permissions are part of what is decided."""
    request = RoleRequest.objects.select_for_update().get(pk=request.pk)
    if request.role_id:
        Group.objects.select_for_update(no_key=True).get(pk=request.role_id)
    return RoleRequest.objects.with_people().get(pk=request.pk)


def right_of(request: RoleRequest) -> AccountRight:
    return AccountRight(request.role, request.permission)


def require_administrator(by: User, right: AccountRight) -> None:
    if not may_administer(by, right):
        raise RoleRequestRefused(why_not_administrator(right))


def why_not_administrator(right: AccountRight) -> str:
    return "Your role does not allow this." if right.role else f"Only a superuser may request or confirm this: {right}."


def may_administer(by: User, right: AccountRight) -> bool:
    """True if this account may request and decide on a right: single permissions are for superusers."""
    return by.is_active and by.has_perm(ADMINISTER) and (right.role is not None or by.is_superuser)
