"""View models of accounts: state, second factors, open sessions, and the permissions of each role."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db.models import QuerySet, prefetch_related_objects
from django.utils.timezone import now

from memadmin.accounts import open_sessions
from memadmin.accounts.models import Invitation, RoleRequest
from memadmin.accounts.roles import ROLES
from memadmin.web.help.rights import rights_of

FACTOR_WORDS = {Authenticator.Type.TOTP: "app", Authenticator.Type.WEBAUTHN: "passkey"}

DUTIES = {
    "support": "Reads content, attaches sessions to subjects, asks for access to locked sessions.",
    "reviewer": "Reads content; approves, edits and rejects proposed memories.",
    "compliance": "Erases, places holds, changes retention, decides on access, reads the log.",
    "auditor": "Reads, verifies and exports the audit log, and sees accounts. No content.",
    "administrator": "Manages accounts and stores. No content.",
}
"""The work of each role, in a sentence or two."""


@dataclass(frozen=True, slots=True)
class PersonState:
    """State of an account as a badge."""

    colour: str
    symbol: str
    word: str


OFF = PersonState("secondary", "ban", "switched off")
CHANGING = PersonState("yellow", "user-check", "role change")
EXPIRED = PersonState("orange", "mail", "link expired")
INVITED = PersonState("blue", "mail", "invited")
NEVER = PersonState("secondary", "clock", "never signed in")
ACTIVE = PersonState("green", "check", "active")


@dataclass(frozen=True, slots=True)
class PersonRow:
    """An account with what a row shows."""

    user: User
    factors: list[str]
    open_count: int
    state: PersonState
    roles: list[str] = field(default_factory=list)


def rows_of(people: Sequence[User]) -> list[PersonRow]:
    """The accounts, in their order. Six queries, however many there are."""
    prefetch_related_objects(people, "groups")
    keys = [person.pk for person in people]
    factors: dict[int, list[str]] = defaultdict(list)
    for factor in factors_of(keys).order_by("created_at", "pk"):
        factors[factor.user_id].append(FACTOR_WORDS.get(factor.type, factor.type))
    changing = set(
        RoleRequest.objects.awaiting_decision(now()).filter(person__in=keys).values_list("person_id", flat=True)
    )
    unused = Invitation.objects.filter(person__in=keys, used_at__isnull=True)
    links = dict(unused.order_by("expires_at").values_list("person_id", "expires_at"))
    open_counts = open_sessions.count_open(people)
    return [
        PersonRow(
            person,
            factors=list(dict.fromkeys(factors[person.pk])),
            open_count=open_counts[person.pk],
            state=state_of(person, is_changing=person.pk in changing, link_until=links.get(person.pk)),
            roles=sorted(role.name for role in person.groups.all()),
        )
        for person in people
    ]


def state_of(person: User, *, is_changing: bool, link_until: datetime | None) -> PersonState:
    if not person.is_active:
        return OFF
    if is_changing:
        return CHANGING
    if person.last_login:
        return ACTIVE
    if link_until:
        return INVITED if link_until > now() else EXPIRED
    return NEVER


def factors_of(people: Any) -> QuerySet[Authenticator]:
    """Second factors of an account, or of several; recovery codes are none."""
    condition = {"user__in": people} if isinstance(people, list) else {"user": people}
    found: QuerySet[Authenticator] = Authenticator.objects.filter(**condition)
    return found.exclude(type=Authenticator.Type.RECOVERY_CODES)


@dataclass(frozen=True, slots=True)
class RightsGroup:
    """Permissions of one area."""

    title: str
    rights: list[tuple[str, tuple[bool, ...]]]
    """Each in words, with whether each role has it, in the order of `ROLES`."""


AREAS = {
    "sessions_app": "Conversations and stores",
    "memories_app": "Memories",
    "erasure": "Requests of people",
    "retention": "Retention and holds",
    "audit": "Audit log",
    "runs": "Runs",
    "accounts": "Accounts",
    "auth": "Accounts",
}


def role_table() -> list[RightsGroup]:
    """Permissions of `roles.py` by area, and the roles of this database that have them.

    One query.
    """
    permissions = list(dict.fromkeys(permission for permissions in ROLES.values() for permission in permissions))
    order = list(AREAS)
    permissions.sort(key=lambda permission: order.index(permission.split(".")[0]))
    groups: dict[str, dict[tuple[str, tuple[bool, ...]], list[str]]] = {}
    for permission, right in zip(permissions, rights_of(permissions), strict=True):
        app, codename = permission.split(".")
        verb = codename.partition("_")[0]
        has_it = tuple(role in right.roles for role in ROLES)
        is_of_django = verb in VERBS and right.label.lower().startswith(f"{verb} ")
        thing = right.label.partition(" ")[2] if is_of_django else right.label
        verbs = groups.setdefault(AREAS[app], {}).setdefault((thing, has_it), [])
        if is_of_django:
            verbs.append(verb)
    return [
        RightsGroup(title, [(in_words(thing, verbs), has_it) for (thing, has_it), verbs in rights.items()])
        for title, rights in groups.items()
    ]


VERBS = ("view", "add", "change", "delete")
"""Django's own permissions of a model, of which one line is enough where the same roles have them."""


def in_words(thing: str, verbs: Sequence[str]) -> str:
    """A permission in words, or several of one model: "View, add and change subject"."""
    if not verbs:
        return thing
    *others, last = sorted(verbs, key=VERBS.index)
    words = " ".join(filter(None, [", ".join(others), "and" if others else "", last, thing]))
    return words[:1].upper() + words[1:]  # `capitalize` would make "ID" small
