"""The demo has policies, a change that waits, and runs that deleted real sessions."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from memadmin.demo import expiring, preparing
from memadmin.demo.expiring import DISPUTED, FIRST, LATER, SECOND
from memadmin.retention.models import PolicyVersion, SweepResult
from memadmin.retention.policies.explaining import explain_session
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord
from tests.agents import attach_main_store, value_of
from tests.retention.policies import approve_change

pytestmark = pytest.mark.release


def test_three_policies_one_change_and_two_runs(agent_tables: None) -> None:
    preparing.make_logins("demo")
    attach_main_store()
    assert expiring.keep_policies() == 3
    assert expiring.keep_policies() == 0
    names = [version.policy.name for version in PolicyVersion.objects.in_force()]
    assert names == ["Closed tickets", "Everything else", "Payment disputes", "Preferences"]
    runs = Run.objects.filter(kind="retention").order_by("number")
    assert [run.state for run in runs] == ["complete", "complete"]
    taken = [
        SweepResult.objects.get(run=run, version__policy__name="Closed tickets", place="main").taken for run in runs
    ]
    assert taken == [len(FIRST), len(SECOND)]
    stay = {story.session_id for story in LATER}
    assert set(SessionRecord.objects.values_list("session_id", flat=True)) == stay
    assert value_of("SELECT count(DISTINCT session_id) FROM agent_messages") == len(stay)


def test_the_change_waits_for_the_other_officer_and_a_minimum_keeps_a_ticket(agent_tables: None) -> None:
    preparing.make_logins("demo")
    attach_main_store()
    expiring.keep_policies()
    change = PolicyVersion.objects.awaiting().get()
    assert (str(change.approval and change.approval.asked_by), change.preview["rows"]) == ("compliance-2", 2)
    approved = approve_change(change, by=User.objects.get(username="compliance"), confirmation="Closed tickets")
    assert approved.is_in_grace
    (explained,) = explain_session(SessionRecord.objects.get(session_id=DISPUTED.session_id))
    assert (explained.is_due, explained.minimum) == (False, "13 months after last activity")
