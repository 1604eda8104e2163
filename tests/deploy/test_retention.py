"""Retention under the roles of production: people change policies as the web server, and the worker sweeps."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, ProgrammingError, transaction
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.models import AuditDetail
from memadmin.deploy.roles import Roles
from memadmin.erasure.models import AccessCopy
from memadmin.retention.models import PolicyVersion, SweepResult
from memadmin.retention.policies import services
from memadmin.retention.targets.audit_details import AuditDetailTarget
from memadmin.runs.models import Run
from memories_app.models import Evidence, Memory, Recall, RecalledMemory, Signal
from sessions_app.models import SessionFinding, SessionRecord
from tests.agents import add_items, attach_main_store, run_sql, value_of
from tests.builders import make_subject
from tests.deploy.connecting import bring_into_force, logged_in_as
from tests.erasure.copies import built_copy
from tests.memories.builders import approved as approved_memory
from tests.people import person
from tests.retention import policies
from tests.retention.policies import age, swept

POLICY = """
[[policy]]
name = "Chats"
target = "sessions"
action = "delete"
length = "30 days"
"""


def a_policy_of_each_kind() -> None:
    for target, clock, action in (
        ("sessions", "last_activity", "delete"),
        ("items", "written", "delete"),
        ("memories", "created", "delete"),
        ("proposals", "created", "delete"),
        ("signals", "created", "delete"),
        ("recalls", "created", "delete"),
        ("audit_details", "created", "delete"),
        ("exports", "created", "delete"),
    ):
        policies.in_force(target, target=target, clock=clock, action=action)
    policies.in_force("re-validate", days=10, target="memories", kind="fact", clock="decided", action="revalidate")


@pytest.mark.django_db(transaction=True)
def test_the_worker_sweeps_what_policies_can_be_about(agent_tables: None, in_force: Roles) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    add_items("old", *(f"item {number}" for number in range(150)))
    age("old", timedelta(days=40))
    add_items("young", "text")
    record = SessionRecord.objects.get(session_id="old")
    kept, gone = approved_memory("likes tea"), approved_memory("likes milk", kind="preference")
    Evidence.objects.create(memory=kept, record_id=record.pk, session_id="old", item_id="1", quote="tea")
    Signal.objects.create(record_id=record.pk, session_id="old", kind="preference", text="tea")
    Signal.objects.create(kind="preference", text="old")
    recall = Recall.objects.create(record_id=record.pk, session_id="old")
    RecalledMemory.objects.create(recall=recall, memory=gone, version=1, place=1)
    SessionFinding.objects.create(record_id=record.pk, session_id="old", kind="orphan", item_id="1")
    run_sql("UPDATE memories_app_signal SET created_at = now() - interval '40 days' WHERE text = 'old'")
    run_sql("UPDATE memories_app_recall SET recalled_at = now() - interval '40 days'")
    Memory.objects.filter(pk=gone.pk).update(proposed_at=now() - timedelta(days=40))
    Memory.objects.filter(pk=kept.pk).update(decided_at=now() - timedelta(days=20))
    copy = built_copy(make_subject("ada"), by=person("compliance"))
    AccessCopy.objects.update(created_at=now() - timedelta(days=40))
    a_policy_of_each_kind()
    bring_into_force(in_force)
    with logged_in_as(in_force["worker"]), audit.acting(audit.Actor("job", "work")):
        run = swept()
        details = AuditDetail.objects.filter(pk__in=AuditDetail.objects.values("pk")[:2])
        rule = PolicyVersion.objects.get(target="audit_details").rule()
        assert AuditDetailTarget().expire(rule, details) == {"audit_detail": 2}
    assert run.state == Run.State.COMPLETE, run.reason
    assert {result.state for result in SweepResult.objects.all()} == {"done"}
    assert value_of("SELECT string_agg(DISTINCT session_id, ',') FROM agent_messages") == "young"
    assert SessionRecord.objects.get().session_id == "young"
    assert list(Memory.objects.values_list("statement", "status")) == [("likes tea", "needs_revalidation")]
    assert Evidence.objects.get().quote == ""
    copy.refresh_from_db()
    assert (copy.state, bytes(copy.key)) == (AccessCopy.State.DELETED, b"")
    for model in (Signal, Recall, RecalledMemory, SessionFinding):
        assert not model.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_web_server_changes_policies_and_the_worker_cannot(
    agent_tables: None, in_force: Roles, tmp_path: Path
) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    attach_main_store(agent_roles=[in_force["agents"]])
    file = tmp_path / "policies.toml"
    file.write_text(POLICY)
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]):
        call_command("retention_policies", "import", str(file), reason="contract", by=officer.username)
        version = policies.approve_change(PolicyVersion.objects.awaiting().get(), by=second, confirmation="Chats")
        services.stop_change(version, reason="not yet", by=officer)
    with logged_in_as(in_force["worker"]):
        with pytest.raises(ProgrammingError, match="permission denied"):
            services.propose_policy("Other", {"target": "sessions"}, reason="", by=None)
        with pytest.raises(ProgrammingError, match="permission denied"):
            PolicyVersion.objects.update(closing_reason="no more")


@pytest.mark.django_db(transaction=True)
def test_an_old_snapshot_lets_nothing_start(in_force: Roles) -> None:
    """A transaction that began before a longer version was in force would compare with the one before it."""
    version = policies.in_force("Chats", days=30)
    content: dict[str, Any] = {name: getattr(version, name) for name in PolicyVersion.CONTENT}
    added = PolicyVersion.objects.create(policy=version.policy, number=2, needs_approval=False, **content)
    bring_into_force(in_force)
    with logged_in_as(in_force["web"]), transaction.atomic():
        run_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(DatabaseError, match="READ COMMITTED"), transaction.atomic():
            PolicyVersion.objects.filter(pk=added.pk).update(starts_at=Now())
