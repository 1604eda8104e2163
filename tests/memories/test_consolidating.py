"""What ends, what is asked about again, what is marked; and that nothing else happens to a memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.models import AuditEvent
from memadmin.deploy.roles import Roles
from memories_app import jobs
from memories_app.audit_events import RetireReason
from memories_app.dedup import consolidation
from memories_app.dedup.consolidation import LATELY, LOW_CONFIDENCE, UNUSED_AFTER, Consolidated, consolidate, preview
from memories_app.dedup.similarity import ComparedText, Hint, hint_for, normalized, pairs
from memories_app.learning.screening import embed_memories
from memories_app.models import ApprovalRule, Memory, Recall, RecalledMemory
from memories_app.review.decisions import approve_memory, reject_memory
from memories_app.review.undoing import undo_decision
from memories_app.services import retiring
from sessions_app.models import Subject
from tests.builders import make_subject
from tests.deploy.connecting import connected_as
from tests.meanwhile import comes_to_wait, somebody_else
from tests.memories.builders import approval_rule, approved, decided, proposed, reviewer_number, user_quote
from tests.people import proven

DAY = timedelta(days=1)
LONG_AGO = UNUSED_AFTER + DAY


def text(statement: str, key: str = "", **values: Any) -> ComparedText:
    return ComparedText(uuid4(), "fact", key, statement, **values)


class TestPairs:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Drinks tea.", "drinks  TEA"),
            ("Drinks tea", "Drinks\u00a0tea!"),
            ("Straße 5", "STRASSE 5"),
            ("Cafe\u0301", "Caf\u00e9"),
            ("喜欢茶。", "喜欢茶"),
        ],
    )
    def test_the_same_words_are_a_duplicate(self, one: str, other: str) -> None:
        assert hint_for(text(one), text(other), None) == Hint.DUPLICATE

    @pytest.mark.parametrize(("one", "other"), [("Drinks tea.", "Drinks tea at 5."), ("👍", "👎"), ("!", "?")])
    def test_other_words_are_none(self, one: str, other: str) -> None:
        assert hint_for(text(one), text(other), None) is None
        assert normalized(one) != normalized(other)

    def test_the_same_content_is_a_duplicate_and_an_unknown_one_is_not(self) -> None:
        assert hint_for(text("a", content_hash="1"), text("b", content_hash="1"), None) == Hint.DUPLICATE
        assert hint_for(text("a"), text("b"), None) is None

    @pytest.mark.parametrize(("likeness", "hint"), [(0.8, Hint.NEAR_DUPLICATE), (0.79, None), (None, None)])
    def test_what_is_near_is_a_near_duplicate(self, likeness: float | None, hint: Hint | None) -> None:
        assert hint_for(text("Drinks tea."), text("Takes tea."), likeness) == hint

    def test_what_says_something_else_of_the_same_contradicts_however_near(self) -> None:
        one, other = text("Prefers the aisle.", "seat"), text("Prefers the window.", "seat")
        assert hint_for(one, other, 0.95) == Hint.CONTRADICTION
        assert hint_for(one, text("Prefers the window.", "table"), 0.5) is None
        assert hint_for(text("Tea."), text("Coffee."), 0.5) is None, "no key is not the same key"

    def test_what_no_agent_reads_both_of_is_no_pair(self) -> None:
        one = text("Drinks tea.", agents=frozenset({"sales"}))
        assert hint_for(one, text("Drinks tea.", agents=frozenset({"support"})), None) is None
        assert hint_for(one, text("Drinks tea."), None) == Hint.DUPLICATE

    def test_pairs_keep_their_order_and_none_is_with_itself(self) -> None:
        one, other, third = text("a"), text("a"), text("b")
        found = pairs([(one, one, 1.0), (one, other, None), (one, third, None), (other, one, None)])
        assert [(pair.one, pair.other) for pair in found] == [(one.id, other.id), (other.id, one.id)]


def by_rule(statement: str = "Drinks tea.", *, confidence: float = 0.5, age: timedelta = LONG_AGO) -> Memory:
    """A memory that a rule approved, so long ago."""
    memory = proposed(statement, subject=make_subject(), confidence=confidence)
    rule = ApprovalRule.objects.filter(name="all").first() or approval_rule("all")
    user_quote(memory)
    decided(memory, rule)
    with proven(audit.Actor("job", "rules")):
        Memory.objects.filter(pk=memory.pk).update(status="approved", decided_at=now() - age)
    return memory


def by_person(**columns: Any) -> Memory:
    memory = approved(subject=make_subject(), confidence=0.1, **columns)
    Memory.objects.filter(pk=memory.pk).update(decided_at=now() - LONG_AGO)
    return memory


def recall(memory: Memory) -> None:
    told = Recall.objects.create(subject=memory.subject)
    RecalledMemory.objects.create(recall=told, memory=memory, version=1, place=1)


def status(memory: Memory) -> str:
    memory.refresh_from_db()
    return memory.status


def events(kind: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(type=kind).order_by("number"))


@pytest.mark.django_db
class TestEnding:
    def test_what_was_of_no_use_ends_once(self) -> None:
        memory = by_rule()
        assert (consolidate(), consolidate()) == (Consolidated(unused=1), Consolidated())
        assert status(memory) == "expired"
        (event,) = events("memory.expired")
        assert (event.reason_code, event.object_ref, event.subject_ref) == ("unused", memory.pk, memory.subject_id)

    @pytest.mark.parametrize(
        "kept",
        [
            lambda: by_rule(confidence=LOW_CONFIDENCE),
            lambda: by_rule(age=UNUSED_AFTER - DAY),
            lambda: by_person(),
            lambda: by_person(valid_until=now() + DAY),
            lambda: approved(revalidate_on=now().date() + DAY),
        ],
    )
    def test_what_is_certain_new_verified_or_still_valid_stays(self, kept: Callable[[], Memory]) -> None:
        memory = kept()
        assert consolidate() == Consolidated()
        assert status(memory) == "approved"
        assert not events("memory.expired")

    def test_what_a_run_was_told_stays(self) -> None:
        memory = by_rule()
        recall(memory)
        assert consolidate() == Consolidated()
        assert status(memory) == "approved"

    def test_without_asking_who_approved_it_a_persons_memory_would_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What keeps it is that question."""
        memory = by_person()
        monkeypatch.setattr(
            consolidation, "unused", lambda: Memory.objects.filter(status="approved", confidence__lt=LOW_CONFIDENCE)
        )
        consolidate()
        assert status(memory) == "expired"

    @pytest.mark.parametrize("build", [by_rule, by_person])
    def test_what_is_over_ends_whoever_approved_it(self, build: Callable[[], Memory]) -> None:
        memory = build()
        recall(memory)
        Memory.objects.update(valid_until=now())
        assert consolidate() == Consolidated(over=1)
        assert status(memory) == "expired"
        assert [event.reason_code for event in events("memory.expired")] == ["over"]

    def test_who_is_about_to_change_it_is_waited_for(self) -> None:
        memory = by_rule()
        Memory.objects.update(valid_until=now())
        change = proposed("Drinks tea still.", subject=memory.subject, replaces=memory, base_version=1)
        assert consolidate() == Consolidated()
        Memory.objects.filter(pk=change.pk).update(status="rejected")
        assert consolidate() == Consolidated(over=1)

    def test_what_ends_was_not_deleted_and_says_who_ended_it(self) -> None:
        memory = by_rule()
        with audit.acting(audit.Actor("job", "consolidate_memories")):
            consolidate()
        assert memory.versions.count() == 1
        assert {event.actor_kind for event in events("memory.expired")} == {"job"}

    def test_a_batch_is_not_the_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(consolidation, "BATCH", 2)
        for number in range(5):
            by_rule(f"Owns {number} bicycles.")
        assert consolidate() == Consolidated(unused=5)
        assert len(events("memory.expired")) == 5

    def test_what_was_stopped_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(3):
            by_rule(f"Owns {number} bicycles.")
        expire, left = consolidation._expire, [None]

        def until_it_stops(*values: Any) -> None:
            expire(*values)
            left.pop()

        monkeypatch.setattr(consolidation, "_expire", until_it_stops)
        with pytest.raises(IndexError):
            consolidate()
        monkeypatch.undo()
        assert len(events("memory.expired")) == Memory.objects.filter(status="expired").count() == 1
        assert consolidate() == Consolidated(unused=2)


@pytest.mark.django_db
class TestRevalidating:
    @pytest.mark.parametrize("kind", ["procedure", "fact"])
    def test_its_day_has_come(self, kind: str) -> None:
        memory = approved(kind=kind, revalidate_on=now().date())
        assert (consolidate(), consolidate()) == (Consolidated(to_revalidate=1), Consolidated())
        assert status(memory) == "needs_revalidation"
        assert [event.object_ref for event in events("memory.revalidation_asked")] == [memory.pk]

    def test_approved_again_it_stays_for_a_while(self) -> None:
        memory = approved(subject=make_subject(), kind="procedure", revalidate_on=now().date())
        consolidate()
        memory.refresh_from_db()
        approve_memory(memory, by=reviewer_number(7), content_hash=memory.content_hash)
        assert consolidate() == Consolidated()
        assert status(memory) == "approved"

    def test_what_is_over_is_not_asked_about(self) -> None:
        memory = approved(revalidate_on=now().date(), valid_until=now())
        assert consolidate() == Consolidated(over=1)
        assert status(memory) == "expired"


def merged_into(subject: Subject) -> Subject:
    other = make_subject()
    Subject.objects.filter(pk=other.pk).update(merged_into=subject)
    return other


def decide_and_undo(memory: Memory) -> None:
    reviewer = reviewer_number(7)
    reject_memory(memory, by=reviewer, content_hash=memory.content_hash, reason="wrong")
    undo_decision(memory, by=reviewer)


# Given the subject, one of what waits, and one of what is known of it.
CHANGES: dict[str, Callable[[Subject, Memory, Memory], object]] = {
    "something came": lambda subject, other, known: proposed("Owns a bicycle.", subject=subject),
    "of one who is the same": lambda subject, other, known: proposed("Owns a cat.", subject=merged_into(subject)),
    "a decision": lambda subject, other, known: reject_memory(
        other, by=reviewer_number(7), content_hash=other.content_hash, reason="wrong"
    ),
    "a decision undone": lambda subject, other, known: decide_and_undo(other),
    "retired": lambda subject, other, known: retiring.retire_memory(
        known, by=reviewer_number(8), reason=RetireReason.WRONG
    ),
    "asked about again": lambda subject, other, known: retiring.ask_revalidation(known),
    "other words": lambda subject, other, known: Memory.objects.filter(pk=other.pk).update(statement="Owns a car."),
}


def settle() -> None:
    """As if all that happened was long ago."""
    statements = (
        "UPDATE memories_app_memory SET proposed_at = %(at)s, awaiting_since = %(at)s, decided_at = %(at)s",
        "UPDATE memories_app_review SET decided_at = %(at)s",
        "UPDATE memories_app_memoryversion SET created_at = %(at)s",
    )
    with connection.cursor() as cursor:
        # No trigger notes it.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            cursor.execute(statement, {"at": now() - LATELY - DAY})
        cursor.execute("SET LOCAL session_replication_role = origin")


@pytest.mark.django_db
class TestMarking:
    @pytest.fixture
    def subject(self) -> Subject:
        return make_subject()

    def test_a_proposal_that_says_what_is_known_is_marked_and_takes_one_person_as_before(
        self, subject: Subject
    ) -> None:
        approved("Drinks tea.", subject=subject)
        memory = proposed("drinks TEA", subject=subject)
        assert (consolidate(), consolidate()) == (Consolidated(marked=1), Consolidated())
        memory.refresh_from_db()
        assert (memory.hints, memory.status, memory.risk_flags, memory.needs_two) == (
            ["duplicate"],
            "proposed",
            [],
            False,
        )
        (event,) = events("memory.marked")
        assert event.counters == {"duplicate": 1, "near_duplicate": 0, "contradiction": 0}
        approve_memory(memory, by=reviewer_number(7), content_hash=memory.content_hash)
        assert status(memory) == "approved"

    def test_a_contradiction(self, subject: Subject) -> None:
        known = approved("Prefers the aisle.", subject=subject, key="seat")
        memory = proposed("Prefers the window.", subject=subject, key="seat")
        proposed("Prefers the window.", subject=make_subject(), key="seat")
        proposed("Prefers stairs.", subject=subject, key="seat", kind="procedure")
        assert consolidate() == Consolidated(marked=1)
        memory.refresh_from_db()
        known.refresh_from_db()
        assert (memory.hints, known.hints) == (["contradiction"], []), "what is approved is nobody's to decide now"

    @pytest.mark.parametrize("is_shared", [False, True])
    def test_a_near_duplicate_once_both_have_vectors(
        self, subject: Subject, new_vector_index: None, is_shared: bool
    ) -> None:
        owner = None if is_shared else subject
        approved("Drinks tea in the morning.", subject=owner)
        approved("Owns a bicycle.", subject=owner)
        memory = proposed("Drinks tea every single morning.", subject=owner)
        assert consolidate() == Consolidated()
        embed_memories()
        assert consolidate() == Consolidated(marked=1)
        memory.refresh_from_db()
        assert memory.hints == ["near_duplicate"]

    def test_what_all_share_is_compared_by_its_words_and_key_without_vectors(self, subject: Subject) -> None:
        approved("Refunds take five days.", key="refunds")
        proposed("Refunds take five days!", subject=subject)
        same, other = proposed("refunds take FIVE days"), proposed("Refunds take a week.", key="refunds")
        assert consolidate() == Consolidated(marked=2)
        same.refresh_from_db()
        other.refresh_from_db()
        assert (same.hints, other.hints) == (["duplicate"], ["contradiction"])

    def test_a_change_is_not_held_against_what_it_changes(self, subject: Subject) -> None:
        known = approved("Prefers the aisle.", subject=subject, key="seat", revalidate_on=now().date())
        proposed("Prefers the window.", subject=subject, key="seat", replaces=known, base_version=1)
        assert consolidate() == Consolidated(to_revalidate=1)
        assert not Memory.objects.exclude(hints=[])

    def test_two_proposals_are_marked_both_and_no_more_when_one_is_gone(self, subject: Subject) -> None:
        one, other = proposed("Drinks tea.", subject=subject), proposed("Drinks tea.", subject=subject)
        assert consolidate() == Consolidated(marked=2)
        Memory.objects.filter(pk=one.pk).update(status="rejected")
        assert consolidate() == Consolidated(marked=1)
        other.refresh_from_db()
        assert other.hints == []
        assert Memory.objects.count() == 2

    def test_who_is_one_person_by_now_is_compared_as_one(self, subject: Subject) -> None:
        merged = make_subject()
        approved("Drinks tea.", subject=merged)
        memory = proposed("Drinks tea.", subject=subject)
        Subject.objects.filter(pk=merged.pk).update(merged_into=subject)
        assert consolidate() == Consolidated(marked=1)
        memory.refresh_from_db()
        assert memory.hints == ["duplicate"]

    @pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in CHANGES.items()])
    def test_each_hour_looks_where_something_changed(
        self, subject: Subject, change: Callable[[Subject, Memory, Memory], object]
    ) -> None:
        other, known = proposed("Drinks tea.", subject=subject), approved("Drinks tea.", subject=subject)
        waits, somebodys = proposed("drinks tea", subject=subject), proposed("Drinks tea.", subject=make_subject())
        shared = proposed("Drinks tea.")
        consolidate()
        settle()
        assert consolidation._to_compare(LATELY) == []
        change(subject, other, known)
        looked_at = consolidation._to_compare(LATELY)
        assert waits.pk in looked_at
        assert not {somebodys.pk, shared.pk} & set(looked_at)
        consolidate(within=LATELY)
        assert consolidate().marked == 0, "what was left out was marked rightly"

    def test_each_hour_looks_at_what_all_share_where_something_of_it_changed(self, subject: Subject) -> None:
        waits, somebodys = proposed("Refunds take a week."), proposed("Refunds take a week.", subject=subject)
        settle()
        new = proposed("Refunds take a week.")
        assert set(consolidation._to_compare(LATELY)) == {waits.pk, new.pk}
        assert somebodys.pk in consolidation._to_compare(None)

    def test_a_text_that_changed_since_it_was_compared_is_not_marked(self, subject: Subject) -> None:
        approved("Drinks tea.", subject=subject)
        memory = proposed("Drinks tea.", subject=subject)
        ((key, found),) = consolidation._wrongly_marked()
        Memory.objects.filter(pk=memory.pk).update(statement="Owns a bicycle.")
        assert not consolidation._mark(key, found)
        assert not events("memory.marked")

    def test_batches(self, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(consolidation, "BATCH", 2)
        for _ in range(5):
            proposed("Drinks tea.", subject=subject)
        assert (consolidate(), consolidate()) == (Consolidated(marked=5), Consolidated())


@pytest.mark.django_db
def test_a_preview_says_what_the_run_then_does_and_changes_nothing() -> None:
    both = by_rule("Has been to Rome.")
    Memory.objects.filter(pk=both.pk).update(valid_until=now(), revalidate_on=now().date())
    unused = by_rule("Has been to Oslo.")
    Memory.objects.filter(pk=unused.pk).update(revalidate_on=now().date())
    approved("Go left.", kind="procedure", revalidate_on=now().date())
    subject = make_subject()
    approved("Drinks tea.", subject=subject)
    proposed("Drinks tea.", subject=subject)
    shown = StringIO()
    call_command("consolidate", "--preview", "--json", stdout=shown)
    assert json.loads(shown.getvalue()) == {
        "is_preview": True,
        "over": 1,
        "unused": 1,
        "to_revalidate": 1,
        "marked": 1,
        "to_end": 0,
    }
    assert not events("memory.expired")
    assert preview() == Consolidated(over=1, unused=1, to_revalidate=1, marked=1) == consolidate()
    told = StringIO()
    call_command("consolidate", stdout=told)
    assert "returned to the review queue: 0" in told.getvalue()


@pytest.mark.django_db
def test_the_job_does_it_unless_its_tick_is_old() -> None:
    memory = by_rule()
    jobs.consolidate_memories(timestamp=0)
    assert status(memory) == "approved"
    jobs.consolidate_memories(timestamp=int(now().timestamp()))
    assert status(memory) == "expired"


def test_the_job_looks_at_all_that_waits_once_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(jobs, "is_stale", lambda timestamp: False)
    monkeypatch.setattr(consolidation, "consolidate", lambda *, within: asked.append(within))
    for hour in range(24):
        jobs.consolidate_memories(timestamp=20_000 * 86_400 + hour * 3_600 + 23 * 60)
    assert asked == [None] + [LATELY] * 23


def test_the_worker_may(agents_role: Roles) -> None:
    """Under its role in the database."""
    memory = by_rule()
    subject = make_subject()
    approved("Drinks tea.", subject=subject)
    proposed("Drinks tea.", subject=subject)
    with connected_as(agents_role["worker"]), audit.acting(audit.Actor("job", "consolidate_memories")):
        assert consolidate() == Consolidated(unused=1, marked=1)
    assert status(memory) == "expired"


@pytest.mark.django_db(transaction=True)
class TestTwoAtOnce:
    def test_each_change_is_made_and_recorded_once(self) -> None:
        ending, again = by_rule(), approved(kind="procedure", revalidate_on=now().date())
        subject = make_subject()
        approved("Drinks tea.", subject=subject)
        proposed("Drinks tea.", subject=subject)
        with somebody_else() as start:
            with transaction.atomic():
                mine = consolidate()
                late = start(consolidate)
                assert comes_to_wait(late)
            assert late.result() == Consolidated()
        assert mine == Consolidated(unused=1, to_revalidate=1, marked=1)
        assert (status(ending), status(again)) == ("expired", "needs_revalidation")
        for kind in ("memory.expired", "memory.revalidation_asked", "memory.marked"):
            assert len(events(kind)) == 1

    def test_what_was_retired_meanwhile_stays_retired(self) -> None:
        memory = by_rule()
        with somebody_else() as start:
            with transaction.atomic():
                retiring.retire_memory(memory, by=reviewer_number(1), reason=RetireReason.WRONG)
                late = start(consolidate)
                assert comes_to_wait(late)
            assert late.result() == Consolidated()
        assert status(memory) == "retired"
