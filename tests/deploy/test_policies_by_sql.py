"""Versions of retention policies, added by SQL as the web server: none starts that nobody else approved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin.accounts.models import Approval
from memadmin.deploy.roles import Roles
from memadmin.retention.models import PolicyVersion, RetentionPolicy
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.retention import policies


@pytest.mark.django_db
class TestSqlAsTheWebServer:
    """What whoever runs SQL as the web server cannot: let a version start that nobody else approved."""

    @pytest.fixture(autouse=True)
    def as_web(self, kept_in_force: Roles) -> Iterator[None]:
        self.version = policies.in_force("Chats", days=30)
        with connected_as(kept_in_force["web"]), in_a_command():
            yield

    def start(self, version: PolicyVersion, **columns: Any) -> None:
        with transaction.atomic():
            PolicyVersion.objects.filter(pk=version.pk).update(**{"starts_at": Now(), **columns})

    def add(self, **columns: Any) -> PolicyVersion:
        content: dict[str, Any] = {name: getattr(self.version, name) for name in PolicyVersion.CONTENT}
        content |= {"policy": self.version.policy, "number": 2, "needs_approval": False, **columns}
        return PolicyVersion.objects.create(**content)

    @pytest.mark.parametrize(
        "columns",
        [
            {"length_count": 29},
            {"clock": "created"},
            {"store": "main"},
            {"is_end": True},
            {"number": 1, "policy": None, "length_count": 400},
        ],
    )
    def test_what_could_take_more_does_not_start_without_approval(self, columns: dict[str, Any]) -> None:
        if "policy" in columns:
            columns = {**columns, "policy": RetentionPolicy.objects.create(name="new")}
        added = self.add(**columns)
        with pytest.raises(DatabaseError, match="another person approves it first"):
            self.start(added)
        assert list(PolicyVersion.objects.in_force().filter(policy=self.version.policy)) == [self.version]

    def test_what_surely_keeps_more_does_but_not_later(self) -> None:
        added = self.add(length_count=31)
        with pytest.raises(DatabaseError, match="another person approves it first"):
            self.start(added, starts_at=now() + timedelta(days=300))
        self.start(added)
        assert list(PolicyVersion.objects.in_force().filter(policy=self.version.policy)) == [added]

    @pytest.mark.parametrize("decision", ["", "void", "not_needed"])
    def test_an_approval_that_nobody_gave_starts_nothing(self, decision: str) -> None:
        added = self.add(length_count=1)
        first = decision if decision == "not_needed" else ""
        approval = Approval.objects.create(kind="policy_change", object_ref=added.pk, digest="", decision=first)
        Approval.objects.filter(pk=approval.pk, decision="").update(decision=decision)
        with pytest.raises(DatabaseError, match="another person approves it first"):
            self.start(added, approval=approval)

    def test_the_default_stays_the_default(self) -> None:
        for policy in RetentionPolicy.objects.all():
            assert "is never changed" in refusal(
                f"UPDATE retention_retentionpolicy SET is_default = NOT is_default WHERE id = '{policy.pk}'"
            )
