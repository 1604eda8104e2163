"""Proposals that nobody decides about: when they are over, what never is, who is warned, and how one comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memories_app.models import Memory
from memories_app.review import claiming, decisions, proposal_expiry
from memories_app.review.queue import QueueFilter
from memories_app.review.undoing import undo_decision
from memories_app.services.retiring import ask_revalidation
from tests.meanwhile import somebody_else
from tests.memories.queue import a_reviewer, waiting
from tests.people import signed_in

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def aged(memory: Memory, days: float) -> Memory:
    """As if it had waited for so long."""
    Memory.objects.filter(pk=memory.pk).update(
        proposed_at=F("proposed_at") - days * DAY, awaiting_since=F("awaiting_since") - days * DAY
    )
    memory.refresh_from_db()
    return memory


def status_of(memory: Memory) -> str:
    return Memory.objects.values_list("status", flat=True).get(pk=memory.pk)


@pytest.fixture
def ada(db: None) -> User:
    return a_reviewer("ada")


def test_what_nobody_decided_about_is_over() -> None:
    young, old = aged(waiting(), 29.9), aged(waiting(), 31)
    assert proposal_expiry.lapse_proposals() == 1
    assert (status_of(young), status_of(old)) == ("proposed", "lapsed")
    event = AuditEvent.objects.get(type="memory.lapsed")
    assert (event.object_ref, event.subject_ref, event.counters) == (old.pk, old.subject_id, {"days": 31})
    assert proposal_expiry.lapse_proposals() == 0


def test_zero_days_are_never(settings: Any) -> None:
    settings.PROPOSAL_LIFETIME = timedelta()
    aged(waiting(), 4000)
    assert proposal_expiry.lapse_proposals() == 0
    assert not proposal_expiry.lapsing(within=timedelta(days=3)).exists()


def held(memory: Memory) -> None:
    claiming.claim(memory, by=a_reviewer())


def snoozed(memory: Memory) -> None:
    decisions.snooze_memory(memory, by=a_reviewer(), length=DAY)


def approved_by_one(memory: Memory) -> None:
    Memory.objects.filter(pk=memory.pk).update(risk_flags=["health"])
    decisions.approve_memory(memory, by=a_reviewer(), content_hash=memory.content_hash)


def decided(memory: Memory) -> None:
    decisions.approve_memory(memory, by=a_reviewer(), content_hash=memory.content_hash)


def approved_once(memory: Memory) -> None:
    decided(memory)
    ask_revalidation(memory)
    aged(memory, 31)


NEVER: dict[str, Callable[[Memory], None]] = {
    each.__name__: each for each in (held, snoozed, approved_by_one, decided, approved_once)
}


@pytest.mark.parametrize("how", NEVER)
def test_what_is_never_over_by_this(how: str) -> None:
    memory = aged(waiting(), 31)
    NEVER[how](memory)
    before = status_of(memory)
    assert proposal_expiry.lapse_proposals() == 0
    assert status_of(memory) == before != "lapsed"


@pytest.mark.parametrize("how", [how for how in NEVER if how != "held"])
def test_a_look_at_the_age_alone_would_take_each_of_them(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the conditions keep them: by age alone all of them would be over."""
    memory = aged(waiting(), 31)
    NEVER[how](memory)
    old = Memory.objects.filter(awaiting_since__lte=now() - 30 * DAY).order_by("awaiting_since", "pk")
    monkeypatch.setattr(proposal_expiry, "lapsing", lambda: old)
    proposal_expiry.lapse_proposals()
    assert status_of(memory) == "lapsed"


def test_an_approval_of_a_deleted_account_keeps_nothing(ada: User) -> None:
    memory, approver = aged(waiting(flags=("health",)), 31), a_reviewer()
    decisions.approve_memory(memory, by=approver, content_hash=memory.content_hash)
    second = QueryDict("show=second")
    assert list(QueueFilter(second, ada).queryset()) == [memory]
    approver.delete()
    assert not QueueFilter(second, ada).queryset().exists()
    assert proposal_expiry.lapse_proposals() == 1


def test_a_claim_that_ran_out_keeps_nothing(ada: User) -> None:
    memory = aged(waiting(), 31)
    claiming.claim(memory, by=ada)
    Memory.objects.filter(pk=memory.pk).update(claimed_until=now() - timedelta(seconds=1))
    assert proposal_expiry.lapse_proposals() == 1


def test_one_comes_back_and_waits_anew(ada: User) -> None:
    memory = aged(waiting(), 31)
    proposal_expiry.lapse_proposals()
    with pytest.raises(decisions.ReviewAlreadyDecided, match="expired unreviewed"):
        decisions.approve_memory(memory, by=ada, content_hash=memory.content_hash)
    proposal_expiry.reopen_proposal(memory, by=ada)
    assert proposal_expiry.lapse_proposals() == 0
    decisions.approve_memory(memory, by=ada, content_hash=memory.content_hash)
    assert undo_decision(memory, by=ada).status == "proposed"
    assert AuditEvent.objects.filter(type="memory.reopened").count() == 1
    with pytest.raises(proposal_expiry.NotLapsed):
        proposal_expiry.reopen_proposal(memory, by=ada)


@pytest.mark.django_db(transaction=True)
def test_who_decides_at_this_very_moment_is_quicker() -> None:
    ada, memory = a_reviewer("ada"), aged(waiting(), 31)
    with transaction.atomic():
        decisions.reject_memory(memory, by=ada, content_hash=memory.content_hash, reason="wrong")
        with somebody_else() as start:
            assert start(proposal_expiry.lapse_proposals).result() == 0
    assert status_of(memory) == "rejected"


@pytest.mark.django_db(transaction=True)
def test_two_workers_end_each_once() -> None:
    memory = aged(waiting(), 31)
    with transaction.atomic():
        proposal_expiry.lapse(memory)
        with somebody_else() as start:
            assert start(proposal_expiry.lapse_proposals).result() == 0
    assert AuditEvent.objects.filter(type="memory.lapsed").count() == 1


class TestPages:
    @pytest.fixture
    def desk(self, ada: User) -> Client:
        return signed_in(ada)

    def test_it_is_said_before_it_happens(self, desk: Client) -> None:
        soon, later = aged(waiting("Prefers tea."), 28), aged(waiting("Prefers gin."), 20)
        second = aged(waiting("Prefers rum.", flags=("health",)), 29)
        decisions.approve_memory(second, by=a_reviewer(), content_hash=second.content_hash)
        page = desk.get(reverse("reviews:list"), {"show": "ending"})
        assert [row.memory for row in page.context["rows"]] == [soon]
        page = desk.get(reverse("reviews:list"))
        ends = {row.memory.pk: row.ends_in for row in page.context["rows"]}
        assert (ends[later.pk], ends[second.pk]) == ("", "")
        assert ends[soon.pk].startswith("1 d 23 h")
        assert "expires in 1 d 23 h" in page.text
        assert "expires unreviewed in 1 d 23 h" in desk.get(reverse("reviews:review", args=[soon.pk])).text

    def test_health_counts_what_will_expire_and_what_did(self, desk: Client) -> None:
        aged(waiting(), 28)
        aged(waiting(), 31)
        proposal_expiry.lapse_proposals()
        page = desk.get(reverse("reviews:health"))
        assert (page.context["queue_status"].ending, page.context["lapsed"]) == (1, 1)

    def test_its_page_says_so_and_puts_it_back(self, desk: Client) -> None:
        memory = aged(waiting("Prefers tea."), 31)
        proposal_expiry.lapse_proposals()
        address = reverse("reviews:review", args=[memory.pk])
        assert "Expired unreviewed" in desk.get(address).text
        assert "expired unreviewed" in desk.get(reverse("memories:list"), {"status": "lapsed"}).text
        desk.post(reverse("reviews:reopen", args=[memory.pk]))
        assert status_of(memory) == "proposed"
        refused = desk.post(reverse("reviews:reopen", args=[memory.pk]))
        assert (refused.status_code, "has not expired" in refused.text) == (409, True)
