"""Why is this still here, and when will it go: the answer on pages of sessions, memories and subjects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags
from django.utils.timezone import now

from memadmin.retention.models import PolicyVersion
from memadmin.retention.policies.explaining import explain_memory, explain_session, explain_subject
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows
from memories_app.models import Evidence, Memory, Recall, RecalledMemory
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from tests.agents import add_items, attach_main_store
from tests.builders import make_session, make_subject
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force

AGES = timedelta(days=20)


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    """A session of the label closed, last active 20 days ago."""
    add_items("s1", "Good morning")
    age("s1", AGES)
    SessionRecord.objects.update(labels=["closed"])
    return SessionRecord.objects.get()


def shown(user: User, address: str) -> str:
    """The panel as text, in one line."""
    page = signed_in(user).get(address).content.decode()
    (panel,) = re.findall(r'<section class="card" aria-labelledby="retention">.*?</section>', page, re.DOTALL)
    return " ".join(strip_tags(panel).split())


def of_session(user: User, record: SessionRecord) -> str:
    return shown(user, reverse("sessions:timeline", args=[record.pk]))


def day(instant: datetime) -> str:
    instant = instant.astimezone(UTC)
    return f"{instant.day} {instant:%b %Y}"


class TestSession:
    def test_the_default_policy_keeps(self, record: SessionRecord, officer: User) -> None:
        assert of_session(officer, record) == "Retention Policy Everything else keeps this session."

    def test_day_winner_and_losers_are_named(self, record: SessionRecord, officer: User) -> None:
        in_force("Closed tickets", days=90, label="closed")
        in_force("Chats", days=30)
        due, sooner = (record.last_activity_at + timedelta(days=days) for days in (90, 30))
        text = of_session(officer, record)
        assert (
            f"This session will be deleted on {day(due)}: policy Closed tickets, 90 days after last activity." in text
        )
        assert "2 other policies about this session" in text
        assert (
            f"Chats deletes 30 days after last activity ({day(sooner)}). Policies that name a store, a session id, an"
            " agent or a label go before policies about groups."
        ) in text
        assert "Everything else keeps. Policies that name" in text

    def test_a_legal_minimum_is_named_with_its_reference(self, record: SessionRecord, officer: User) -> None:
        in_force("Closed tickets", days=90, label="closed")
        law: dict[str, Any] = {"minimum_unit": "months", "minimum_reference": "card scheme rules"}
        in_force("Disputes", days=None, action="keep", label="closed", minimum_count=13, **law)
        in_force("Short", days=None, action="keep", minimum_count=1, **law)
        text = of_session(officer, record)
        sooner = day(record.last_activity_at + timedelta(days=90))
        assert f"policy Closed tickets, 90 days after last activity ({sooner})." in text
        assert "Not before, because of the legal minimum of Disputes: 13 months after last activity (card" in text
        assert "Short keeps for 1 month after last activity: card scheme rules" in text
        assert "Another legal minimum ends later." in text

    def test_a_hold_comes_before_all(self, record: SessionRecord, officer: User) -> None:
        in_force("Closed tickets", days=10, label="closed")
        hold = make_hold(record, by=officer)
        text = of_session(officer, record)
        assert f"kept by hold {hold} Without the hold, this session would be deleted by the next run: policy" in text

    def test_what_is_due_goes_with_the_next_run(self, record: SessionRecord, officer: User) -> None:
        in_force("Closed tickets", days=10, label="closed")
        due = day(record.last_activity_at + timedelta(days=10))
        assert f"This session will be deleted by the next run; due since {due}: policy" in of_session(officer, record)

    def test_its_items_have_an_answer_of_their_own(self, record: SessionRecord, officer: User) -> None:
        in_force("Old items", days=25, target="items", clock="written", action="redact")
        due = day(record.registered_at + timedelta(days=25))
        text = of_session(officer, record)
        assert f"Its oldest items will be redacted on {due}: policy Old items, 25 days after time of writing." in text

    def test_a_session_in_use_stays(self, record: SessionRecord) -> None:
        in_force("By creation", days=10, clock="created")
        SessionRecord.objects.update(last_activity_at=now())
        (explained,) = explain_session(SessionRecord.objects.get())
        assert (explained.is_due, explained.remark) == (
            True,
            "It was active within the last hour. A session in use stays.",
        )

    def test_a_store_that_cannot_delete_is_named(self, record: SessionRecord, monkeypatch: pytest.MonkeyPatch) -> None:
        in_force("Chats", days=30)
        monkeypatch.setattr(type(_backend(record)), "capabilities", frozenset())
        (explained,) = explain_session(record)
        assert explained.remark == "This kind of store cannot delete sessions."

    def test_others_see_the_day_alone(self, record: SessionRecord, officer: User) -> None:
        in_force("Inquiry 7", days=90, label="closed")
        support = person("support")
        due = day(record.last_activity_at + timedelta(days=90))
        assert of_session(support, record) == f"Retention This session will be deleted on {due}."
        make_hold(record, by=officer)
        assert of_session(support, record) == "Retention No day is set for the deletion of this session."

    def test_says_what_the_sweep_does(self, record: SessionRecord) -> None:
        for days, label in ((10, "closed"), (5, "other"), (40, "")):
            in_force(days=days, label=label)
        (explained,) = explain_session(record)
        due = DueRows.now()
        (taking,) = [rule for rule in due.rules if due.due(rule).exists()]
        assert explained.winner is not None
        assert (explained.is_due, explained.winner.rule) == (True, taking)


def _backend(record: SessionRecord) -> Any:
    return backend_for(record.store)


class TestMemory:
    def test_the_last_recall_is_the_clock(self, officer: User) -> None:
        memory = approved("likes tea", kind="preference")
        Memory.objects.filter(pk=memory.pk).update(decided_at=now() - timedelta(days=100))
        recall = RecalledMemory.objects.create(recall=Recall.objects.create(), memory=memory, version=1, place=1)
        RecalledMemory.objects.update(recalled_at=now() - timedelta(days=50))
        recall.refresh_from_db()
        in_force("Preferences", days=180, target="memories", clock="recalled", action="revalidate", kind="preference")
        text = shown(officer, memory.get_absolute_url())
        due = day(recall.recalled_at + timedelta(days=180))
        assert f"This memory will be sent to re-validation on {due}: policy Preferences, 180 days after last" in text

    def test_a_proposal_has_its_own_policies(self, officer: User) -> None:
        in_force("Proposals", days=30, target="proposals", clock="created")
        text = shown(officer, proposed().get_absolute_url())
        assert "This proposal will be deleted on" in text

    def test_a_hold_on_its_subject_or_its_source_keeps_it(self, officer: User) -> None:
        subject = make_subject("ada")
        about, learned = approved("one", subject=subject), approved("two")
        source = make_session("source")
        Evidence.objects.create(memory=learned, record_id=source.pk, session_id="source", quote="two")
        holds = [make_hold(subject, by=officer), make_hold(source, by=officer)]
        for memory, hold in zip((about, learned), holds, strict=True):
            assert explain_memory(memory).resolution.holds == (hold.number,)


@pytest.mark.usefixtures("agent_tables")
class TestSubject:
    def fill(self, officer: User, sessions: int = 1) -> Any:
        """A subject with sessions that are due, dated, held and kept, and the same of memories."""
        subject, store = make_subject("ada"), attach_main_store()
        for number in range(sessions):
            for label, days in (("due", 50), ("dated", 40), ("dated", 35), ("held", 50), ("kept", 50)):
                labels = [] if label == "kept" else ["x", label]
                at = now() - timedelta(days=days)
                name = f"{label} {days} {number}"
                make_session(name, store=store, subject=subject, labels=labels, last_activity_at=at)
        in_force("X", days=45, label="x")
        make_hold("held", by=officer)
        approved("likes tea", subject=subject)
        approved("likes milk", subject=subject, kind="preference")
        in_force("Facts", days=45, target="memories", kind="fact", clock="created")
        return subject

    def test_what_goes_is_held_and_stays_is_counted(self, officer: User) -> None:
        subject = self.fill(officer)
        sessions, memories = explain_subject(subject)
        assert (sessions.total, sessions.dated, sessions.due, sessions.held, sessions.kept) == (5, 3, 1, 1, 1)
        assert sessions.next_at is not None
        assert day(sessions.next_at) == day(now() + timedelta(days=5))
        assert (memories.total, memories.dated, memories.held, memories.kept) == (2, 1, 0, 1)
        assert "Go on a set day 3 Go with the next run 1 Next day" in shown(officer, subject.get_absolute_url())

    def test_the_cost_does_not_grow(self, officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
        subject = self.fill(officer, sessions=6)
        counts = []
        for most in (5, 25):
            monkeypatch.setattr("memadmin.retention.policies.explaining.MOST_COUNTED", most)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                totals = explain_subject(subject)[0]
            counts.append(len(queries))
            assert (totals.is_capped, totals.dated + totals.held + totals.kept) == (True, most)
        assert counts[0] == counts[1]
        assert counts[0] <= 8

    def test_only_who_may_see_policies_sees_it(self, officer: User) -> None:
        subject = self.fill(officer)
        page = signed_in(person("support")).get(subject.get_absolute_url()).content.decode()
        assert 'aria-labelledby="retention"' not in page

    def test_counts_what_the_sweep_takes(self, officer: User) -> None:
        subject = self.fill(officer)
        due = DueRows.now()
        rule = PolicyVersion.objects.get(policy__name="X").rule()
        assert due.due(rule).count() == explain_subject(subject)[0].due
        assert target_named("sessions").rows().count() == explain_subject(subject)[0].total
