"""What is under a legal hold is not deleted: by a service, by a raw edit, in SQL, or in the middle of an erasure."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from agents import SQLiteSession
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from psycopg import IsolationLevel

from memadmin import audit
from memadmin.accounts.approvals.services import NotAllowed
from memadmin.migrating import sql_text
from memadmin.retention.holds.guard import OnLegalHold
from memadmin.retention.holds.services import (
    DeletionUnderWay,
    reject_release,
    release_hold,
    request_release,
)
from memadmin.retention.models import LegalHold
from memories_app.audit_events import EraseReason
from memories_app.models import Evidence, Memory, Recall, Signal
from memories_app.services.erasing import erase_version
from memories_app.services.refusals import UnderHold
from sessions_app.audit_events import RedactReason
from sessions_app.models import AgentMessage, SessionRecord, SessionStore
from sessions_app.redaction.services import RedactionRequest, redact_about
from sessions_app.services import raw_edits, re_erasure, subjects
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.services.sessions import attach_sessions, detach_sessions, label_sessions, unlabel_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from tests.agents import add_items, attach_main_store, run_sql, second_connection, value_of
from tests.approvals import shown
from tests.builders import make_session, make_subject
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.memories.builders import approved
from tests.people import person
from tests.retention.builders import make_hold, released
from tests.runs.working import report_of, work_off

ERASE = "UPDATE sessions_app_sessionrecord SET erased_at = now() WHERE session_id = 'a' AND erased_at IS NULL"


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    user = person("compliance", "reviewer")
    return user


def test_a_session_is_held_by_itself_a_label_its_subject_or_what_that_was_merged_into(
    officer: User, second: User
) -> None:
    source, remaining = make_subject("a"), make_subject("b")
    record = make_session("a", subject=source, labels=["dispute"])
    subjects.merge_subjects(source, remaining, by=officer)
    stranger = make_subject("c")
    other = make_session("other", subject=stranger)
    for covers in (record, "dispute", source, remaining):
        hold = make_hold(covers, by=officer)
        with pytest.raises(OnLegalHold) as refused, transaction.atomic():
            check_deletion(records=[record.pk, other.pk])
        assert f"H-{hold.number}" in str(refused.value)
        with pytest.raises(DatabaseError, match=f"H-{hold.number}"), transaction.atomic():
            run_sql(ERASE)
        with pytest.raises(DatabaseError, match=f"H-{hold.number}"), transaction.atomic():
            record.delete()
        with transaction.atomic():
            check_deletion(records=[other.pk], subjects=[stranger.pk])
        released(hold, by=officer, second=second)
        with transaction.atomic():
            check_deletion(records=[record.pk], subjects=[source.pk])
    run_sql(ERASE)


def test_it_holds_sessions_that_come_later(officer: User) -> None:
    subject = make_subject("a")
    make_hold(subject, by=officer)
    make_hold("dispute", by=officer)
    for later in (make_session(subject=subject), make_session(labels=["x", "dispute"])):
        with pytest.raises(OnLegalHold), transaction.atomic():
            check_deletion(records=[later.pk])


def test_a_session_does_not_leave_a_hold_by_its_subject_or_its_labels(officer: User, second: User) -> None:
    subject, stranger = make_subject("a"), make_subject("b")
    record = make_session("a", subject=subject, labels=["dispute"])
    label_hold, subject_hold = make_hold("dispute", by=officer), make_hold(subject, by=officer)
    for leave in (
        lambda: detach_sessions([record], by=officer),
        lambda: attach_sessions([record], stranger, by=officer),
        lambda: unlabel_sessions([record], "dispute", by=officer),
    ):
        with pytest.raises(DeletionRefused, match="stay until the hold is released"):
            leave()  # type: ignore[no-untyped-call]
    assert label_sessions([record], "urgent", by=officer) == 1
    record.refresh_from_db()
    assert (record.subject, record.labels) == (subject, ["dispute", "urgent"])
    # An agent that registers another subject goes on, and the session stays with the first.
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_register_session('main', 'a', 'user', 'b')")
    record.refresh_from_db()
    assert record.subject == subject
    released(label_hold, by=officer, second=second)
    unlabel_sessions([record], "dispute", by=officer)
    released(subject_hold, by=officer, second=second)
    assert detach_sessions([record], by=officer) == 1


def test_a_merge_into_a_held_subject_is_not_undone(officer: User) -> None:
    source, remaining = make_subject("a"), make_subject("b")
    subjects.merge_subjects(source, remaining, by=officer)
    make_hold(remaining, by=officer)
    source.refresh_from_db()
    with pytest.raises(DeletionRefused, match="the merge stays"):
        subjects.undo_merge(source, by=officer)
    assert subjects.merge_target(source) == remaining


def test_what_was_learned_stays(officer: User, second: User) -> None:
    subject = make_subject("a")
    record = make_session("a", subject=subject)
    memory = approved("Drinks tea.", subject=subject)
    shared = approved("Refunds take three days.")
    rows = [
        Evidence.objects.create(memory=shared, record_id=record.pk, quote="tea"),
        Signal.objects.create(kind="correction", text="tea", subject=subject),
        Recall.objects.create(record_id=record.pk),
        memory,
    ]
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.NEEDS_REVALIDATION, statement="Drinks green tea.")
    hold = make_hold(subject, by=officer)
    with pytest.raises(UnderHold, match=f"H-{hold.number}"):
        erase_version(memory.versions.get(number=1), by=officer, reason=EraseReason.WRONG)
    with pytest.raises(DatabaseError, match=f"H-{hold.number}"), transaction.atomic():
        run_sql("UPDATE memories_app_memoryversion SET statement = '', data = '{}', erased_at = now()")
    for row in rows:
        with pytest.raises(DatabaseError, match=f"H-{hold.number}"), transaction.atomic():
            row.delete()
    shared.refresh_from_db()
    released(hold, by=officer, second=second)
    erase_version(memory.versions.get(number=1), by=officer, reason=EraseReason.WRONG)
    for row in rows:
        row.delete()


def test_a_hold_is_neither_deleted_nor_changed_nor_put_in_force_again(officer: User, second: User) -> None:
    hold = make_hold("dispute", by=officer)
    for statement in (
        "DELETE FROM retention_legalhold",
        "TRUNCATE retention_legalhold",
        "UPDATE retention_legalhold SET label = 'other'",
        "UPDATE retention_legalhold SET released_at = now()",
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            run_sql(statement)
    released(hold, by=officer, second=second)
    with pytest.raises(DatabaseError, match="Place a new one"), transaction.atomic():
        run_sql("UPDATE retention_legalhold SET released_at = NULL")
    assert LegalHold.objects.get().is_released


def test_only_a_released_hold_can_lose_the_id_of_its_session(officer: User, second: User) -> None:
    hold = make_hold(make_session("a"), by=officer)
    lose, change = "UPDATE retention_legalhold SET session_id = ''", "UPDATE retention_legalhold SET session_id = 'b'"
    for statement in (lose, change):
        with pytest.raises(DatabaseError, match="is not changed"), transaction.atomic():
            run_sql(statement)
    released(hold, by=officer, second=second)
    with pytest.raises(DatabaseError, match="Place a new one"), transaction.atomic():
        run_sql(change)
    with pytest.raises(DatabaseError, match="Place a new one"), transaction.atomic():
        run_sql("UPDATE retention_legalhold SET session_id = '', reason = 'another'")
    run_sql(lose)
    assert LegalHold.objects.get().session_id == ""


def test_a_memory_is_kept_with_every_session_that_it_was_learned_from(officer: User) -> None:
    held, other = make_session("a"), make_session("b")
    memory = approved("Refunds take three days.")
    for record in (held, other):
        Evidence.objects.create(memory=memory, record_id=record.pk, quote="three days")
    Memory.objects.filter(pk=memory.pk).update(
        status=Memory.Status.NEEDS_REVALIDATION, statement="Refunds take a week."
    )
    make_hold(held, by=officer)
    with pytest.raises(DatabaseError, match="legal hold"), transaction.atomic():
        run_sql("UPDATE memories_app_memoryversion SET statement = '', data = '{}', erased_at = now() WHERE number = 1")
    with pytest.raises(DatabaseError, match="legal hold"), transaction.atomic():
        memory.delete()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories_app_signal SET text = ''",
        "UPDATE memories_app_signal SET subject_id = NULL, record_id = NULL",
        "UPDATE memories_app_evidence SET quote = ''",
        "UPDATE memories_app_evidence SET record_id = NULL",
        "UPDATE memories_app_memory SET subject_id = NULL",
        "UPDATE sessions_app_sessionrecord SET id = gen_random_uuid()",
        "UPDATE sessions_app_sessionrecord SET session_id = 'elsewhere'",
        "UPDATE retention_legalhold SET released_at = now()",
    ],
)
def test_sql_gets_around_no_hold(statement: str, officer: User) -> None:
    subject = make_subject("a")
    record = make_session("a", subject=subject)
    memory = approved("Drinks tea.", subject=subject)
    Evidence.objects.create(memory=memory, record_id=record.pk, quote="tea")
    Signal.objects.create(kind="correction", text="tea", subject=subject, record_id=record.pk)
    make_hold(record, by=officer), make_hold(subject, by=officer)
    with pytest.raises(DatabaseError, match=r"legal hold|second person"), transaction.atomic():
        run_sql(statement)


def test_a_subject_that_leads_to_a_held_one_is_not_deleted(officer: User) -> None:
    source, remaining = make_subject("a"), make_subject("b")
    subjects.merge_subjects(source, remaining, by=officer)
    make_hold(remaining, by=officer)
    with pytest.raises(DatabaseError, match="the merge stays"), transaction.atomic():
        run_sql(f"DELETE FROM sessions_app_subjectalias; DELETE FROM sessions_app_subject WHERE id = '{source.pk}'")


def test_a_release_of_a_deleted_account_is_requested_again(officer: User, second: User) -> None:
    hold = make_hold("dispute", by=second)
    asked = request_release(hold, reason="settled", by=officer)
    officer.delete()
    for by in (second, person("compliance", "auditor")):
        with pytest.raises(NotAllowed, match="was deleted"):
            release_hold(asked, by=by, shown=shown(asked))
    reject_release(asked, by=second)
    released(hold, by=second, second=User.objects.get(username="compliance-auditor"))


class TestStores:
    @pytest.fixture
    def store(self, agent_tables: None) -> SessionStore:
        return attach_main_store()

    @pytest.fixture
    def record(self, store: SessionStore) -> SessionRecord:
        add_items("a", "Tea, please.", "And milk.")
        SessionRecord.objects.filter(session_id="a").update(subject=make_subject("a"))
        return SessionRecord.objects.select_related("store", "subject").get(session_id="a")

    def test_an_erasure_in_steps_stops_at_the_hold(self, record: SessionRecord, officer: User) -> None:
        make_hold(record, by=officer)
        with pytest.raises(DatabaseError, match="legal hold"):
            backend_for(record.store).erase_session("a")
        assert value_of("SELECT count(*) FROM agent_messages") == 2

    def test_so_does_one_in_a_store_without_triggers(self, officer: User, tmp_path: Path, agent_tables: None) -> None:
        store = declare_store("files", kind="sqlite", options={"path": str(tmp_path / "sessions.db")})
        session = SQLiteSession("a", tmp_path / "sessions.db")
        add_to(session, "Tea, please.")
        record = make_session("a", store=store)
        make_hold(record, by=officer)
        with pytest.raises(DatabaseError, match="legal hold"):
            backend_for(store).erase_session("a")
        assert backend_for(store).count("a") == 1

    def test_a_redaction_leaves_it_and_goes_on_with_the_rest(self, record: SessionRecord, officer: User) -> None:
        subject = record.subject
        assert subject
        add_items("b", "Tea, please.")
        SessionRecord.objects.filter(session_id="b").update(subject=subject)
        memory = approved("Wants Tea, please.", subject=subject)
        make_hold(record, by=officer)
        asked = redact_about(subject, RedactionRequest("Tea, please.", reason=RedactReason.MISTAKE, by=officer))
        work_off()
        asked.refresh_from_db()
        assert ["held", "main", 1] in report_of(asked)["reasons"]
        texts = list(AgentMessage.objects.order_by("session_id", "id").values_list("message_data", flat=True))
        assert ["Tea, please." in str(text) for text in texts] == [True, False, False]
        memory.refresh_from_db()
        assert "Tea" not in memory.statement

    def test_raw_edits_are_refused(self, record: SessionRecord, officer: User) -> None:
        make_hold(record, by=officer)
        message = AgentMessage.objects.first()
        assert message
        why = audit.UNSAID
        with pytest.raises(DeletionRefused):
            raw_edits.delete_message(message, by=officer, why=why)
        with pytest.raises(DeletionRefused):
            raw_edits.save_text(message, '{"role":"user","content":"x"}', by=officer, why=why)
        assert AgentMessage.objects.count() == 2

    def test_what_returned_after_an_erasure_is_kept_once_it_is_held(self, store: SessionStore, officer: User) -> None:
        record = make_session("a", store=store)
        run_sql(ERASE)
        run_sql("ALTER TABLE agent_sessions DISABLE TRIGGER ALL")
        add_items("a", "I am back.")
        run_sql("ALTER TABLE agent_sessions ENABLE TRIGGER ALL")
        make_hold(record, by=officer)
        assert re_erasure.sweep(store, ["a"]) == 0
        assert value_of("SELECT count(*) FROM agent_messages") == 1


def add_to(session: SQLiteSession, text: str) -> None:
    import asyncio

    asyncio.run(session.add_items([{"role": "user", "content": text}]))
    session.close()


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    """A hold and a deletion meet: whoever comes second sees the first."""

    @pytest.fixture
    def record(self) -> SessionRecord:
        return make_session("a", subject=make_subject("a"))

    @pytest.fixture
    def officer(self, record: SessionRecord) -> User:
        return person("compliance")

    def test_a_hold_waits_for_a_deletion_in_flight(self, record: SessionRecord, officer: User) -> None:
        with second_connection() as eraser, somebody_else() as start:
            eraser.execute(ERASE)
            placing = start(lambda: make_hold(record, by=officer))
            wait_until_blocked(placing, by=eraser)
            eraser.commit()
            assert placing.result().number == 1
        record.refresh_from_db()
        assert record.erased_at is not None

    @pytest.mark.parametrize("level", list(IsolationLevel)[1:])
    def test_no_deletion_that_waited_for_a_hold_is_made(
        self, level: IsolationLevel, record: SessionRecord, officer: User
    ) -> None:
        assert race(level, record, officer) in ("P0H01", "40001")
        record.refresh_from_db()
        assert record.erased_at is None

    def test_without_the_lock_it_would_be(self, record: SessionRecord, officer: User) -> None:
        """The same interleaving, where a deletion looks for holds and locks nothing."""
        broken = sql_text("retention", "holds.sql").replace("PERFORM FROM retention_holdlock FOR SHARE;", "")
        run_sql(broken)
        try:
            assert race(IsolationLevel.REPEATABLE_READ, record, officer) is None
        finally:
            run_sql(sql_text("retention", "holds.sql"))
        record.refresh_from_db()
        assert record.erased_at is not None
        assert LegalHold.objects.in_force().exists()

    def test_a_deletion_that_does_not_end_is_told(
        self, record: SessionRecord, officer: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memadmin.retention.holds.services.LOCK_TIMEOUT", "50ms")
        with second_connection() as eraser:
            eraser.execute(ERASE)
            with pytest.raises(DeletionUnderWay):
                make_hold(record, by=officer)
        assert not LegalHold.objects.exists()


def race(level: IsolationLevel, record: SessionRecord, officer: User) -> str | None:
    """A deletion whose transaction began before a hold was placed, and that comes after it. Returns its SQLSTATE."""
    with second_connection() as eraser:
        eraser.isolation_level = level
        # Under other levels than READ COMMITTED the snapshot is taken here.
        eraser.execute("SELECT count(*) FROM retention_legalhold")
        make_hold(record, by=officer)
        try:
            eraser.execute(ERASE)
            eraser.commit()
        except psycopg.Error as problem:
            return problem.sqlstate
    return None
