"""Services of role requests: which rights take a second person, and request, confirm, reject, grant by an operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
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


class RoleRequestError(Exception):
    """An action on a role request that is not possible; the message is a sentence for the user."""


class RoleRequestRefused(RoleRequestError):
    """The rules forbid the action: own request, or no right to decide."""


class RequestAlreadyDecided(RoleRequestError):
    def __init__(self) -> None:
        super().__init__("This request is already decided or has expired. Nothing was changed.")


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
    request = RoleRequest(person=person, requested_by=by, reason=why.code, explanation=why.explanation, **right.columns)
    audit.record(
        audit_events.ROLE_REQUESTED,
        by=by,
        target=person,
        reason_code=why.code,
        details={"right": str(right), **(why.details or {})},
    )
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


@transaction.atomic
def confirm_role(request: RoleRequest, *, by: User) -> RoleRequest:
    """Gives the person the requested right. Raises RoleRequestRefused or RequestAlreadyDecided.

    The requester must still be allowed to request it: a request is not a right that outlives theirs.
    """
    request, right = locked_for_decision(request, by)
    if is_same_person(by, request.requested_by) or is_same_person(by, request.person):
        raise RoleRequestRefused("You requested this, or it is for you. Another administrator has to confirm it.")
    accesses = AccountAccess.objects.filter(person=request.person).select_related("by")
    if any(is_same_person(by, access.by) for access in accesses):
        raise RoleRequestRefused(
            "You set the password, second factor or address of this account. Another administrator has to confirm it."
        )
    if not may_administer(request.requested_by, right):
        raise RoleRequestRefused("The person who requested this may no longer do so. Reject the request.")
    if not request.person.is_active:
        raise RoleRequestRefused("This account is disabled. Reject the request.")
    give_right(request.person, right, by=by, reason_code="confirmed", details={"explanation": request.explanation})
    request.decided_by, request.decided_at = by, now()
    request.granted_at = request.decided_at
    request.save(update_fields=["decided_by", "decided_at", "granted_at"])
    return request


@transaction.atomic
def refuse_role(request: RoleRequest, *, by: User) -> RoleRequest:
    """Rejects a request, or withdraws one's own. Raises RoleRequestRefused or RequestAlreadyDecided."""
    request, right = locked_for_decision(request, by)
    reason = "withdrawn" if by.pk == request.requested_by_id else "rejected"
    audit.record(
        audit_events.ROLE_REFUSED, by=by, target=request.person, reason_code=reason, details={"right": str(right)}
    )
    request.decided_by, request.decided_at = by, now()
    request.save(update_fields=["decided_by", "decided_at"])
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


def locked_for_decision(request: RoleRequest, by: User) -> tuple[RoleRequest, AccountRight]:
    request = RoleRequest.objects.with_people().select_for_update(of=("self",)).get(pk=request.pk)
    right = AccountRight(request.role, request.permission)
    require_administrator(by, right)
    if request.state_at(now()) != RoleRequest.State.WAITING:
        raise RequestAlreadyDecided
    return request, right


def require_administrator(by: User, right: AccountRight) -> None:
    if not may_administer(by, right):
        raise RoleRequestRefused(
            "Your role does not allow this."
            if right.role
            else f"Only a superuser may request or confirm this: {right}."
        )


def may_administer(by: User, right: AccountRight) -> bool:
    """True if this account may request and decide on a right: single permissions are for superusers."""
    return by.is_active and by.has_perm(ADMINISTER) and (right.role is not None or by.is_superuser)
