"""Retention policies about access copies: file and key go when their time is over."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from memadmin.audit.models import AuditEvent
from memadmin.erasure.access_copy import files
from memadmin.erasure.models import AccessCopy
from memadmin.retention.models import SweepResult
from memadmin.retention.policies.preview import preview
from memadmin.retention.policies.resolution import resolve
from memadmin.retention.policies.services import rules_in_force
from memadmin.retention.targets.base import target_named
from memadmin.runs.models import Run
from sessions_app.models import Subject, SubjectKind
from tests.builders import make_subject
from tests.erasure.copies import built_copy, started_copy
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import in_force, swept

pytestmark = pytest.mark.usefixtures("agent_tables")

READY, DELETED = AccessCopy.State.READY, AccessCopy.State.DELETED


@pytest.fixture
def officer() -> User:
    return person("compliance")


def made_days_ago(copy: AccessCopy, days: int) -> AccessCopy:
    AccessCopy.objects.filter(pk=copy.pk).update(created_at=copy.created_at - timedelta(days=days))
    copy.refresh_from_db()
    return copy


def state_of(copy: AccessCopy) -> str:
    copy.refresh_from_db()
    return copy.state


def old_and_young(officer: User) -> tuple[AccessCopy, AccessCopy]:
    old, young = (built_copy(make_subject(name), by=officer) for name in ("ada", "bob"))
    return made_days_ago(old, 4), made_days_ago(young, 2)


def a_policy(**columns: Any) -> None:
    in_force("Copies", days=3, target="exports", clock="created", **columns)


def test_an_old_copy_goes_with_its_file_and_key(officer: User) -> None:
    old, young = old_and_young(officer)
    gone, kept = files.file_of(old), files.file_of(young)
    a_policy()
    (rule,) = [rule for rule in rules_in_force() if rule.target == "exports"]
    assert preview(rule, rules_in_force()).rows == 1
    run = swept()
    assert run.state == Run.State.COMPLETE, run.reason
    assert (state_of(old), state_of(young)) == (DELETED, READY)
    assert bytes(old.key) == b""
    assert (gone.exists(), kept.exists()) == (False, True)
    assert SweepResult.objects.get().taken == 1
    event = AuditEvent.objects.get(type="access.copy_deleted")
    assert (event.object_ref, event.reason_code) == (old.request.id, "expired")


def test_a_hold_on_the_subject_keeps_the_copy(officer: User) -> None:
    old, _ = old_and_young(officer)
    hold = make_hold(Subject.objects.get(aliases__key="ada"), by=officer)
    a_policy()
    swept()
    assert state_of(old) == READY
    assert SweepResult.objects.get().held == 1
    resolution = resolve(target_named("exports").facts(old, [hold.number]), rules_in_force())
    assert not resolution.is_due(old.created_at + timedelta(days=100))


def test_a_copy_that_is_being_built_stays(officer: User) -> None:
    copy = made_days_ago(started_copy(make_subject("ada"), by=officer), 4)
    a_policy()
    swept()
    assert state_of(copy) == AccessCopy.State.BUILDING


def test_a_policy_about_a_kind_of_subject(officer: User) -> None:
    user = made_days_ago(built_copy(make_subject("ada"), by=officer), 4)
    tenant = made_days_ago(built_copy(make_subject("acme", kind=SubjectKind.TENANT), by=officer), 4)
    a_policy(subject_kind="tenant")
    swept()
    assert (state_of(user), state_of(tenant)) == (READY, DELETED)


def test_a_file_that_cannot_be_deleted_is_left_for_the_next_run(officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    old, _ = old_and_young(officer)
    a_policy()
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == files.file_of(old):
            raise PermissionError(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    swept()
    assert (state_of(old), SweepResult.objects.get().left) == (READY, {"file_kept": 1})
    monkeypatch.undo()
    swept()
    assert state_of(old) == DELETED
