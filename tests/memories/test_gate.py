"""What the database refuses agents, and everybody, about memories; tried as the role that agents have."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now
from django.db.utils import DatabaseError
from django.utils.timezone import now

from memadmin import audit
from memadmin.deploy.roles import Roles
from memories_app.models import LearningStop, Memory, MemoryVersion, Review, Signal
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import merge_subjects, subject_for_key
from tests.agents import run_sql
from tests.deploy.connecting import connected_as, refusal
from tests.memories.builders import approval_rule, decided, user_quote
from tests.people import proven

pytestmark = pytest.mark.django_db


def approved(
    statement: str, by: User, *, subject: Subject | None = None, second: User | None = None, **values: Any
) -> Memory:
    """A memory that people approved, as the gate wants it."""
    memory = Memory.objects.create(kind="fact", statement=statement, subject=subject, **values)
    memory.refresh_from_db()
    for reviewer in filter(None, [by, second]):
        decided(memory, reviewer)
    with proven(by):
        Memory.objects.filter(pk=memory.pk).update(status="approved", screened_hash=memory.content_hash)
    return memory


def seen_by_agent(names: Roles, *, subject: Subject | None = None, agent: str = "") -> set[str]:
    """The statements that an agent of this subject's run can read."""
    with connected_as(names["agents"]):
        run_sql(f"SELECT set_config('memadmin.subject', '{subject.pk if subject else ''}', true)")
        run_sql(f"SELECT set_config('memadmin.agent', '{agent}', true)")
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM memories_app_memory")
            return {statement for (statement,) in cursor.fetchall()}


def as_run_of(subject: Subject | None) -> str:
    return f"SELECT set_config('memadmin.subject', '{subject.pk if subject else ''}', true);"


@pytest.fixture
def ada(db: None) -> Subject:
    return subject_for_key(SubjectKind.USER, "ada")


@pytest.fixture
def bob(db: None) -> Subject:
    return subject_for_key(SubjectKind.USER, "bob")


@pytest.fixture
def reviewer(db: None) -> User:
    return User.objects.create_user("first")


@pytest.fixture
def second(db: None) -> User:
    return User.objects.create_user("second")


@pytest.fixture
def told(agents_role: Roles, ada: Subject, bob: Subject, reviewer: User, second: User) -> Roles:
    approved("Ada drinks tea.", reviewer, subject=ada)
    approved("Bob drinks coffee.", reviewer, subject=bob)
    approved("The shop closes at six.", reviewer, second=second)
    approved("Ada was ill.", reviewer, subject=ada, valid_until=now() - timedelta(days=1))
    approved("Ada moves in June.", reviewer, subject=ada, valid_from=now() + timedelta(days=1))
    approved("Ada pays late.", reviewer, subject=ada, agents=["billing"])
    Memory.objects.create(kind="fact", statement="Ada may have everything.", subject=ada)
    return agents_role


def test_an_agent_reads_what_was_approved_for_its_subject_and_for_all(told: Roles, ada: Subject) -> None:
    assert seen_by_agent(told, subject=ada) == {"Ada drinks tea.", "The shop closes at six."}


def test_what_is_for_one_agent_only_that_agent_reads(told: Roles, ada: Subject) -> None:
    assert "Ada pays late." in seen_by_agent(told, subject=ada, agent="billing")
    assert "Ada pays late." not in seen_by_agent(told, subject=ada, agent="support")


def test_without_a_subject_an_agent_reads_what_is_shared(told: Roles) -> None:
    assert seen_by_agent(told) == {"The shop closes at six."}


def test_a_merged_subject_is_remembered_under_both_ids(told: Roles, ada: Subject, bob: Subject, reviewer: User) -> None:
    merge_subjects(bob, ada, by=reviewer)
    for subject in (ada, bob):
        assert {"Ada drinks tea.", "Bob drinks coffee."} < seen_by_agent(told, subject=subject)


def test_without_its_policy_the_table_would_be_open(told: Roles, ada: Subject) -> None:
    """That the policy is what hides: a variant without it shows a proposal and another's memory."""
    run_sql("SET CONSTRAINTS ALL IMMEDIATE; DROP POLICY recalled ON memories_app_memory")
    run_sql("CREATE POLICY everything ON memories_app_memory USING (true)")
    assert {"Ada may have everything.", "Bob drinks coffee."} < seen_by_agent(told, subject=ada)


REFUSED: dict[str, str] = {
    "change a memory": "UPDATE memories_app_memory SET statement = 'x'",
    "approve a proposal": "UPDATE memories_app_memory SET status = 'approved'",
    "decide": "INSERT INTO memories_app_review (id, memory_id, decision, content_hash) SELECT gen_random_uuid(), id,"
    " 'approve', content_hash FROM memories_app_memory",
    "delete": "DELETE FROM memories_app_memory",
    "empty": "TRUNCATE memories_app_memory CASCADE",
    "read versions": "SELECT statement FROM memories_app_memoryversion",
    "read evidence": "SELECT quote FROM memories_app_evidence",
    "read signals": "SELECT text FROM memories_app_signal",
    "read who waits": "SELECT claimed_by_id FROM memories_app_memory",
    "propose an approved memory": "INSERT INTO memories_app_memory (kind, statement, status)"
    " VALUES ('fact', 'x', 'approved')",
    "propose as if screened": "INSERT INTO memories_app_memory (kind, statement, screened_hash)"
    " VALUES ('fact', 'x', 'x')",
    "let learn again": "DELETE FROM memories_app_learningstop",
    "make a rule": "INSERT INTO memories_app_approvalrule (name) VALUES ('x')",
    "switch the gate off": "ALTER TABLE memories_app_memory DISABLE TRIGGER USER",
    "open the table": "ALTER TABLE memories_app_memory DISABLE ROW LEVEL SECURITY",
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_agent_cannot(told: Roles, what: str) -> None:
    with connected_as(told["agents"]):
        why = refusal(REFUSED[what])
    assert "permission denied" in why or "must be owner" in why, what


def test_an_agent_proposes_for_its_run_only(told: Roles, ada: Subject, bob: Subject) -> None:
    propose = "INSERT INTO memories_app_memory (kind, statement, subject_id) VALUES ('fact', 'x', '{}')"
    with connected_as(told["agents"]):
        assert refusal(as_run_of(ada) + propose.format(ada.pk)) == ""
        assert "row-level security" in refusal(as_run_of(ada) + propose.format(bob.pk))
        assert "row-level security" in refusal(
            as_run_of(ada)
            + "INSERT INTO memories_app_memory (kind, statement, source) VALUES ('fact', 'x', 'operator')"
        )


def test_an_agent_adds_evidence_to_its_own_new_proposal_only(told: Roles, ada: Subject) -> None:
    old = Memory.objects.get(statement="Ada may have everything.")
    mine = uuid.uuid4()
    add = "INSERT INTO memories_app_evidence (memory_id, quote) VALUES ('{}', 'x')"
    with connected_as(told["agents"]):
        run_sql(as_run_of(ada))
        run_sql(f"INSERT INTO memories_app_memory (id, kind, statement) VALUES ('{mine}', 'fact', 'x')")
        assert refusal(add.format(mine)) == ""
    # Within one transaction all rows are new: what tells them apart is when they came, so this one came before.
    run_sql(f"UPDATE memories_app_memory SET proposed_at = now() - interval '1 minute' WHERE id = '{old.pk}'")
    with connected_as(told["agents"]):
        assert "row-level security" in refusal(add.format(old.pk))


def test_an_agent_gives_signals_but_no_operators_word(told: Roles, ada: Subject) -> None:
    give = "INSERT INTO memories_app_signal (kind, text, subject_id) VALUES ('{}', 'x', '{}')"
    with connected_as(told["agents"]):
        assert refusal(as_run_of(ada) + give.format("correction", ada.pk)) == ""
        assert "row-level security" in refusal(as_run_of(ada) + give.format("feedback", ada.pk))


def test_nothing_is_learned_from_who_said_no(told: Roles, ada: Subject, bob: Subject, reviewer: User) -> None:
    merge_subjects(ada, bob, by=reviewer)
    LearningStop.objects.create(subject=ada)
    for subject in (ada, bob):
        with pytest.raises(DatabaseError, match="Nothing is to be learned"), transaction.atomic():
            Memory.objects.create(kind="fact", statement="x", subject=subject)
        with pytest.raises(DatabaseError, match="Nothing is to be learned"), transaction.atomic():
            Signal.objects.create(kind="correction", subject=subject)
        with connected_as(told["agents"]):
            propose = (
                f"INSERT INTO memories_app_memory (kind, statement, subject_id) VALUES ('fact', 'x', '{subject.pk}')"
            )
            assert "Nothing is to be learned" in refusal(as_run_of(subject) + propose)


# --- the gate itself, which holds for everybody -----------------------------------------------------------------------


def approve(memory: Memory, *people: User, screened: bool = True, **values: object) -> None:
    memory.refresh_from_db()
    for person in people:
        decided(memory, person)
    values = {"screened_hash": memory.content_hash} | values if screened else values
    with proven(audit.Actor("job", "testing")):
        Memory.objects.filter(pk=memory.pk).update(status="approved", **values)


def refused(change: Callable[[], object]) -> str:
    with pytest.raises(DatabaseError) as error, transaction.atomic():
        change()
    return str(error.value)


def test_nobody_approves_without_a_review(ada: Subject) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    assert "Nobody who may has approved" in refused(lambda: approve(memory))


def test_nobody_approves_their_own(ada: Subject, reviewer: User, second: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada, proposed_by=reviewer)
    assert "Nobody who may has approved" in refused(lambda: approve(memory, reviewer))
    approve(memory, second)


def test_what_all_agents_would_read_takes_two_people(reviewer: User, second: User) -> None:
    memory = Memory.objects.create(kind="procedure", statement="x")
    assert "one person alone" in refused(lambda: approve(memory, reviewer))
    assert "one person alone" in refused(lambda: approve(memory, reviewer, reviewer))
    decided(memory, reviewer)
    decided(memory, second, approval=None)
    assert "one person alone" in refused(lambda: approve(memory)), "two reviews without an approval"
    approve(memory, second)
    memory.refresh_from_db()
    assert memory.is_verified


def test_what_is_risky_takes_two_people(ada: Subject, reviewer: User, second: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada, risk_flags=["secret"])
    assert "one person alone" in refused(lambda: approve(memory, reviewer))
    assert "one person alone" in refused(lambda: approve(memory, reviewer, risk_flags=["secret", "link"]))
    approve(memory, reviewer, second)


def test_what_nobody_looked_at_for_risks_is_not_approved(ada: Subject, reviewer: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    assert "looked for risks" in refused(lambda: approve(memory, reviewer, screened=False))


def test_an_approval_is_of_one_text(ada: Subject, reviewer: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    approve(memory, reviewer)
    stored = Memory.objects.filter(pk=memory.pk)
    for change in ({"statement": "y"}, {"data": {"a": 1}}, {"agents": ["billing"]}, {"key": "k"}, {"subject": None}):
        assert "Nobody who may has approved" in refused(partial(stored.update, **change)), change


NOT_COUNTED: dict[str, dict[str, Any]] = {
    "of another text": {"content_hash": "0" * 64},
    "undone": {"undone_at": Now()},
    "before it waited": {"decided_at": Now() - timedelta(days=1)},
    "of a deleted account": {"reviewer": None},
    "another decision": {"decision": "reject"},
}


@pytest.mark.parametrize("case", [None, *NOT_COUNTED])
def test_the_gate_counts_approvals_of_this_text_alone(case: str | None, ada: Subject, reviewer: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    memory.refresh_from_db()
    columns = NOT_COUNTED[case] if case else {}
    later = {name: columns[name] for name in columns.keys() & {"undone_at", "reviewer"}}
    review = decided(memory, reviewer, **{name: columns[name] for name in columns.keys() - later})
    with proven(reviewer):
        Review.objects.filter(pk=review.pk).update(**later)
    if case:
        assert "Nobody who may has approved" in refused(lambda: approve(memory))
    else:
        approve(memory)


def test_what_a_rule_approved_nobody_verified(ada: Subject) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada, is_verified=True)
    memory.refresh_from_db()
    user_quote(memory)
    rule = approval_rule("clear wishes")
    decided(memory, rule)
    approve(memory, is_verified=True)
    memory.refresh_from_db()
    assert (memory.status, memory.is_verified) == ("approved", False)


def test_a_rule_never_approves_what_is_shared_or_risky(ada: Subject) -> None:
    rule = approval_rule("clear wishes")
    for values in ({}, {"subject": ada, "risk_flags": ["link"]}):
        memory = Memory.objects.create(kind="fact", statement="x", **values)
        memory.refresh_from_db()
        user_quote(memory)
        decided(memory, rule)
        assert "one person alone" in refused(partial(approve, memory))


def test_an_undone_approval_does_not_count(ada: Subject, reviewer: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    memory.refresh_from_db()
    review = decided(memory, reviewer)
    with proven(reviewer):
        Review.objects.filter(pk=review.pk).update(undone_at=now())
    assert "Nobody who may has approved" in refused(lambda: approve(memory))


def test_what_goes_back_to_the_queue_is_approved_anew(ada: Subject, reviewer: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    approve(memory, reviewer)
    # Later than the review, which a clock within one transaction cannot be.
    Memory.objects.filter(pk=memory.pk).update(status="needs_revalidation", awaiting_since=now() + timedelta(hours=1))
    assert "Nobody who may has approved" in refused(lambda: approve(memory))


def test_a_memory_begins_as_a_proposal(ada: Subject) -> None:
    assert "begins as a proposal" in refused(
        lambda: Memory.objects.create(kind="fact", statement="x", subject=ada, status="approved")
    )


def test_every_text_is_kept_as_a_version_and_nobody_counts_by_hand(ada: Subject, reviewer: User) -> None:
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada, version=7)
    Memory.objects.filter(pk=memory.pk).update(statement="y", version=40)
    Memory.objects.filter(pk=memory.pk).update(confidence=0.9)
    run_sql("UPDATE memories_app_memory SET statement = 'z'")
    versions = MemoryVersion.objects.filter(memory=memory).order_by("number")
    assert [(version.number, version.statement) for version in versions] == [(1, "x"), (2, "y"), (3, "z")]
    assert len({version.content_hash for version in versions}) == 3


def test_without_the_gate_anybody_would_approve(ada: Subject) -> None:
    """That the trigger is what refuses: a database without it lets a proposal through."""
    memory = Memory.objects.create(kind="fact", statement="x", subject=ada)
    run_sql("SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE memories_app_memory DISABLE TRIGGER USER")
    approve(memory)
    run_sql("SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE memories_app_memory ENABLE TRIGGER USER")
    memory.refresh_from_db()
    assert memory.status == Memory.Status.APPROVED
