"""Decisions about all proposals that match: a run with the checks. `tests/web/test_all_matching.py` has the page."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memadmin.runs.models import Run
from memories_app.models import Memory, Review
from memories_app.review.queue_changes import QueueAction, begin
from tests.memories.builders import proposed
from tests.people import person, signed_in
from tests.runs.working import work_off

ADDRESS = reverse("reviews:all-matching")


@pytest.fixture
def reviewer(db: None) -> User:
    return person("reviewer")


@pytest.fixture
def desk(reviewer: User) -> Client:
    return signed_in(reviewer)


def propose(count: int, kind: str = "fact") -> list[Memory]:
    return [proposed(f"Likes {kind} number {number}.", kind=kind) for number in range(count)]


def test_the_number_is_beside_the_action_before_it_is_chosen(desk: Client) -> None:
    propose(1)
    count = reverse("reviews:matching-count")
    assert f'hx-get="{count}?kind=fact"' in desk.get("/reviews/?as=table&kind=fact").text


def test_all_are_rejected_with_a_reason_in_the_name_of_the_person(desk: Client, reviewer: User) -> None:
    propose(120)
    others = propose(1, "preference")
    given = {"query": "kind=fact", "counted": "120", "action": "reject", "reason": "wrong"}
    assert desk.post(ADDRESS, given).status_code == 302
    late = propose(1)
    assert work_off() == 1
    assert Memory.objects.filter(status="rejected").count() == 120
    assert set(Memory.objects.awaiting_review()) == {*others, *late}
    assert Run.objects.get().counters == {"changed": 120, "unchanged": 0}
    assert Review.objects.filter(reviewer=reviewer, decision="reject", reason_code="wrong").count() == 120
    assert AuditEvent.objects.filter(type="memory.rejected", actor_kind="person").count() == 120


def test_the_reviewer_sees_the_run_of_the_decision_and_no_other(desk: Client) -> None:
    propose(3)
    shown = desk.post(ADDRESS, {"query": "", "counted": "3", "action": "reject", "reason": "wrong"}, follow=True)
    run = Run.objects.get()
    assert shown.redirect_chain == [(run.get_absolute_url(), 302)]
    assert "Decision about proposals" in shown.text
    assert 'hx-trigger="every 2s"' in shown.text
    work_off()
    page = desk.get(run.get_absolute_url())
    assert "Proposals decided about" in page.text
    for forbidden in (f'href="{reverse("runs:list")}"', reverse("runs:cancel", args=[run.pk]), "Pause and cancel"):
        assert forbidden not in page.text
    palette = desk.post(reverse("palette"), {"q": str(run)}).text
    assert run.get_absolute_url() in palette
    of_another = begin([], QueueAction.SNOOZE, by=person("reviewer", "support"), said="day")
    of_another_kind = Run.objects.create(kind="erasure", requested_by=run.requested_by)
    for other in (of_another, of_another_kind):
        assert desk.get(other.get_absolute_url()).status_code == 403
        assert other.get_absolute_url() not in desk.post(reverse("palette"), {"q": str(other)}).text
    assert desk.get(reverse("runs:detail", args=[999])).status_code == 403
    for verb in ("pause", "resume", "cancel", "speed"):
        assert desk.post(reverse(f"runs:{verb}", args=[run.pk])).status_code == 403


def test_the_run_is_not_shown_to_a_requester_who_lost_the_role(desk: Client, reviewer: User) -> None:
    run = begin([], QueueAction.SNOOZE, by=reviewer, said="day")
    assert desk.get(run.get_absolute_url()).status_code == 200
    reviewer.groups.clear()
    assert desk.get(run.get_absolute_url()).status_code == 403


def test_all_are_snoozed(desk: Client) -> None:
    propose(3)
    desk.post(ADDRESS, {"query": "", "counted": "3", "action": "snooze", "length": "day"})
    work_off()
    assert not Memory.objects.awaiting_review().not_snoozed().exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"action": "reject"}, "Choose a reason."),
        ({"action": "snooze"}, "Choose a snooze time."),
        ({"action": "approve"}, "No action."),
    ],
)
def test_refusals_are_sentences_and_nothing_is_approved_unread(
    desk: Client, given: dict[str, str], sentence: str
) -> None:
    propose(1)
    page = desk.post(ADDRESS, {"query": "", "counted": "1"} | given)
    assert (page.status_code, sentence in page.text) == (422, True)
    assert not Run.objects.exists()


def test_claimed_own_and_decided_proposals_stay(desk: Client, reviewer: User) -> None:
    free, claimed, own, decided = propose(4)
    Memory.objects.filter(pk=own.pk).update(proposed_by=reviewer)
    desk.post(ADDRESS, {"query": "", "counted": "4", "action": "reject", "reason": "wrong"})
    other = signed_in(person("reviewer", "support"))
    assert other.get(reverse("reviews:review", args=[claimed.pk])).status_code == 200
    Memory.objects.filter(pk=decided.pk).update(status="lapsed")
    work_off()
    assert Run.objects.get().counters == {"changed": 1, "unchanged": 3}
    assert list(Memory.objects.filter(status="rejected")) == [free]


def test_samples_of_rules_are_not_decided_about_again(desk: Client) -> None:
    propose(1)
    given = {"query": "show=sampled", "counted": "1", "action": "snooze", "length": "day"}
    assert desk.post(ADDRESS, given).status_code == 302
    assert not Run.objects.exists()


def test_a_run_of_somebody_without_the_right_stops(desk: Client, reviewer: User) -> None:
    propose(1)
    desk.post(ADDRESS, {"query": "", "counted": "1", "action": "snooze", "length": "day"})
    reviewer.groups.clear()
    work_off()
    assert Run.objects.get().state == "stopped"
    assert Memory.objects.awaiting_review().not_snoozed().count() == 1
