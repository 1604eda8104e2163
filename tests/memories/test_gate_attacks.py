"""Attacks by SQL under the agents' role, and the database's refusals.

`docs/database-roles.md` lists what the database cannot refuse.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.utils import DatabaseError, IntegrityError, OperationalError
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.models import AuditEvent
from memadmin.deploy.roles import Roles
from memories_app.learning import signals
from memories_app.models import LearningStop, Memory, MemoryVersion, Review, Signal
from memories_app.review import decisions
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import merge_subjects, subject_for_key
from tests.agents import run_sql, second_connection, value_of
from tests.deploy.connecting import connected_as, refusal
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.memories.queue import a_reviewer, waiting
from tests.memories.test_gate import ada, approved, as_run_of, bob, reviewer, second, told  # noqa: F401

pytestmark = pytest.mark.django_db

PROPOSE = "INSERT INTO memories_app_memory (kind, statement) VALUES ('fact', 'x')"

REFUSED: dict[str, str] = {
    "write a file": "COPY (SELECT statement FROM memories_app_memory) TO '/tmp/never'",
    "read a file": "COPY memories_app_memory (statement) FROM '/etc/hostname'",
    "run a program": "COPY (SELECT 1) TO PROGRAM 'true'",
    "become the web server": 'SET ROLE "{web}"',
    "become the worker": 'SET ROLE "{worker}"',
    "go round the policies": "SET LOCAL row_security = off; SELECT statement FROM memories_app_memory",
    "switch triggers off": "SET session_replication_role = replica",
    "keep reviewers waiting": "SELECT id FROM memories_app_memory FOR UPDATE",
    "keep erasures waiting": "SELECT id FROM memories_app_memory FOR KEY SHARE",
    "keep everybody waiting": "LOCK TABLE memories_app_memory IN ACCESS EXCLUSIVE MODE",
    "keep writers waiting": "LOCK TABLE memories_app_memory IN SHARE MODE",
    "change on conflict": f"{PROPOSE} ON CONFLICT (id) DO UPDATE SET statement = 'y'",
    "change by merging": "MERGE INTO memories_app_memory AS m USING (SELECT 1) AS one ON true"
    " WHEN MATCHED THEN UPDATE SET statement = 'x'",
    "change in a block": "DO $$ BEGIN UPDATE memories_app_memory SET status = 'approved'; END $$",
    "change in a prepared statement": "PREPARE approve AS UPDATE memories_app_memory SET status = 'approved';"
    " EXECUTE approve",
    "change through a cursor": "DECLARE c CURSOR FOR SELECT id FROM memories_app_memory FOR UPDATE",
    "see what it proposed": f"{PROPOSE} RETURNING id",
    "see a column that is not its own": "SELECT risk_flags FROM memories_app_memory",
    "see all columns": "SELECT m FROM memories_app_memory AS m",
    "shadow a table": "CREATE TEMP TABLE memories_app_learningstop (subject_id uuid)",
    "shadow one by selecting": "SELECT 1 INTO TEMP memories_app_learningstop",
    "shadow a function": "CREATE FUNCTION pg_temp.memadmin_run_subjects() RETURNS uuid[] LANGUAGE sql AS 'SELECT NULL'",
    "make a schema": "CREATE SCHEMA mine",
    "make a function": "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "replace a function": "CREATE OR REPLACE FUNCTION memadmin_run_subjects() RETURNS uuid[] LANGUAGE sql"
    " AS 'SELECT 1'",
    "make a policy": "CREATE POLICY mine ON memories_app_memory USING (true)",
    "drop a policy": "DROP POLICY recalled ON memories_app_memory",
    "make a rule of the database": "CREATE RULE mine AS ON INSERT TO memories_app_memory DO INSTEAD NOTHING",
    "put a trigger on it": "CREATE TRIGGER mine BEFORE INSERT ON memories_app_memory EXECUTE FUNCTION"
    " memadmin_keep_version()",
    "ask who a subject is": "SELECT memadmin_subject_group(gen_random_uuid())",
    "record rows": "SELECT memadmin_record_rows('a.b', 'c.d', '{{}}', '{{}}', 1, NULL)",
    "read ids of people": "SELECT key FROM sessions_app_subjectalias",
    "read the registry": "SELECT session_id FROM sessions_app_sessionrecord",
    "read who said no": "SELECT subject_id FROM memories_app_learningstop",
    "say that somebody said no": "INSERT INTO memories_app_learningstop (subject_id) SELECT gen_random_uuid()",
    "read what others were told": "SELECT memory_id FROM memories_app_recalledmemory",
    "read who decided": "SELECT reviewer_id FROM memories_app_review",
    "read rules": "SELECT name FROM memories_app_approvalrule",
    "write a version": "INSERT INTO memories_app_memoryversion (memory_id, number, statement, content_hash)"
    " VALUES (gen_random_uuid(), 1, 'x', 'x')",
    "give an embedding": "INSERT INTO memories_app_memory (kind, statement, embedder) VALUES ('fact', 'x', 'x')",
    "choose when it was proposed": "INSERT INTO memories_app_memory (kind, statement, proposed_at)"
    " VALUES ('fact', 'x', now())",
    "claim a proposal": "INSERT INTO memories_app_memory (kind, statement, claimed_by_id) VALUES ('fact', 'x', 1)",
    "order a job": "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('default', 'x')",
    "pass for a distiller": "INSERT INTO memories_app_memory (kind, statement, extractor)"
    " VALUES ('fact', 'x', 'rules/1')",
    "pass for an import": "INSERT INTO memories_app_memory (kind, statement, extractor)"
    " VALUES ('fact', 'x', 'import/profile')",
    "be of no kind": "INSERT INTO memories_app_memory (kind, statement) VALUES ('order', 'x')",
    "be neither said nor concluded": "INSERT INTO memories_app_memory (kind, statement, provenance)"
    " VALUES ('fact', 'x', 'sworn')",
    "bring a megabyte": "INSERT INTO memories_app_memory (kind, statement) VALUES ('fact', repeat('x', 1000000))",
    "bring a megabyte beside it": "INSERT INTO memories_app_memory (kind, statement, data)"
    " VALUES ('fact', 'x', jsonb_build_object('a', repeat('x', 1000000)))",
    "bring a number of a megabyte": "INSERT INTO memories_app_memory (kind, statement, data)"
    " VALUES ('fact', 'x', to_jsonb(repeat('1', 100000)::numeric))",
    "name a thousand agents": "INSERT INTO memories_app_memory (kind, statement, agents)"
    " VALUES ('fact', 'x', array_fill('x'::text, ARRAY[1000]))",
    "be more than certain": "INSERT INTO memories_app_memory (kind, statement, confidence) VALUES ('fact', 'x', 2)",
    "bring a long quote": "INSERT INTO memories_app_evidence (memory_id, quote)"
    " VALUES (gen_random_uuid(), repeat('x', 5000))",
    "find its own quote": "INSERT INTO memories_app_evidence (memory_id, quote, said_by_user)"
    " VALUES (gen_random_uuid(), 'x', true)",
    "ask whose quote it is": "SELECT memadmin_has_user_quote(gen_random_uuid(), gen_random_uuid())",
    "give a signal of no kind": "INSERT INTO memories_app_signal (kind) VALUES ('bribe')",
}

WORDS = (
    *("permission denied", "must be owner", "must be able to", "row-level security", "violates check constraint"),
    *("must be superuser", "cannot be", "is not proven"),
)


def test_what_an_agent_tries_is_refused(told: Roles) -> None:  # noqa: F811
    with connected_as(told["agents"]):
        answers = {what: refusal(statement.format(**told.names)) for what, statement in REFUSED.items()}
    run_sql("DEALLOCATE PREPARE ALL")
    assert {what: why for what, why in answers.items() if not any(words in why for words in WORDS)} == {}


def test_what_it_tells_of_others_is_refused(told: Roles, ada: Subject, bob: Subject) -> None:  # noqa: F811
    """That it recalled what it may not read, or that another's memory misled it."""
    others = Memory.objects.get(statement="Bob drinks coffee.")
    own = Memory.objects.get(statement="Ada drinks tea.")
    recall = uuid.uuid4()
    recalled = (
        "INSERT INTO memories_app_recalledmemory (recall_id, memory_id, version, place) VALUES ('{}', '{}', 1, 1)"
    )
    signal = "INSERT INTO memories_app_signal (kind, subject_id, memory_id) VALUES ('correction', '{}', '{}')"
    with connected_as(told["agents"]):
        run_sql(as_run_of(ada))
        run_sql(f"INSERT INTO memories_app_recall (id, subject_id) VALUES ('{recall}', '{ada.pk}')")
        assert refusal(recalled.format(recall, own.pk)) == ""
        assert "row-level security" in refusal(recalled.format(recall, others.pk))
        assert refusal(signal.format(ada.pk, own.pk)) == ""
        assert "row-level security" in refusal(signal.format(ada.pk, others.pk))


def test_what_is_hidden_shows_nowhere_else(told: Roles, ada: Subject) -> None:  # noqa: F811
    """Not in what the planner noted, not in an error, not in a statement that was prepared for somebody else."""
    run_sql("ANALYZE memories_app_memory")
    with connected_as(told["agents"]):
        run_sql(as_run_of(ada))
        assert value_of("SELECT count(*) FROM pg_stats WHERE tablename = 'memories_app_memory'") == 0
        said = refusal("SELECT 1 FROM memories_app_memory WHERE statement::int = 1")
        assert "invalid input syntax" in said
        assert not any(words in said for words in ("Bob", "everything", "ill", "late"))
        run_sql("PREPARE mine AS SELECT count(*) FROM memories_app_memory WHERE statement LIKE 'Ada%'")
        run_sql("SELECT set_config('memadmin.subject', '', true)")
        assert value_of("EXECUTE mine") == 0
        run_sql("DEALLOCATE mine")
        assert "invalid input syntax for type uuid" in refusal(
            "SELECT set_config('memadmin.subject', 'nobody', true); SELECT statement FROM memories_app_memory"
        )


def test_an_agent_that_names_a_person_as_who_acts_is_not_believed(told: Roles, reviewer: User) -> None:  # noqa: F811
    mine, person = uuid.uuid4(), uuid.uuid4()
    with connected_as(told["agents"]):
        run_sql(f"SELECT set_config('memadmin.actor', 'person:{person}', true)")
        run_sql(f"INSERT INTO memories_app_memory (id, kind, statement) VALUES ('{mine}', 'fact', 'x')")
    assert MemoryVersion.objects.get(memory=mine).author_kind == "database"
    event = AuditEvent.objects.get(object_ref=mine)
    assert event.actor_kind == "database"
    assert event.actor_ref == event.role_ref
    # The application proves who acts.
    with audit.acting(audit.person(reviewer)):
        other = Memory.objects.create(kind="fact", statement="y")
    assert MemoryVersion.objects.get(memory=other).author_kind == "person"


def test_an_agent_cannot_flood_the_queue(told: Roles, ada: Subject, bob: Subject) -> None:  # noqa: F811
    """With one subject's; each of the others has room of its own. The console itself proposes as many as there are."""
    flood = (
        "INSERT INTO memories_app_memory (kind, statement, subject_id)"
        " SELECT 'fact', 'x' || n, '{}' FROM generate_series(1, {}) AS n"
    )
    with connected_as(told["agents"]):
        run_sql(as_run_of(ada))
        for _ in range(199):
            run_sql(flood.format(ada.pk, 1))
        assert "no other is taken" in refusal(flood.format(ada.pk, 1))
        run_sql(as_run_of(bob))
        assert refusal(flood.format(bob.pk, 1)) == ""
    Memory.objects.create(kind="fact", statement="x", subject=ada)


# --- whom a change is about -------------------------------------------------------------------------------------------


def change(base: Memory, subject: Subject | None) -> str:
    whose = f"'{subject.pk}'" if subject else "NULL"
    return (
        "INSERT INTO memories_app_memory (kind, statement, subject_id, replaces_id, base_version)"
        f" VALUES ('fact', 'Drinks oolong.', {whose}, '{base.pk}', {base.version})"
    )


def test_a_change_is_of_a_memory_about_the_same_subject(told: Roles, ada: Subject, bob: Subject) -> None:  # noqa: F811
    bobs = Memory.objects.get(statement="Bob drinks coffee.")
    shared = Memory.objects.get(statement="The shop closes at six.")
    with connected_as(told["agents"]):
        for base, subject in ((bobs, ada), (bobs, None), (shared, ada)):
            assert "about somebody else" in refusal(as_run_of(ada) + change(base, subject))


def test_a_change_under_another_id_of_the_same_person_can_be_approved(
    told: Roles,  # noqa: F811
    ada: Subject,  # noqa: F811
    bob: Subject,  # noqa: F811
    reviewer: User,  # noqa: F811
) -> None:
    """The hash that is approved has the subject in it: under the agent's own id nobody could approve the change."""
    merge_subjects(bob, ada, by=reviewer)
    base = Memory.objects.get(statement="Bob drinks coffee.")
    with connected_as(told["agents"]):
        run_sql(as_run_of(ada) + change(base, ada))
    proposal = Memory.objects.get(replaces=base)
    Memory.objects.filter(pk=proposal.pk).update(screened_hash=proposal.content_hash)
    proposal.refresh_from_db()
    decisions.approve_memory(
        proposal, by=a_reviewer("third"), content_hash=proposal.content_hash, base_version=base.version
    )
    base.refresh_from_db()
    assert (base.statement, base.subject) == ("Drinks oolong.", bob)


# --- clocks that step back --------------------------------------------------------------------------------------------


def test_a_clock_that_steps_back_keeps_nobody_from_deciding(ada: Subject) -> None:  # noqa: F811
    """What waits since a moment that has not come yet."""
    memory = waiting(subject=ada)
    Memory.objects.filter(pk=memory.pk).update(
        awaiting_since=now() + timedelta(hours=1), proposed_at=now() + timedelta(hours=1)
    )
    memory = decisions.approve_memory(memory, by=a_reviewer("third"), content_hash=memory.content_hash)
    assert memory.status == "approved"
    assert Review.objects.get(memory=memory).waited == timedelta()


# --- somebody says no in the middle -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
class TestSayingNoInTheMiddle:
    def propose(self, link: Any, subject: Subject, table: str = "memory") -> None:
        columns = "(id, kind, statement, subject_id)" if table == "memory" else "(id, kind, text, subject_id)"
        kind = "fact" if table == "memory" else "correction"
        link.execute(
            f"INSERT INTO memories_app_{table} {columns} VALUES (gen_random_uuid(), '{kind}', 'x', %s)", [subject.pk]
        )

    @pytest.mark.parametrize("table", ["memory", "signal"])
    def test_what_is_under_way_is_done_before_it_is_said(self, table: str) -> None:
        subject, person = subject_for_key(SubjectKind.USER, "ada"), a_reviewer("first")
        with second_connection() as agent, somebody_else() as start:
            self.propose(agent, subject, table)
            saying = start(lambda: signals.stop_learning(subject, by=person))
            wait_until_blocked(saying, by=agent)
            assert not LearningStop.objects.exists()
            agent.commit()
            assert saying.result()
        assert Memory.objects.count() + Signal.objects.count() == 1

    @pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
    def test_what_comes_while_it_is_said_is_refused(self, isolation: str) -> None:
        subject = subject_for_key(SubjectKind.USER, "ada")

        def propose() -> None:
            with transaction.atomic():
                run_sql(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
                run_sql("SELECT 1")  # from now on REPEATABLE READ sees what was there
                started.append(1)
                self.propose(connection.cursor(), subject)

        started: list[int] = []
        with second_connection() as person, somebody_else() as start:
            person.execute("INSERT INTO memories_app_learningstop (subject_id) VALUES (%s)", [subject.pk])
            proposing = start(propose)
            wait_until_blocked(proposing, by=person)
            person.commit()
            expected = "Nothing is to be learned" if isolation == "READ COMMITTED" else "could not serialize"
            with pytest.raises((DatabaseError, OperationalError), match=expected):
                proposing.result()
        assert not Memory.objects.exists()

    def test_saying_no_leaves_one_event_and_nothing_of_the_lock(self) -> None:
        subject, person = subject_for_key(SubjectKind.USER, "ada"), a_reviewer("first")
        before = AuditEvent.objects.count()
        signals.stop_learning(subject, by=person)
        types = list(AuditEvent.objects.order_by("number").values_list("type", flat=True)[before:])
        assert "learning.stopped" in types
        assert not [each for each in types if each.startswith("subject.")]

    def test_broken_variant_without_the_lock_something_is_learned_afterwards(self) -> None:
        """That two row locks are what holds: with the checks of before, both come through."""
        subject, person = subject_for_key(SubjectKind.USER, "ada"), a_reviewer("first")
        definition = value_of("SELECT pg_get_functiondef('memadmin_refuse_stopped(uuid)'::regprocedure)")
        run_sql(definition.replace("PERFORM FROM sessions_app_subject", "-- "))
        try:
            with second_connection() as agent:
                self.propose(agent, subject)
                assert signals.stop_learning(subject, by=person)
                agent.commit()
        finally:
            run_sql(definition)
        assert Memory.objects.exists()
        assert LearningStop.objects.exists()


def test_the_console_itself_writes_no_kind_that_there_is_not(ada: Subject) -> None:  # noqa: F811
    with pytest.raises(IntegrityError, match="memory_kind_is_known"), transaction.atomic():
        Memory.objects.create(kind="order", statement="x", subject=ada)
