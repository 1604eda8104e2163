"""Approvals, with the password of the console's role alone: nobody decides in another person's name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.timezone import now

from memadmin.accounts.grants import services
from memadmin.accounts.models import Approval, ContentGrant
from memadmin.audit.models import AuditActor
from memadmin.deploy.roles import Roles
from tests.agents import run_sql
from tests.approvals import shown, without_triggers
from tests.deploy.connecting import connected_as, refusal
from tests.deploy.test_proven_actors import BELIEVING, SET
from tests.people import person

pytestmark = pytest.mark.django_db

CHANGE = "UPDATE accounts_approval SET {change} WHERE id = '{id}'"
APPROVE = CHANGE.replace("{change}", "decision = 'approved', decided_at = now(), decided_by_id = {officer}")
OPEN = "UPDATE accounts_contentgrant SET opened_at = now(), expires_at = now() + interval '1 hour' WHERE id = '{grant}'"


@pytest.fixture
def officer(ours: Roles) -> User:
    return person("compliance")


@pytest.fixture
def grant(ours: Roles) -> ContentGrant:
    return asked(person("support"))


def asked(by: User) -> ContentGrant:
    return services.request_grant(by=by, record_ids=[uuid4()], reason="incident", ticket="T-1")


@pytest.fixture
def attempts(grant: ContentGrant, officer: User) -> dict[str, str]:
    """Statements that would each give an approval that nobody gave, or use one for something else."""
    other = asked(officer)
    services.approve_grant(other, by=person("compliance", "support"), shown=shown(other))
    # As in every later transaction.
    with without_triggers():
        Approval.objects.filter(object_ref=other.pk).update(decided_at=now() - timedelta(minutes=1))
    assert grant.approval
    approval, reader = grant.approval, grant.requested_by_id
    names = {"id": approval.pk, "officer": officer.pk, "grant": grant.pk}

    def changed(change: str) -> str:
        return CHANGE.format(change=change, **names)

    return {
        "approve as an officer": APPROVE.format(**names),
        "approve as nobody": changed("decision = 'approved', decided_at = now()"),
        "say that nobody is needed": changed("decision = 'not_needed', decided_at = now()"),
        "reject as an officer": APPROVE.format(**names).replace("approved", "rejected"),
        "withdraw as the reader": APPROVE.format(**names | {"officer": reader}).replace("approved", "withdrawn"),
        "show something else": changed("digest = ''"),
        "approve something else": changed(f"object_ref = '{uuid4()}'"),
        "let it wait for ever": changed("expires_at = NULL"),
        "ask in another name": changed(f"asked_by_id = {officer.pk}"),
        "add one that is approved": "INSERT INTO accounts_approval (id, kind, object_ref, digest, decision, decided_at)"
        f" VALUES (gen_random_uuid(), 'grant', '{grant.pk}', '', 'approved', now())",
        "add one for a person": "INSERT INTO accounts_approval (id, kind, object_ref, digest, asked_by_id)"
        f" VALUES (gen_random_uuid(), 'grant', '{grant.pk}', '', {reader})",
        "open it without": OPEN.format(**names),
        "open it with that of another": f"UPDATE accounts_contentgrant SET approval_id = NULL WHERE id = '{other.pk}';"
        f" UPDATE accounts_contentgrant SET approval_id = '{other.approval_id}', opened_at = now(),"
        f" expires_at = now() + interval '1 hour' WHERE id = '{grant.pk}'",
        "review it as an officer": f"UPDATE accounts_contentgrant SET reviewed_by_id = {officer.pk}",
    }


@pytest.fixture
def as_web(ours: Roles) -> Iterator[None]:
    with transaction.atomic(), connected_as(ours["web"]):
        # As in a new connection: what this one proved before is not the attacker's.
        run_sql(SET.format("recorder", ""))
        yield


def test_nobody_decides_in_another_name(attempts: dict[str, str], as_web: None) -> None:
    allowed = [what for what, statement in attempts.items() if not refusal(statement)]
    assert allowed == []


def test_it_is_the_proof_that_holds_it(
    attempts: dict[str, str], officer: User, ours: Roles, grant: ContentGrant
) -> None:
    """The broken variant believes whoever sets the setting: then an officer has approved, and the grant opens."""
    ref = AuditActor.objects.get(user_id=officer.pk).ref
    run_sql(BELIEVING)
    assert grant.approval
    with connected_as(ours["web"]):
        run_sql(SET.format("recorder", f"person:{ref}"))
        for statement in (APPROVE, OPEN):
            run_sql(statement.format(id=grant.approval.pk, officer=officer.pk, grant=grant.pk))
    grant.refresh_from_db()
    assert grant.opened_at


def test_what_was_approved_once_does_not_open_again(ours: Roles, grant: ContentGrant, officer: User) -> None:
    services.approve_grant(grant, by=officer, shown=shown(grant))
    assert not refusal(OPEN.format(grant=grant.pk)), "the transaction that approved it may"
    # As in every later transaction.
    with without_triggers():
        Approval.objects.update(decided_at=now() - timedelta(minutes=1))
    with connected_as(ours["web"]):
        assert "second person" in refusal(OPEN.format(grant=grant.pk))
