"""Approved memories that say the same, or the opposite: brought to people, and nothing done without them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils.timezone import now

from memadmin.client.recalling import DEFAULT_BUDGET
from memories_app.dedup import compare
from memories_app.dedup.compare import compare_approved, weaker_ones
from memories_app.dedup.consolidation import consolidate
from memories_app.learning.screening import embed_memories, screen_memories
from memories_app.models import LearningStop, Memory, Review
from memories_app.recall.preview import preview_recall
from memories_app.review.decisions import approve_memory, reject_memory
from memories_app.review.undoing import undo_decision
from sessions_app.models import Subject
from tests.builders import make_subject
from tests.memories.builders import apply_rules, approved, reviewer_number, user_quote
from tests.memories.queue import a_reviewer, approve_as_shown
from tests.memories.test_rules import a_rule

pytestmark = pytest.mark.django_db


def kept(statement: str, subject: Subject | None, **columns: object) -> Memory:
    return approved(statement, subject=subject, is_embedded=True, **columns)


def proposals() -> dict[str, list[str]]:
    return dict(Memory.objects.awaiting_review().values_list("statement", "hints"))


@pytest.mark.parametrize(
    ("weaker", "stronger", "key", "hint"),
    [
        ("Drinks TEA", "Drinks tea.", "", "duplicate"),
        ("Drinks tea in the morning", "Drinks tea every morning", "", "near_duplicate"),
        ("Drinks coffee.", "Takes the train.", "habit", "contradiction"),
    ],
)
def test_the_one_that_counts_less_is_proposed_to_end(weaker: str, stronger: str, key: str, hint: str) -> None:
    ada = make_subject()
    kept("Has two cats.", ada)
    strong = kept(stronger, ada, provenance="explicit", key=key)
    weak = kept(weaker, ada, provenance="inferred", key=key)
    assert weaker_ones() == {weak.pk}
    assert consolidate().to_end == 1
    assert proposals() == {weaker: [hint]}
    # Agents recall both until somebody decides.
    assert set(Memory.objects.recallable()) >= {strong, weak}
    proposal = Memory.objects.awaiting_review().get()
    assert (proposal.replaces, proposal.base_version, proposal.extractor) == (weak, 1, "consolidation/1")
    assert consolidate().to_end == 0
    assert weaker_ones() == set()


def test_only_people_end_it() -> None:
    ada = make_subject()
    kept("Drinks tea.", ada, provenance="explicit")
    weak = kept("Drinks tea!", ada)
    compare_approved()
    proposal = Memory.objects.awaiting_review().get()
    screen_memories()
    embed_memories()
    user_quote(proposal)
    a_rule()
    apply_rules()
    assert not Review.objects.filter(memory=proposal).exists(), "no rule takes it"
    approve_memory(proposal, by=reviewer_number(5), content_hash=proposal.content_hash, base_version=1)
    assert weak not in Memory.objects.recallable()
    consolidate()
    weak.refresh_from_db()
    assert weak.status == "expired"


def test_both_memories_of_a_topic_are_recalled_until_a_person_ends_one() -> None:
    ada, reviewer = make_subject(), a_reviewer()
    penicillin, peanuts = (kept(f"Is allergic to {what}.", ada, key="allergy") for what in ("penicillin", "peanuts"))

    def recalled() -> set[UUID]:
        choice = preview_recall("Which allergies?", subject=ada, budget=DEFAULT_BUDGET, as_of=now()).choice
        assert choice.left_out == []
        return {each.memory.id for each in choice.chosen}

    assert recalled() == {penicillin.pk, peanuts.pk}
    consolidate()
    assert recalled() == {penicillin.pk, peanuts.pk}
    end = Memory.objects.awaiting_review().get()
    screen_memories()
    # About health: two people end it.
    for person in (a_reviewer(), reviewer):
        assert recalled() == {penicillin.pk, peanuts.pk}
        approve_as_shown(end, by=person)
    assert recalled() == {penicillin.pk, peanuts.pk} - {end.replaces_id}
    undo_decision(end, by=reviewer)
    assert recalled() == {penicillin.pk, peanuts.pk}
    reject_memory(end, by=reviewer, content_hash=end.content_hash, reason="wrong")
    assert recalled() == {penicillin.pk, peanuts.pk}


def test_what_was_rejected_does_not_come_back() -> None:
    ada = make_subject()
    kept("Drinks tea.", ada, provenance="explicit")
    weak = kept("Drinks tea!", ada)
    compare_approved()
    proposal = Memory.objects.awaiting_review().get()
    reject_memory(proposal, by=reviewer_number(5), content_hash=proposal.content_hash, reason="wrong")
    Memory.objects.update(compared_hash="")
    assert compare_approved() == 0
    assert weak in Memory.objects.recallable()


def test_others_are_left_alone() -> None:
    ada, bob = make_subject(), make_subject()
    kept("Drinks tea.", ada, agents=["other"])
    kept("Drinks tea.", bob)
    kept("Drinks tea.", None)
    kept("Drinks tea.", ada, valid_until=now() - timedelta(days=1))
    kept("Drinks tea.", ada, agents=["billing"])
    kept("Drinks tea!", ada, agents=["sales"])
    assert compare_approved() == 0
    assert proposals() == {}


def test_those_of_merged_subjects_are_compared_anew() -> None:
    ada, other = make_subject(), make_subject()
    kept("Drinks tea.", ada, provenance="explicit")
    kept("Drinks tea!", other)
    assert compare_approved() == 0
    other.merged_into = ada
    other.save()
    assert compare_approved() == 1
    assert compare_approved() == 0
    assert not compare.to_compare().exists()


def test_nothing_is_proposed_where_nothing_is_learned() -> None:
    ada = make_subject()
    kept("Drinks tea.", ada)
    kept("Drinks tea!", ada)
    LearningStop.objects.create(subject=ada)
    assert compare_approved() == 0


def test_a_run_takes_so_many_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "BATCH", 2)
    ada = make_subject()
    for number in range(5):
        kept(f"Has {number} {['cat', 'dog', 'car', 'bike', 'boat'][number]}s.", ada)
    compare_approved(limit=2)
    assert compare.to_compare().count() == 3
    compare_approved()
    assert compare.to_compare().count() == 0


def test_a_changed_text_is_compared_anew() -> None:
    memory = kept("Drinks tea.", make_subject())
    compare_approved()
    Memory.objects.filter(pk=memory.pk).update(compared_hash="0" * 64)
    assert list(compare.to_compare()) == [memory]
