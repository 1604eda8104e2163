"""Locked sessions, and the password of the console's role alone: it unlocks none, and gets no copy with them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from django.utils.timezone import now
from pytest_django.fixtures import Settings

from memadmin.accounts.models import Approval
from memadmin.deploy.roles import Roles
from memadmin.erasure import services as cases
from memadmin.erasure.access_copy import services as copies
from memadmin.erasure.access_copy.locked import approved_sessions
from memadmin.erasure.models import AccessCopy, SubjectRequest
from sessions_app.models import SessionRecord, UnlockRequest
from sessions_app.services import unlocking
from tests.agents import run_sql
from tests.approvals import shown, without_triggers
from tests.builders import make_session, make_subject
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.erasure.copies import checked_access
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
        with in_a_command():
            assert [what for what, statement in attempts.items() if not refusal(statement)] == []
        with proven(first):
            assert refusal(f"{forged}; {use}; {UNLOCK}")
            assert refusal(UNLOCK), "who acts has not decided"


def test_broken_variant_without_the_trigger_it_is_unlocked(ours: Roles, first: User) -> None:
    asked(first, locked_sessions())
    run_sql(BELIEVING)
    with connected_as(ours["web"]), in_a_command():
        assert not refusal(UNLOCK)


def test_the_web_server_unlocks_what_was_approved(ours: Roles, first: User, second: User) -> None:
    records = locked_sessions()
    with connected_as(ours["web"]):
        request = asked(first, records)
        unlocking.approve_unlocking(request, by=second, shown=shown(request))
    assert not SessionRecord.objects.filter(is_sensitive=True).exists()


# --- copies of a person's data ----------------------------------------------------------------------------------------


@pytest.fixture
def case(first: User, settings: Settings, tmp_path: Path) -> SubjectRequest:
    """An access request about somebody with a locked session, whose copy with it was asked for and rejected."""
    settings.ACCESS_COPY_FOLDER = tmp_path
    ada = make_subject("ada-1")
    make_session(subject=ada, is_sensitive=True)
    request = copies.request_full_copy(checked_access(ada, by=first), by=first)
    return cases.reject_request(request, by=first)


def allowed_in(copy: AccessCopy) -> int:
    """Number of locked sessions that a worker would put into the copy."""
    return len(approved_sessions(AccessCopy.objects.select_related("request__approval").get(pk=copy.pk)))


def forged_approval(case: SubjectRequest, decision: str) -> tuple[str, str]:
    """Id, and the statement that adds an approval of this request with the digest that somebody was shown."""
    new = str(uuid4())
    return new, (
        "INSERT INTO accounts_approval (id, kind, object_ref, digest, decision)"
        f" SELECT '{new}', kind, object_ref, digest, '{decision}' FROM accounts_approval"
        f" WHERE id = '{case.approval_id}'"
    )


def use_of(approval: str) -> str:
    return (
        f"UPDATE erasure_subjectrequest SET approval_id = '{approval}';"
        f" UPDATE erasure_accesscopy SET approval_id = '{approval}'"
    )


def test_with_the_password_alone_no_copy_has_locked_sessions(ours: Roles, first: User, case: SubjectRequest) -> None:
    with connected_as(ours["web"]):
        copy = copies.build_access_copy(case, by=first)
    with connected_as(ours["web"]), in_a_command():
        _, approve = forged_approval(case, "approved")
        assert refusal(approve)
        assert refusal(use_of(str(case.approval_id))), "it was rejected"
        assert "Only a worker" in refusal("UPDATE erasure_accesscopy SET locked = ARRAY[gen_random_uuid()]")
        new, unneeded = forged_approval(case, "not_needed")
        run_sql(f"{unneeded}; {use_of(new)}")
    with connected_as(ours["worker"]):
        assert allowed_in(copy) == 0
        with override_settings(GRANT_APPROVAL=False):
            assert allowed_in(copy) == 1, "the variant that believes the row"


def test_an_approval_is_not_used_for_another_copy(ours: Roles, first: User, second: User, case: SubjectRequest) -> None:
    with connected_as(ours["web"]):
        request = copies.request_full_copy(case, by=first)
        copy = copies.approve_full_copy(request, by=second, shown=shown(request))
        approval = copy.approval_id
    assert approval is not None
    assert allowed_in(copy) == 1
    again = "UPDATE erasure_accesscopy SET approval_id = NULL; " + use_of(str(approval))
    # As in every later transaction.
    with without_triggers():
        Approval.objects.filter(pk=approval).update(decided_at=now() - timedelta(minutes=1))
    with connected_as(ours["web"]), in_a_command():
        assert "second person" in refusal(again)
