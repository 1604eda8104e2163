"""Actions of administrators on accounts: add, invite, give and take roles, switch off and on, reset a second factor.

Rights that need a second person are requested through `role_requests`, here as in Django admin.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import QuerySet

from memadmin import audit
from memadmin.accounts import audit_events, user_actions
from memadmin.accounts.people import invitations
from memadmin.accounts.role_requests import services as role_requests
from memadmin.accounts.role_requests.services import ADMINISTER, AccountRight


class PersonError(Exception):
    """An action on an account that is not possible; the message is a sentence for the user."""


class OwnAccount(PersonError):
    pass


class LastAdministrator(PersonError):
    def __init__(self) -> None:
        super().__init__(
            "Nobody else could administer accounts then. Make another administrator first, who can sign in."
        )


@dataclass(frozen=True, slots=True)
class RoleChange:
    """Names of roles: in effect, requested from a second administrator, and taken away."""

    given: list[str]
    requested: list[str]
    taken: list[str]


@transaction.atomic
def add_person(
    *, username: str, name: str, email: str, roles: Collection[Group], by: User, why: audit.Why
) -> tuple[User, RoleChange]:
    """A new account without a password, with its roles or the requests for them."""
    first, _, last = name.rpartition(" ")
    person = User(username=username, email=email, first_name=first or last, last_name=last if first else "")
    person.set_unusable_password()
    with audit.recording(audit_events.PERSON_ADDED, by=by) as event:
        person.save()
        event.target, event.reason_code, event.details = person, why.code, why.details
    # The address, and a link that is shown, are as good as a password.
    role_requests.note_access(person, by=by)
    return person, change_roles(person, roles, by=by, why=why)


@transaction.atomic
def change_roles(person: User, roles: Collection[Group], *, by: User, why: audit.Why) -> RoleChange:
    """Takes roles away, and gives others or requests them from a second administrator. Raises LastAdministrator and
    RoleRequestRefused.
    """
    lock_administrators()
    person = User.objects.select_for_update(no_key=True).get(pk=person.pk)
    held, wanted = {role.name: role for role in person.groups.all()}, {role.name: role for role in roles}
    change = RoleChange([], [], [])
    for name in sorted(held.keys() - wanted.keys()):
        record_role(audit_events.ROLE_TAKEN, name, person, by, why)
        person.groups.remove(held[name])
        change.taken.append(name)
    if change.taken:
        require_an_administrator()
    for name in sorted(wanted.keys() - held.keys()):
        # Its permissions must not change before the person has it.
        right = AccountRight(role=Group.objects.select_for_update(no_key=True).get(pk=wanted[name].pk))
        if right.is_guarded:
            role_requests.request_role(person, right, by=by, why=why)
            change.requested.append(name)
        else:
            role_requests.require_administrator(by, right)
            record_role(audit_events.ROLE_GIVEN, name, person, by, why)
            right.give_to(person)
            change.given.append(name)
    return change


def record_role(event: audit.EventType, name: str, person: User, by: User, why: audit.Why) -> None:
    details = {"right": f"role {name}", **(why.details or {})}
    audit.record(event, by=by, target=person, reason_code=why.code, details=details)


@transaction.atomic
def switch_off(person: User, *, by: User, why: audit.Why) -> None:
    """Switches an account off: its sessions and links end, its roles stay. Raises OwnAccount and LastAdministrator."""
    if person.pk == by.pk:
        raise OwnAccount("You cannot switch off your own account. Ask another administrator.")
    lock_administrators()
    person = User.objects.select_for_update().get(pk=person.pk)
    if not person.is_active:
        return
    audit.record(audit_events.PERSON_SWITCHED_OFF, by=by, target=person, reason_code=why.code, details=why.details)
    invitations.end_links(person)
    person.is_active = False
    person.save(update_fields=["is_active"])
    require_an_administrator()


@transaction.atomic
def switch_on(person: User, *, by: User, why: audit.Why) -> list[AccountRight]:
    """Switches an account on; returns the rights that a second administrator has to confirm again.

    Raises RoleRequestRefused if `by` may not administer one of the rights.
    """
    person = User.objects.select_for_update().get(pk=person.pk)
    if person.is_active:
        return []
    audit.record(audit_events.PERSON_SWITCHED_ON, by=by, target=person, reason_code=why.code, details=why.details)
    person.is_active = True
    person.save(update_fields=["is_active"])
    return role_requests.take_and_request(person, by=by, why=why)


@transaction.atomic
def reset_second_factor(person: User, *, by: User, why: audit.Why) -> list[AccountRight]:
    """Resets the second factors of another person; returns the rights that a second administrator has to confirm again.

    Raises OwnSecondFactor, and RoleRequestRefused if `by` may not administer one of the rights.
    """
    taken = role_requests.request_again(person, by=by, why=why)
    user_actions.reset_second_factor(person, by=by, why=why)
    return taken


@transaction.atomic
def invite(person: User, *, by: User, is_mailed: bool, why: audit.Why) -> tuple[str, list[AccountRight]]:
    """The token of a new link to set the password, and the rights that a second administrator has to confirm again.

    Whoever sees the link could sign in with it. One that is only mailed leaves the rights as they are: nobody but the
    person gets it, and a change of the address takes them away itself. Raises OwnAccount, PersonError and
    RoleRequestRefused.
    """
    if person.pk == by.pk:
        raise OwnAccount("You change your own password on your account page.")
    person = User.objects.select_for_update().get(pk=person.pk)
    if not person.is_active:
        raise PersonError("This account is switched off. Switch it on first.")
    if is_mailed and not (settings.MAIL_SERVER and person.email):
        raise PersonError("No mail can be sent to this account. Show the link instead.")
    taken = [] if is_mailed else role_requests.request_again(person, by=by, why=why)
    return invitations.make_link(person, by=by, is_mailed=is_mailed), taken


def lock_administrators() -> None:
    """Locks the accounts of all administrators until the transaction ends: two of them must not remove each other."""
    list(administrators().order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))


def administrators() -> QuerySet[User]:
    """Active accounts that may change accounts."""
    return User.objects.with_perm(ADMINISTER)


def require_an_administrator() -> None:
    """Raises LastAdministrator if nobody is left who may change accounts and can sign in."""
    able = administrators()
    if not settings.OIDC_ISSUER:
        able = able.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    if not able.exists():
        raise LastAdministrator
