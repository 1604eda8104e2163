"""Approvals, with the password of the console's role alone: nobody decides in another person's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.timezone import now

from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.grants import services as grants
from memadmin.accounts.models import Approval, ContentGrant
from memadmin.audit.models import AuditActor
from memadmin.deploy.roles import Roles
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.retention.holds.services import request_release
from memadmin.retention.models import LegalHold, PolicyVersion
from memadmin.runs.services import request_run
from sessions_app.models import UnlockRequest
from sessions_app.services.unlocking import request_unlocking
from tests.agents import run_sql, value_of
from tests.approvals import shown, without_triggers
from tests.builders import make_session, make_subject
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.deploy.test_proven_actors import BELIEVING, SET
from tests.erasure.batches import awaiting_batch, csv_of
from tests.erasure.builders import awaiting
from tests.people import person
from tests.retention import policies
from tests.retention.builders import make_hold

pytestmark = pytest.mark.django_db

CHANGE = "UPDATE accounts_approval SET {change} WHERE id = '{id}'"
APPROVE = CHANGE.replace("{change}", "decision = 'approved', decided_at = now(), decided_by_id = {officer}")
ADD = (
    "INSERT INTO accounts_approval (id, kind, object_ref, digest{columns})"
    " VALUES ('{new}', '{kind}', '{about}', ''{values})"
)


@dataclass(frozen=True)
class Case:
    """A kind of approvals."""

    table: str
    effect: str
    """SQL that sets the column that takes the approval."""
    ask: Callable[[User], Any]
    names: Mapping[str, str] = field(default_factory=dict)
    """What other columns say that name who decided: statements with {table} and {officer}."""

    @property
    def column(self) -> str:
        return self.effect.partition(" ")[0]


def asked_grant(by: User) -> ContentGrant:
    return grants.request_grant(by=by, record_ids=[uuid4()], reason="incident", ticket="T-1")


def approve_grant(grant: ContentGrant, by: User) -> object:
    return grants.approve_grant(grant, by=by, shown=shown(grant))


def asked_release(by: User) -> LegalHold:
    return request_release(make_hold("dispute", by=by), reason="settled", by=by)


def asked_change(by: User) -> PolicyVersion:
    return policies.proposed(policies.in_force("Chats", days=365), by=by)


def asked_erasure(by: User) -> SubjectRequest:
    request_run("erasure", by=by)
    return awaiting(make_subject(uuid4().hex), by=by)


def asked_batch(by: User) -> RequestBatch:
    key = uuid4().hex
    make_subject(key)
    return awaiting_batch(csv_of(key), by=by)


def asked_unlocking(by: User) -> UnlockRequest:
    return request_unlocking([make_session(is_sensitive=True).pk], reason="mistake", by=by)


CASES = {
    "grant": Case(
        "accounts_contentgrant",
        "opened_at = now(), expires_at = now() + interval '1 hour'",
        asked_grant,
        names={"review it as an officer": "UPDATE {table} SET reviewed_by_id = {officer}"},
    ),
    "erasure": Case(
        "erasure_subjectrequest",
        "starts_at = now(), state = 'approved'",
        asked_erasure,
        names={
            "start without a time to cancel": "UPDATE {table} SET state = 'approved',"
            " run_id = (SELECT id FROM runs_run LIMIT 1)"
        },
    ),
    "erasure_batch": Case("erasure_requestbatch", "starts_at = now(), state = 'approved'", asked_batch),
    "unlocking": Case("sessions_app_unlockrequest", "unlocked_at = now()", asked_unlocking),
    "hold_release": Case("retention_legalhold", "released_at = now()", asked_release),
    "policy_change": Case(
        "retention_policyversion",
        "starts_at = now()",
        asked_change,
        names={"stop it as an officer": "UPDATE {table} SET closed_by_id = {officer}, closed_at = now()"},
    ),
}


@pytest.fixture(params=CASES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def case(kind: str) -> Case:
    return CASES[kind]


@pytest.fixture
def officer(ours: Roles) -> User:
    return person("compliance")


@pytest.fixture
def about(ours: Roles, case: Case) -> Any:
    return case.ask(person("support"))


def taking_effect(about: Any, case: Case, *, approval: object = None) -> str:
    using = f"approval_id = '{approval}', " if approval else ""
    return f"UPDATE {case.table} SET {using}{case.effect} WHERE id = '{about.id}'"


@pytest.fixture
def attempts(about: Any, case: Case, kind: str, officer: User) -> dict[str, str]:
    """Statements that would each give an approval that nobody gave, or use one for something else."""
    other = asked_grant(officer)
    approve_grant(other, person("compliance", "support"))
    asker, new = about.approval.asked_by_id, uuid4()
    names = {"id": about.approval.pk, "officer": officer.pk, "table": case.table}
    added = {"new": new, "kind": kind, "about": about.id}

    def changed(change: str) -> str:
        return CHANGE.format(change=change, **names)

    found = {
        "approve as an officer": APPROVE.format(**names),
        "approve as nobody": changed("decision = 'approved', decided_at = now()"),
        "say that nobody is needed": changed("decision = 'not_needed', decided_at = now()"),
        "reject as an officer": APPROVE.format(**names).replace("approved", "rejected"),
        "withdraw as the asker": APPROVE.format(**names | {"officer": asker}).replace("approved", "withdrawn"),
        "show something else": changed("digest = ''"),
        "approve something else": changed(f"object_ref = '{uuid4()}'"),
        "let it wait for longer": changed("expires_at = now() + interval '9 years'"),
        "ask in another name": changed(f"asked_by_id = {officer.pk}"),
        "add one that is approved": ADD.format(columns=", decision, decided_at", values=", 'approved', now()", **added),
        "add one for a person": ADD.format(columns=", asked_by_id", values=f", {asker}", **added),
        "let it take effect without": taking_effect(about, case),
        "let it take effect with that of another": "UPDATE accounts_contentgrant SET approval_id = NULL"
        f" WHERE id = '{other.id}'; {taking_effect(about, case, approval=other.approval_id)}",
        **{what: statement.format(**names) for what, statement in case.names.items()},
    }
    if kind not in ("grant", "unlocking"):
        # Whether these need a second person is a setting. Each use of a grant asks for it, and the trigger of a session
        # that is unlocked for the person who acts.
        unneeded = ADD.format(columns=", decision", values=", 'not_needed'", **added)
        found["let it take effect with one that needs nobody"] = (
            f"{unneeded}; {taking_effect(about, case, approval=new)}"
        )
    return found


@pytest.fixture
def as_web(ours: Roles) -> Iterator[None]:
    """As an actor who has decided nothing."""
    with transaction.atomic(), connected_as(ours["web"]), in_a_command():
        yield


def test_nobody_decides_in_another_name(attempts: dict[str, str], as_web: None) -> None:
    allowed = [what for what, statement in attempts.items() if not refusal(statement)]
    assert allowed == []


def test_it_is_the_proof_that_holds_it(
    attempts: dict[str, str], officer: User, ours: Roles, about: Any, case: Case
) -> None:
    """The broken variant believes whoever sets the setting: then an officer has approved, and it takes effect."""
    ref = AuditActor.objects.get(user_id=officer.pk).ref
    run_sql(BELIEVING)
    with connected_as(ours["web"]):
        run_sql(SET.format("recorder", f"person:{ref}"))
        run_sql(attempts["approve as an officer"])
        run_sql(taking_effect(about, case))
    assert value_of(f"SELECT {case.column} FROM {case.table} WHERE id = '{about.id}'")


def test_what_was_approved_once_does_not_take_effect_again(ours: Roles, about: Any, officer: User, case: Case) -> None:
    with approvals.deciding(about, by=officer):
        approvals.approve(about, by=officer, shown=shown(about))
    # As in every later transaction.
    with without_triggers():
        Approval.objects.filter(pk=about.approval_id).update(decided_at=now() - timedelta(minutes=1))
    with connected_as(ours["web"]), in_a_command():
        assert re.search("(second|another) person", refusal(taking_effect(about, case)))
    with without_triggers():
        Approval.objects.filter(pk=about.approval_id).update(decided_at=now())
    with connected_as(ours["web"]), in_a_command():
        assert not refusal(taking_effect(about, case)), "the transaction that approved it may"
