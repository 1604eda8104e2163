"""What is locked, with the password of the console's role alone: nobody unlocks it, or gets a copy with it."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from memadmin.deploy.roles import Roles
from sessions_app.models import SessionRecord, UnlockRequest
from sessions_app.services import unlocking
from tests.agents import run_sql
from tests.approvals import shown
from tests.builders import make_session
from tests.deploy.connecting import connected_as, refusal
from tests.people import forget_proof, person, proven

pytestmark = pytest.mark.django_db

BELIEVING = """
CREATE OR REPLACE FUNCTION memadmin_require_unlocking() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RETURN NEW; END $$
"""


@pytest.fixture
def first(ours: Roles) -> User:
    return person("compliance")


@pytest.fixture
def second(ours: Roles) -> User:
    return person("compliance", "reviewer")


def locked_sessions() -> list[SessionRecord]:
    return [make_session(is_sensitive=True) for _ in range(2)]


def asked(by: User, records: list[SessionRecord]) -> UnlockRequest:
    return unlocking.request_unlocking([record.pk for record in records], reason="mistake", by=by)


UNLOCK = "UPDATE sessions_app_sessionrecord SET is_sensitive = false"


def test_with_the_password_alone_nothing_is_unlocked(ours: Roles, first: User) -> None:
    request = asked(first, locked_sessions())
    new = uuid4()
    add = (
        "INSERT INTO accounts_approval (id, kind, object_ref, digest, decision{columns})"
        f" VALUES ('{new}', 'unlocking', '{request.pk}', '', '{{decision}}'{{values}})"
    )
    use = f"UPDATE sessions_app_unlockrequest SET approval_id = '{new}'"
    unneeded = add.format(columns="", decision="not_needed", values="")
    forged = add.format(columns="", decision="approved", values="")
    attempts = {
        "unlock": UNLOCK,
        "with an approval that nobody gave": f"{forged}; {use}; {UNLOCK}",
        "with one that needs nobody": f"{unneeded}; {use}; {UNLOCK}",
        "in another name": f"UPDATE accounts_approval SET decision = 'approved', decided_by_id = {first.pk}; {UNLOCK}",
        "with a request of its own": "INSERT INTO sessions_app_unlockrequest (id, sessions, reason, purpose)"
        f" SELECT gen_random_uuid(), array_agg(id), 'legal', '' FROM sessions_app_sessionrecord; {UNLOCK}",
        "say that it was unlocked": "UPDATE sessions_app_unlockrequest SET unlocked_at = now()",
        "unlock the store": "UPDATE sessions_app_sessionstore SET is_sensitive = false",
        "take the store away": "DELETE FROM sessions_app_sessionstore",
    }
    run_sql("UPDATE sessions_app_sessionstore SET is_sensitive = true")
    forget_proof()
    with connected_as(ours["web"]):
        assert [what for what, statement in attempts.items() if not refusal(statement)] == []
        with proven(first):
            assert refusal(f"{forged}; {use}; {UNLOCK}")
            assert refusal(UNLOCK), "who acts has not decided"


def test_broken_variant_without_the_trigger_it_is_unlocked(ours: Roles, first: User) -> None:
    asked(first, locked_sessions())
    run_sql(BELIEVING)
    forget_proof()
    with connected_as(ours["web"]):
        assert not refusal(UNLOCK)


def test_the_web_server_unlocks_what_was_approved(ours: Roles, first: User, second: User) -> None:
    records = locked_sessions()
    with connected_as(ours["web"]):
        request = asked(first, records)
        unlocking.approve_unlocking(request, by=second, shown=shown(request))
    assert not SessionRecord.objects.filter(is_sensitive=True).exists()
