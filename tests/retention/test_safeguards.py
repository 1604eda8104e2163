"""What keeps a sweep from taking what nobody decided about: questions, minimums, people, and SQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin.audit.models import AuditDetail, AuditEvent
from memadmin.retention.models import PolicyVersion, SweepResult
from memadmin.retention.policies.comparing import could_take_more
from memadmin.retention.policies.lengths import Length, Unit
from memadmin.retention.policies.resolution import resolve
from memadmin.retention.policies.rules import Action
from memadmin.retention.policies.services import needs_typing, stop_change
from memadmin.retention.sweep import starting
from memadmin.retention.sweep.starting import request_sweep
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows
from memadmin.runs.engine import Lease, carry_on
from memadmin.runs.models import Run
from memadmin.runs.services import InvalidRunState, resume_run
from sessions_app.models import SessionRecord
from tests.agents import add_items, attach_main_store, value_of
from tests.builders import make_session, make_store
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force, proposed


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def unexpected(agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> PolicyVersion:
    """A policy that would take far more than its approved preview said: three sessions, and any more is too many."""
    monkeypatch.setattr(starting, "SLACK", 0)
    attach_main_store()
    for number in range(3):
        add_items(f"old {number}", "text")
        age(f"old {number}", timedelta(days=40))
    return in_force("Chats", days=30, preview={"rows": 0, "places": [{"place": "main", "rows": 0}]})


class TestQuestion:
    def test_a_worker_that_is_killed_while_it_asks_leaves_the_question(
        self, unexpected: PolicyVersion, officer: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as killed:
            killed.setattr(Lease, "stop", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                carry_on(request_sweep())
        run = carry_on(request_sweep())
        assert run.state == Run.State.STOPPED
        assert "were expected" in run.reason
        assert value_of("SELECT count(*) FROM agent_messages") == 3
        assert carry_on(resume_run(run, by=officer)).state == Run.State.COMPLETE
        assert value_of("SELECT count(*) FROM agent_messages") == 0

    def test_only_who_approves_changes_answers_it(self, unexpected: PolicyVersion, officer: User) -> None:
        run = carry_on(request_sweep())
        with pytest.raises(InvalidRunState):
            resume_run(run, by=person("administrator"))
        assert not SweepResult.objects.filter(has_asked=True).exists()
        resume_run(run, by=officer)
        assert SweepResult.objects.filter(has_asked=True).count() == 1

    def test_other_policies_do_not_wait_for_the_answer(self, unexpected: PolicyVersion) -> None:
        add_items("labelled", "text")
        age("labelled", timedelta(days=40))
        SessionRecord.objects.filter(session_id="labelled").update(labels=["short"])
        in_force("Short", days=10, label="short")
        run = carry_on(request_sweep())
        assert run.state == Run.State.STOPPED
        assert not SessionRecord.objects.filter(session_id="labelled").exists()
        assert value_of("SELECT count(*) FROM agent_messages") == 3

    def test_what_came_into_force_at_once_is_compared_with_the_version_before(self, unexpected: PolicyVersion) -> None:
        run = Run.objects.create(kind="retention", state=Run.State.COMPLETE, ended_at=now())
        SweepResult.objects.create(run=run, version=unexpected, place="main", backlog=0, forecast=1)
        in_force(policy=unexpected.policy, days=35)
        assert carry_on(request_sweep()).state == Run.State.STOPPED


class TestWhatNeedsASecondPerson:
    """A policy that redacts or re-validates first hides a deletion of its level: without it, that comes."""

    @pytest.mark.django_db
    @pytest.mark.parametrize("change", [{"length": Length(90, Unit.DAYS)}, {"action": Action.KEEP, "length": None}])
    def test_what_uncovers_a_deletion(self, change: dict[str, Any]) -> None:
        old = in_force("Redact", days=30, target="items", clock="written", action="redact").rule()
        deletion = in_force("Delete", days=60, target="items", clock="written").rule()
        new = replace(old, **change)
        facts = target_named("items").facts(make_session(registered_at=now() - timedelta(days=70)))
        assert resolve(facts, [old, deletion]).action == Action.REDACT
        assert resolve(facts, [new, deletion]).action == Action.DELETE
        assert could_take_more(old, new)

    @pytest.mark.django_db
    def test_a_minimum_alone_does_not(self) -> None:
        old = in_force("Redact", days=30, target="items", clock="written", action="redact").rule()
        assert not could_take_more(old, replace(old, minimum=Length(40, Unit.DAYS), reference="law"))

    @pytest.mark.django_db
    def test_what_could_not_be_counted_is_confirmed_by_typing(self) -> None:
        place = {"place": "main", "rows": 1, "is_complete": False}
        version = in_force("Items", days=30, target="items", clock="written", preview={"rows": 1, "places": [place]})
        for _ in range(50):
            make_session()
        assert needs_typing(version)
        version.preview["places"][0]["is_complete"] = True
        assert not needs_typing(version)


@pytest.mark.django_db
def test_a_minimum_of_sessions_keeps_their_items() -> None:
    record = make_session(
        store=make_store("main"), registered_at=now() - timedelta(days=100), last_activity_at=now() - timedelta(days=90)
    )
    items = in_force("Items", days=30, target="items", clock="written").rule()
    assert set(DueRows.now().due(items)) == {record}
    in_force("Law", days=None, action="keep", minimum_count=10, minimum_unit="years", minimum_reference="§ 147 AO")
    due = DueRows.now()
    assert not due.due(items).exists()
    resolution = resolve(target_named("items").facts(record), due.rules)
    assert resolution.minimum is not None
    assert resolution.minimum.rule.name == "Law"
    assert not resolution.is_due(now())


@pytest.mark.django_db
def test_details_about_a_session_with_a_held_label_stay(officer: User) -> None:
    held, free = make_session(labels=["case-17"]), make_session()
    make_hold("case-17", by=officer)
    target = target_named("audit_details")
    for record in (held, free):
        SessionRecord.objects.filter(pk=record.pk).update(ticket="T-1")
    events = AuditEvent.objects.filter(object_ref__in=[held.pk, free.pk], detail__isnull=False)
    assert {event.object_ref for event in events} == {held.pk, free.pk}
    kept = AuditDetail.objects.filter(target.held()).values_list("event__object_ref", flat=True)
    assert held.pk in kept
    assert free.pk not in kept


MINIMUM: dict[str, Any] = {"minimum_unit": "years", "minimum_reference": "law"}

CONTENTS: list[dict[str, Any]] = [
    *(
        {"days": count, "length_unit": unit}
        for count, unit in ((27, "days"), (28, "days"), (31, "days"), (366, "days"))
    ),
    *(
        {"days": count, "length_unit": unit}
        for count, unit in ((1, "months"), (12, "months"), (1, "years"), (2, "years"))
    ),
    {"days": 372, "length_unit": "days"},
    {"days": None, "action": "keep"},
    {"days": None, "action": "keep", "minimum_count": 1, **MINIMUM},
    {"days": None, "action": "keep", "minimum_count": 2, "clock": "created", **MINIMUM},
    {"days": 31, "minimum_count": 1, **MINIMUM},
    {"days": 31, "minimum_count": 2, **MINIMUM},
    {"days": 31, "clock": "created"},
    {"days": 31, "store": "main"},
    {"days": 31, "is_encrypted": True},
    {"days": 31, "is_encrypted": False},
    {"days": 31, "is_end": True},
    *({"days": days, "target": "items", "clock": "written", "action": "redact"} for days in (30, 60)),
    *({"days": days, "target": "items", "clock": "written"} for days in (30, 60)),
]


class TestSql:
    @pytest.mark.django_db
    def test_no_version_is_added_that_is_in_force(self) -> None:
        version = in_force("Chats")
        with pytest.raises(DatabaseError, match="is proposed first"), transaction.atomic():
            PolicyVersion.objects.create(
                policy=version.policy,
                number=2,
                target="sessions",
                clock="last_activity",
                action="delete",
                length_count=1,
                length_unit="days",
                needs_approval=False,
                starts_at=Now(),
            )

    @pytest.mark.django_db
    def test_the_database_compares_as_the_application_does(self) -> None:
        versions = [in_force(**content) for content in CONTENTS]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT earlier.id, later.id, memadmin_could_take_more(earlier, later)"
                " FROM retention_policyversion AS later LEFT JOIN retention_policyversion AS earlier"
                " ON earlier.id <> later.id OR earlier.is_end"
            )
            found = {(earlier, later): could for earlier, later, could in cursor.fetchall()}
        rules = {version.pk: None if version.is_end else version.rule() for version in versions}
        pairs = [(earlier, later) for earlier in rules for later in rules if earlier != later]
        assert len(pairs) > 400
        for pair in pairs:
            earlier, later = (rules[each] for each in pair)
            assert found[pair] == could_take_more(earlier, later), (earlier, later)

    @pytest.mark.django_db
    def test_nobody_else_has_decided(self, officer: User) -> None:
        current, other = in_force("Chats"), person("compliance", "reviewer")
        version = stop_change(proposed(current, by=officer), reason="a mistake", by=officer)
        waiting = proposed(current, by=officer)
        changes: list[dict[str, Any]] = [{"closed_by": other}, {"approval": None}, {"approval": waiting.approval}]
        for columns in changes:
            with pytest.raises(DatabaseError, match="Who decided"), transaction.atomic():
                PolicyVersion.objects.filter(pk=version.pk).update(**columns)
        officer.delete()
        with pytest.raises(DatabaseError, match="Who decided"), transaction.atomic():
            PolicyVersion.objects.filter(pk=version.pk).update(closed_by=other)
