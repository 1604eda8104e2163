"""Rules that approve by themselves: what they take, what they leave, and what a person makes of a sample."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.models import AuditEvent
from memories_app.learning.screening import embed_memories
from memories_app.models import ApprovalRule, Memory, Review
from memories_app.review import claiming, decisions, rules
from memories_app.services.refusals import NotApproved
from sessions_app.models import SessionRecord
from tests.builders import make_session, make_subject
from tests.memories.builders import apply_rules, approval_rule, user_quote
from tests.memories.queue import a_reviewer, approve_as_shown, approved, propose, waiting
from tests.people import signed_in

pytestmark = pytest.mark.django_db

RULES = reverse("reviews:rules")
AS_JOB = partial(audit.acting, audit.Actor("job", "apply_approval_rules"))


def a_rule(**values: Any) -> ApprovalRule:
    values = {"is_active": True, "sample_percent": 0, "min_confidence": 0.8} | values
    return approval_rule("sure preferences", **values)


def sure(statement: str = "", *, quote: dict[str, Any] | None = None, **values: Any) -> Memory:
    """With its vector and a quote of the user, as the jobs leave it that make and find them."""
    memory = waiting(statement, **{"confidence": 0.9} | values)
    user_quote(memory, **quote or {})
    embed_memories()
    return memory


def status_of(memory: Memory) -> str:
    return Memory.objects.values_list("status", flat=True).get(pk=memory.pk)


@pytest.fixture
def officer(db: None) -> User:
    return a_reviewer("officer", role="compliance")


class TestApplying:
    def test_what_fits_is_approved_in_the_name_of_the_rule(self) -> None:
        rule, memory = a_rule(), sure()
        assert apply_rules() == 1
        assert status_of(memory) == "approved"
        review = Review.objects.get()
        assert (review.rule, review.reviewer, review.is_sample) == (rule, None, False)
        assert AuditEvent.objects.get(type="memory.approved").shown == [rule.pk]

    @pytest.mark.parametrize(
        "values",
        [
            {"shared": True},
            {"flags": ("health",)},
            {"confidence": 0.7},
            {"source": "tool"},
            {"source": "web"},
            {"extractor": "agent/remember"},
        ],
    )
    def test_what_it_leaves_to_people(self, values: dict[str, Any]) -> None:
        a_rule()
        memory = sure(**values)
        assert apply_rules() == 0
        assert status_of(memory) == "proposed"

    def test_what_was_not_screened_is_held_changes_or_contradicts_it_leaves_too(self) -> None:
        a_rule()
        known = approved("Prefers tea.", key="drink")
        user_quote(propose(confidence=0.9))
        claiming.claim(sure(), by=a_reviewer())
        sure("Prefers gin.", replaces=known)
        sure("Prefers rum.", subject=known.subject, key="drink")
        assert apply_rules() == 0

    @pytest.mark.parametrize(
        ("statement", "hint"),
        [
            ("drinks tea in the morning", "duplicate"),
            ("Drinks tea every morning.", "near_duplicate"),
            ("Never drinks tea.", "contradiction"),
        ],
    )
    def test_what_is_known_or_contradicts_goes_to_people_before_it_was_marked(self, statement: str, hint: str) -> None:
        """The marks are made once an hour, and a rule looks every few seconds: it compares by itself, and marks."""
        a_rule()
        # One that waits: what contradicts an approved one no rule would take anyway.
        known = waiting("Drinks tea in the morning.", key="tea", confidence=0.1)
        memory = sure(statement, subject=known.subject, key="tea" if hint == "contradiction" else "")
        assert memory.hints == []
        assert apply_rules() == 0
        memory.refresh_from_db()
        assert (memory.status, memory.hints) == ("proposed", [hint])
        assert AuditEvent.objects.get(type="memory.marked").counters[hint] == 1

    def test_a_rule_that_goes_by_the_marks_alone_would_approve_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That it is the comparison which keeps it: without it the second of two that say the same is approved."""
        a_rule()
        known = waiting("Drinks tea.", confidence=0.1)
        memory = sure("Drinks tea.", subject=known.subject)
        monkeypatch.setattr(rules, "mark_against_others", lambda memory: [])
        assert apply_rules() == 1
        assert status_of(memory) == "approved"

    def test_what_was_marked_is_left_to_people(self) -> None:
        a_rule()
        memory = sure()
        Memory.objects.filter(pk=memory.pk).update(hints=["near_duplicate"])
        assert apply_rules() == 0

    def test_what_was_not_compared_waits_for_its_vector(self, settings: Any) -> None:
        a_rule()
        user_quote(waiting(confidence=0.9))
        assert apply_rules() == 0
        settings.EMBEDDER = "none"
        assert apply_rules() == 1

    @pytest.mark.parametrize(
        ("conditions", "fits"),
        [
            ({"kinds": ["preference", "fact"]}, True),
            ({"kinds": ["fact"]}, False),
            ({"provenance": "inferred"}, True),
            ({"provenance": "explicit"}, False),
            ({"extractor": "rules/1"}, True),
            ({"extractor": "rules"}, False),
            ({"sources": ["user"]}, True),
            ({"sources": ["import"]}, False),
            ({"is_active": False}, False),
        ],
    )
    def test_conditions(self, conditions: dict[str, Any], fits: bool) -> None:
        a_rule(**conditions)
        sure(extractor="rules/1")
        assert apply_rules() == int(fits)

    def test_the_gate_refuses_a_rule_what_is_shared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That the database holds it: a rule that would take anything is stopped there."""
        rule = a_rule()
        memory = sure(shared=True)
        monkeypatch.setattr(rules, "waiting_for", lambda rule: Memory.objects.filter(pk=memory.pk))
        with (
            pytest.raises(NotApproved, match="approvals of this text are missing: one reviewer, or"),
            AS_JOB(),
        ):
            rules.approve_by_rule(memory, rule)
        assert status_of(memory) == "proposed"

    def test_what_the_gate_keeps_back_keeps_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        a_rule()
        shared, other = sure(shared=True), sure("Prefers pie.")
        both = Memory.objects.filter(pk__in=[shared.pk, other.pk], status="proposed").order_by("proposed_at")
        monkeypatch.setattr(rules, "waiting_for", lambda rule: both)
        assert apply_rules() == 1
        assert (status_of(shared), status_of(other)) == ("proposed", "approved")

    @pytest.mark.parametrize(
        "quote",
        [
            {"said_by_user": None},
            {"said_by_user": False},
            {"record_id": None},
            {"quote": "", "gone_at": Now()},
            {"of_another": "subject"},
            {"of_another": "session, which was erased"},
        ],
    )
    def test_without_a_quote_that_was_found_neither_rule_nor_gate_approves(
        self, quote: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rule, other = a_rule(), quote.get("of_another", "")
        record = make_session(subject=make_subject() if other == "subject" else None)
        quote = {"record_id": record.pk} if other else dict(quote)
        words = quote.pop("quote", "Tea, please.")
        memory = sure(quote={"words": words, **quote})
        if other.startswith("session"):
            SessionRecord.objects.filter(pk=record.pk).update(subject=memory.subject, erased_at=now())
        assert apply_rules() == 0
        # By the database, too.
        monkeypatch.setattr(rules, "waiting_for", lambda rule: Memory.objects.filter(pk=memory.pk))
        with pytest.raises(NotApproved), AS_JOB():
            rules.approve_by_rule(memory, rule)
        assert status_of(memory) == "proposed"

    @pytest.mark.parametrize("source", rules.UNTRUSTED)
    def test_no_rule_takes_what_a_tool_or_a_page_said_though_it_names_them(self, source: str) -> None:
        a_rule(sources=[source, "user"])
        memory, other = sure(source=source), sure("Prefers pie.")
        assert apply_rules() == 1
        assert (status_of(memory), status_of(other)) == ("proposed", "approved")

    def test_nobody_passes_by_others_with_a_rule_of_their_own(self, officer: User) -> None:
        a_rule(created_by=officer)
        memory = sure(by=officer)
        assert apply_rules() == 0
        assert status_of(memory) == "proposed"

    def test_a_clock_that_steps_back_keeps_no_rule_from_approving(self) -> None:
        a_rule()
        memory = sure()
        Memory.objects.filter(pk=memory.pk).update(awaiting_since=now() + timedelta(hours=1))
        assert apply_rules() == 1

    def test_a_sample_waits_for_a_look_and_can_go_back(self, officer: User) -> None:
        a_rule(sample_percent=100)
        good, bad = sure(), sure()
        apply_rules()
        samples = {review.memory_id: review for review in rules.samples_to_see()}
        assert set(samples) == {good.pk, bad.pk}
        rules.judge_sample(samples[good.pk], by=officer, agreed=True)
        rules.judge_sample(samples[bad.pk], by=officer, agreed=False)
        assert (status_of(good), status_of(bad)) == ("approved", "needs_revalidation")
        assert not rules.samples_to_see().exists()
        with pytest.raises(rules.SampleDecided):
            rules.judge_sample(samples[good.pk], by=officer, agreed=False)

    def test_what_went_back_no_rule_approves_again(self, officer: User) -> None:
        a_rule(sample_percent=100)
        memory = sure()
        apply_rules()
        rules.judge_sample(rules.samples_to_see().get(), by=officer, agreed=False)
        assert apply_rules() == 0
        assert status_of(memory) == "needs_revalidation"


class TestHindsight:
    def test_it_is_computed_from_what_people_decided(self, officer: User) -> None:
        for _ in range(2):
            memory = sure()
            decisions.approve_memory(memory, by=officer, content_hash=memory.content_hash)
        memory = sure("Prefers tee.")
        decisions.edit_and_approve(
            memory, by=officer, content_hash=memory.content_hash, changes={"statement": "Prefers tea."}
        )
        memory = sure()
        decisions.reject_memory(memory, by=officer, content_hash=memory.content_hash, reason="wrong")
        memory = sure(confidence=0.1)
        decisions.reject_memory(memory, by=officer, content_hash=memory.content_hash, reason="wrong")
        past = rules.hindsight(ApprovalRule(name="x", min_confidence=0.8))
        assert (past.looked_at, past.taken, past.approved, past.edited, past.rejected) == (5, 4, 2, 1, 1)
        assert past.agreement == 50

    def test_without_decisions_nothing_is_claimed(self) -> None:
        assert rules.hindsight(ApprovalRule(name="x")).agreement is None


class TestPages:
    FORM: dict[str, Any] = {"name": "Sure", "kinds": ["fact"], "min_confidence": "0.8", "sample_percent": "10"}  # noqa: RUF012

    def test_tools_and_pages_are_no_choice(self, officer: User) -> None:
        page = signed_in(officer).post(reverse("reviews:rule-new"), self.FORM | {"sources": ["tool"]})
        assert page.status_code == 422
        assert not ApprovalRule.objects.exists()

    def test_compliance_makes_and_changes_rules(self, officer: User) -> None:
        desk = signed_in(officer)
        assert desk.post(reverse("reviews:rule-new"), self.FORM).status_code == 302
        rule = ApprovalRule.objects.get()
        assert (rule.kinds, rule.created_by, rule.is_active) == (["fact"], officer, False)
        desk.post(reverse("reviews:rule", args=[rule.pk]), self.FORM | {"is_active": "on"})
        rule.refresh_from_db()
        assert rule.is_active
        assert AuditEvent.objects.filter(type="approval_rule.saved").count() == 2
        assert "Sure" in desk.get(RULES).text

    def test_trying_saves_nothing(self, officer: User) -> None:
        page = signed_in(officer).post(reverse("reviews:rule-new"), self.FORM | {"try": "yes"})
        assert "Last month this rule would have matched none" in page.text
        assert not ApprovalRule.objects.exists()

    def test_nonsense_is_refused_in_words(self, officer: User) -> None:
        answer = signed_in(officer).post(reverse("reviews:rule-new"), self.FORM | {"min_confidence": "7"})
        assert answer.status_code == 422
        assert "Confidence must be between 0 and 1." in answer.text

    def test_a_reviewer_looks_at_samples(self, reviewer: Client) -> None:
        a_rule(sample_percent=100)
        sure("Prefers tea.")
        apply_rules()
        assert "Prefers tea." in reviewer.get(RULES).text
        sample = rules.samples_to_see().get()
        reviewer.post(reverse("reviews:sample", args=[sample.pk]), {"agreed": "yes"})
        sample.refresh_from_db()
        assert sample.agreed is True

    def test_health_tells_pace_and_agreement(self, reviewer: Client, officer: User) -> None:
        other = a_reviewer("other")
        for agreed in (True, False):
            memory = waiting(shared=True)
            decisions.approve_memory(memory, by=officer, content_hash=memory.content_hash)
            if agreed:
                approve_as_shown(memory, by=other)
            else:
                decisions.reject_memory(memory, by=other, content_hash=memory.content_hash, reason="wrong")
        page = reviewer.get(reverse("reviews:health"))
        paces = {pace.name: (pace.decided, pace.rejected, pace.agreement) for pace in page.context["paces"]}
        assert paces == {"officer": (2, 0, 50), "other": (2, 1, None)}
