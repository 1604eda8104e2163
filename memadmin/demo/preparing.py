"""Preparation of the demo's database. Every step is idempotent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, aclosing
from datetime import timedelta
from io import StringIO
from typing import TypeAlias

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.utils.timezone import now

from memadmin import environment, migrating
from memadmin.demo import agents, cases, expiring, remembering, sealing, talks
from memadmin.demo.stories.support import WHERE_IS_MY_ORDER
from memadmin.deploy.roles import Roles
from memadmin.home.day_counts import count_days
from memadmin.retention.holds.services import place_hold
from memadmin.retention.models import LegalHold
from sessions_app import registry
from sessions_app.encryption import keyring
from sessions_app.models import SessionRecord, SessionStore, SubjectKind
from sessions_app.services import patterns
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.store_config import declare_store
from sessions_app.stores.sqlalchemy.engine import open_agent_tables

PATTERNS = {"tickets": "customer_{subject}:ticket_{ticket}", "bots": "{agent}:{subject}"}


KEY_NAME = "demo"

SECOND_OFFICER = "compliance-2"

ROLES = Roles() if settings.DATABASES["default"]["ENGINE"] == "memadmin.embedded" else None


LOCK = 0x64656D6F
"""PostgreSQL advisory lock of the process that prepares a demo."""


Step: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""A block that is reported by its name when it begins, and with its seconds when it ends."""


class NameTaken(Exception):
    """A user of this name exists already, and the demo must not change their password."""


def wait_for_turn() -> None:
    """Waits while another demo prepares the same database and folder; the turn lasts until the connection is closed."""
    migrating.take_turn(connection, LOCK)


def prepare(password: str, step: Step) -> list[str]:
    """Tables, stores and logins; returns the names that can sign in with `password`. Raises NameTaken."""
    with step("Tables"):
        call_command("migrate", verbosity=0, interactive=False)
        asyncio.run(_create_agent_tables())
    with step("Static files"):
        call_command("collectstatic", verbosity=0, interactive=False)
    with step("Logins and stores"):
        names = make_logins(password)
        store = declare_store(registry.MAIN_STORE, agent_roles=[role] if (role := role_of("agents")) else [])
        attach_store(store)
        others = talks.connect()
        hand_over_key([store, *(each for each, place in zip(others, talks.PLACES, strict=True) if place.is_sealed)])
        for each in (store, *others):
            add_patterns(each)
        if ROLES:
            call_command("db_roles", apply=True, stdout=StringIO())
    return names


def hand_over_key(stores: Iterable[SessionStore]) -> None:
    """Gives this process and its child processes the key of the demo bots, unless other keys are configured."""
    if not settings.SESSION_KEYS:
        sealing.session_key()
        os.environ["MEMADMIN_KEYRING"] = KEY_NAME
        os.environ[f"MEMADMIN_SESSION_KEY_{KEY_NAME.upper()}_FILE"] = str(sealing.session_key_path())
        settings.SESSION_KEYS = environment.named_secrets("MEMADMIN_KEYRING", "MEMADMIN_SESSION_KEY")
    if keyring().get(KEY_NAME):
        administrator = User.objects.get(username="administrator")
        for store in stores:
            if not store.encryption_key:
                declare_encryption(store, key=KEY_NAME, ttl=sealing.TEN_YEARS, by=administrator)


def role_of(kind: str) -> str:
    """The database role of a part of the demo; empty on an external database, which has its own roles."""
    return ROLES[kind] if ROLES else ""


async def _create_agent_tables() -> None:
    async with aclosing(open_agent_tables()) as tables:
        await tables.create_missing()


def make_logins(password: str) -> list[str]:
    """One user for each role, with the same name and only this role, and a second compliance officer.

    Raises NameTaken.
    """
    logins = {role.name: role for role in Group.objects.order_by("name")}
    if officers := logins.get("compliance"):
        # What one requests, another approves.
        logins[SECOND_OFFICER] = officers
    people = {person.username: person for person in User.objects.filter(username__in=logins)}
    # Hashing is slow by design, so it runs once: the users share a password and may share its hash.
    known = {person.password for person in people.values()}
    hashed = next((each for each in known if check_password(password, each)), None) or make_password(password)
    for name, role in sorted(logins.items()):
        email = f"{name}@demo.invalid"
        person = people.get(name) or User(username=name, email=email)
        if person.email != email:
            raise NameTaken(
                f"A user named {name} already exists, and the demo does not change that user's password."
                " Use another database, or rename the user."
            )
        if person.password != hashed:
            person.password = hashed
            person.save()
        person.groups.set([role])
    return sorted(logins)


def add_patterns(store: SessionStore) -> None:
    """Declares the id patterns of the demo agents' sessions, unless there are patterns already."""
    if not store.patterns.exists():
        administrator = User.objects.get(username="administrator")
        for name, text in PATTERNS.items():
            patterns.add_pattern(store, name=name, text=text, subject_kind=SubjectKind.USER, by=administrator)


def tell_stories(step: Step) -> int:
    """Plays the demo conversations that are not stored yet; returns their number."""
    with step("Conversations of demo agents"):
        count = len(agents.run_all(role=role_of("agents")))
    with step("Conversations in other stores"), remembering.reached(role_of("agents")):
        count += talks.tell()
        if count:
            # The worker would discover those in files half a minute later.
            discover_sessions()
    with step("Holds, requests and policies"):
        hold_a_session()
        cases.open_cases(role=role_of("agents"))
        expiring.keep_policies(role=role_of("agents"))
    with step("Charts"):
        # The worker counts only every few minutes, and the first page has charts.
        count_days()
    return count


def hold_a_session() -> None:
    """Places a legal hold on one session, unless there is any hold."""
    record = SessionRecord.objects.on_record().filter(session_id=WHERE_IS_MY_ORDER.session_id).first()
    if record and not LegalHold.objects.exists():
        officer, review_on = User.objects.get(username="compliance"), now().date() + timedelta(days=60)
        reason = "Chargeback 2026-5512, letter of 20 November"
        place_hold(record, reason=reason, owner=officer, review_on=review_on, by=officer)
