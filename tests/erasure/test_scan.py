"""After an erasure: whatever is left is found, in whatever form and place, and opens the case again."""

from __future__ import annotations

import base64
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core import mail
from django.db import DataError, OperationalError, connection
from psycopg.errors import QueryCanceled

from memadmin.audit.models import AuditEvent, AuditLeaf
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.erasure.scan import files, progress, tables
from memadmin.erasure.scan.people import People, ScannedPerson
from memadmin.runs import engine
from memadmin.runs.models import Run
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject
from sessions_app.services.sessions import attach_sessions
from sessions_app.services.store_config import declare_store
from tests.agents import add_items, attached_store, run_sql, second_connection, value_of
from tests.builders import make_subject
from tests.erasure import faults
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import add_behind_the_fence
from tests.mails import words_of_mail
from tests.people import person, signed_in

State = SubjectRequest.State

NAME, EMAIL = "José Núñez", "ada.lovelace@example.com"


@pytest.fixture
def subject(kept_main_store: SessionStore, officer: User) -> Subject:
    """Somebody with one session, beside somebody else with another."""
    subject, other = make_subject("customer-77-ada"), make_subject("customer-78-bob")
    add_items("talk-1", "hello", "tea, please")
    add_items("talk-2", "hello", "coffee, please")
    attach_sessions(SessionRecord.objects.filter(session_id="talk-1"), subject, by=officer)
    attach_sessions(SessionRecord.objects.filter(session_id="talk-2"), other, by=officer)
    return subject


def erase(subject: Subject, officer: User, second: User, **columns: Any) -> SubjectRequest:
    """The request after its first scan."""
    request = approved(subject, by=officer, second=second, known_as=[NAME, EMAIL], **columns)
    return carry_on(request)


def run_of(request: SubjectRequest) -> Run:
    return Run.objects.get(subject_request=request)


def carry_on(request: SubjectRequest) -> SubjectRequest:
    Run.objects.filter(subject_request=request).update(retry_at=None)
    request.refresh_from_db()
    work_off(request)
    return request


def a_day_later(request: SubjectRequest) -> SubjectRequest:
    faults.a_day_later(request)
    return carry_on(request)


def people(*texts: str) -> People:
    """One for each text, with the cases 1, 2 …"""
    return People(ScannedPerson(case, texts=[text]) for case, text in enumerate(texts, 1))


def scan_texts(*texts: str) -> progress.Progress:
    """After a search of our database and all files."""
    wanted, read = people(*texts), progress.Progress()
    tables.search_tables(wanted, read)
    files.search_files(wanted, read)
    return read


def places(read: progress.Progress, case: int = 1) -> dict[str, int]:
    return {row["place"]: row["found"] for row in read.found_by_case().get(case, [])}


def codes(request: SubjectRequest) -> dict[str, str]:
    return {row["place"]: row["code"] for row in request.scans[-1]["places"]}


# --- a case -----------------------------------------------------------------------------------------------------------


def test_a_row_behind_the_fence_opens_the_case_again_alerts_and_goes(
    subject: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    monkeypatch.setattr(SubjectRequest, "get_absolute_url", lambda request: f"/requests/{request.id}/")
    settings.MAIL_SERVER, settings.NOTICES_TO = {"EMAIL_HOST": "mail"}, ["officers@tea.example"]
    SessionIdPattern.objects.create(store=SessionStore.objects.get(), name="ids", pattern="{subject}:{*}")
    request = erase(subject, officer, second)
    assert request.state == State.SCANNING, run_of(request).reason
    assert [scan["found"] for scan in request.scans] == [0]
    add_behind_the_fence("customer-77-ada:late", "I came back")

    request = a_day_later(request)

    assert value_of("SELECT count(*) FROM agent_messages WHERE session_id = 'customer-77-ada:late'") == 0
    assert value_of("SELECT count(*) FROM agent_messages") == 2
    assert request.state == State.SCANNING
    assert [scan["found"] > 0 for scan in request.scans[:3]] == [False, True, False], request.scans
    assert AuditEvent.objects.filter(type="request.reopened", subject_ref=subject.pk).count() == 1
    noted = list(request.notes.order_by("pk").values_list("code", flat=True))
    Code = RequestNote.Code
    assert [code for code in noted if code in (Code.FOUND, Code.REOPENED)] == [Code.FOUND, Code.REOPENED]
    (alert,) = mail.outbox
    assert alert.to == ["officers@tea.example"]
    assert str(request) in words_of_mail(alert)
    words = words_of_mail(alert)
    assert not any(text in words for text in ("customer", "77-ada", "José"))

    request = a_day_later(request)

    assert request.state == State.COMPLETE
    assert len(mail.outbox) == 1


def test_of_an_id_too_short_for_texts_sessions_are_found_by_their_pattern(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    SessionIdPattern.objects.create(store=SessionStore.objects.get(), name="ids", pattern="{subject}:{*}")
    subject = make_subject("7")
    add_items("7:chat", "order 7")
    attach_sessions(SessionRecord.objects.filter(session_id="7:chat"), subject, by=officer)
    request = approved(subject, by=officer, second=second)
    carry_on(request)
    add_behind_the_fence("7:late", "I came back")
    a_day_later(request)
    assert value_of("SELECT count(*) FROM agent_messages") == 0
    assert [row["count"] for row in request.preview["out_of_reach"] if row["code"] == "short_ids"] == [1]
    a_day_later(request)
    assert request.state == State.COMPLETE


def test_what_was_read_of_a_store_that_went_away_is_not_counted_twice() -> None:
    read = progress.Progress()
    read.begin("first")
    read.move("a", rows=5)
    read.finish("first")
    for _ in range(2):
        read.begin("second")
        read.found([7], "second", code="others_text")
        read.move("b", rows=10)
        read.found([7], "second", code="others_text")
        read.give_up("second")
    assert (read.rows(), read.found_by_case(), read.begin("second")) == (5, {}, None)


def test_a_session_of_somebody_else_that_names_the_person_stays_and_is_said(
    subject: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_items("talk-2", f"Please tell {EMAIL.upper()} about it")
    request = a_day_later(erase(subject, officer, second))
    assert request.state == State.COMPLETE_WITH_EXCEPTIONS
    assert request.scans[-1]["places"] == [{"place": "agent_messages.message_data", "code": "others_text", "found": 1}]
    receipt = json.loads(request.receipt)["payload"]
    assert receipt["exceptions"] == [{"code": "others_text", "place": "scan/agent_messages.message_data", "count": 1}]
    assert not any(text in request.receipt for text in ("lovelace", "customer-77"))
    assert value_of("SELECT count(*) FROM agent_messages") == 3


def test_a_place_that_no_step_erases_is_said(
    subject: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql("CREATE TABLE notes_of_the_host (id int, note text)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO notes_of_the_host VALUES (1, %s), (2, 'nothing')", [f"called {NAME}"])
    try:
        request = a_day_later(erase(subject, officer, second))
    finally:
        run_sql("DROP TABLE notes_of_the_host")
    assert request.state == State.COMPLETE_WITH_EXCEPTIONS
    assert codes(request) == {"notes_of_the_host.note": "still_found"}


def test_a_longer_number_is_not_the_persons(
    kept_main_store: SessionStore, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = make_subject("1042")
    add_items("31042:chat", "order 10421", "order 91042", "\\u00e91042")
    request = erase(subject, officer, second)
    request = a_day_later(request)
    assert request.state == State.COMPLETE
    assert value_of("SELECT count(*) FROM agent_messages") == 3


def test_the_scan_waits_for_a_store_that_is_away(
    subject: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "x.json").write_text(json.dumps([{"role": "user", "content": f"ask {EMAIL}"}]))
    attached_store("files", kind="json_file", options={"path": str(folder)})
    folder.rename(tmp_path / "away")

    request = erase(subject, officer, second)

    assert (request.state, request.scans) == (State.RUNNING, [])
    assert run_of(request).reason.startswith("The store files does not respond.")
    assert "table agent_messages" in run_of(request).cursor["scan"]["done"]

    (tmp_path / "away").rename(folder)
    request = a_day_later(carry_on(request))

    assert request.state == State.COMPLETE_WITH_EXCEPTIONS
    assert codes(request) == {"files": "others_text"}


def test_a_scan_that_was_killed_goes_on_where_it_was(
    subject: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each range is one page, and each is stored.
    monkeypatch.setattr(tables, "FIRST_PAGES", 1)
    monkeypatch.setattr(tables, "MOST_PAGES", 1)
    monkeypatch.setattr(progress, "SAVE_SECONDS", 0)
    add_items("talk-2", *(f"item {number} for {EMAIL} {'x' * 1_500}" for number in range(40)))
    reads: list[tuple[str, int]] = []
    read = tables.TableScan.read

    class Killed(BaseException):
        pass

    def dies_sometimes(self: tables.TableScan, start: int, end: int) -> tuple[int, list[tables.Hit]]:
        reads.append((self.table.place, start))
        pages = sum(place == "agent_messages" for place, _ in reads)
        if (self.table.place == "agent_messages" and pages in (3, 7)) or len(reads) == 1:
            raise Killed
        return read(self, start, end)

    monkeypatch.setattr(tables.TableScan, "read", dies_sometimes)
    request = approved(subject, by=officer, second=second, known_as=[NAME, EMAIL])
    for _ in range(3):
        with pytest.raises(Killed):
            carry_on(request)
        # Its lease is over.
        Run.objects.filter(subject_request=request).update(lease_until=None, state=Run.State.WAITING)
        request.refresh_from_db()
    request = carry_on(request)

    assert request.state == State.SCANNING
    assert max(reads.count(each) for each in reads) == 2
    assert sum(reads.count(each) == 2 for each in set(reads)) == 3
    assert request.scans[-1]["places"] == [{"place": "agent_messages.message_data", "code": "others_text", "found": 40}]


def test_slices_of_a_scan_are_handed_over_with_what_was_read(subject: Subject, officer: User, second: User) -> None:
    """And the page of the case says how far it is."""
    request = approved(subject, by=officer, second=second)
    page = signed_in(officer)
    done: list[int] = []
    while not request.scans:
        engine.carry_on(run_of(request), seconds=0)
        if read := run_of(request).cursor.get("scan"):
            assert set(read) >= {"done", "part", "rows"}
            done.append(len(read["done"]))
            if len(done) == 20:
                shown = page.get(request.get_absolute_url()).content.decode()
                assert re.search("Scan 1: [0-9]+ places with [0-9,]+ rows read", shown)
        request.refresh_from_db()
    assert len(done) > 20
    assert done == sorted(set(done))


# --- places -----------------------------------------------------------------------------------------------------------

FORMS = {
    "plain": NAME,
    "upper": NAME.upper(),
    "json": json.dumps({"who": NAME}),
    "json_twice": json.dumps({"arguments": json.dumps({"who": NAME})}),
    "base64": base64.b64encode(f"for {NAME}!".encode()).decode(),
}


KINDS = ("text", "varchar(500)", "char(200)", "json", "jsonb", "text[]", "bytea")


VALUES = {
    "json": "to_json(%s::text)",
    "jsonb": "to_jsonb(%s::text)",
    "text[]": "ARRAY['x', %s]",
    "bytea": "convert_to(%s, 'UTF8')",
    "tsvector": "array_to_tsvector(ARRAY[%s])",
}


def test_each_form_is_found_in_each_kind_of_column_of_a_new_table(db: None) -> None:
    """In a table for each pair."""
    # A tsvector holds words, and none of their other forms.
    pairs = [*itertools.product(KINDS, FORMS), ("tsvector", "plain")]
    run_sql("CREATE SCHEMA elsewhere")
    for kind, form in pairs:
        table = f'elsewhere."New {kind} {form}"'
        is_json = kind in ("json", "jsonb") and form.startswith("json")
        value = f"%s::{kind}" if is_json else VALUES.get(kind, "%s")
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, other text, held {kind})")
            cursor.execute(f"INSERT INTO {table} SELECT n, %s, NULL FROM generate_series(1, 50) n", ["x"])
            cursor.execute(f"INSERT INTO {table} VALUES (0, NULL, {value})", [FORMS[form]])
    # Letters beyond ASCII are bytes there: found by what is ASCII.
    hidden = {("bytea", "plain"), ("bytea", "upper")}
    assert places(scan_texts(NAME)) == {
        f"elsewhere.New {kind} {form}.held": 1 for kind, form in pairs if (kind, form) not in hidden
    }
    assert scan_texts("Nobody Else").found_by_case() == {}


def test_long_texts_are_searched_by_themselves(db: None) -> None:
    run_sql("CREATE TABLE long_texts (id int, one text, two text)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO long_texts VALUES (1, repeat('x ', 100000) || %s, 'x')", [EMAIL])
        cursor.execute("INSERT INTO long_texts SELECT n, 'short', 'short' FROM generate_series(2, 3000) n")
    result = scan_texts(EMAIL)
    assert places(result) == {"long_texts.one": 1}
    assert result.rows() >= 3_000


@pytest.mark.parametrize("columns", ["held text", "held text, other text DEFAULT 'x'"])
def test_each_row_counts_once_wherever_it_is_and_however_long(
    db: None, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setattr(tables, "PIECE_PAGES", 4)
    run_sql(f"CREATE TABLE of_any_length ({columns})")
    # Of 5 lengths, of which the longest is read by itself; 1,200 of them, on some dozen pages, have the address.
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO of_any_length (held) SELECT repeat('x ', n %% 5 * 1100) || CASE WHEN n %% 3 = 0 THEN %s END"
            " FROM generate_series(1, 3600) n",
            [f" {EMAIL}"],
        )
        cursor.execute("INSERT INTO of_any_length (held) VALUES (repeat('x ', 9000)), (NULL), ('x')")
    assert places(scan_texts(EMAIL)) == {"of_any_length.held": 1_200}


def test_a_single_row_is_found_on_whatever_page_it_is(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PIECE_PAGES", 4)
    run_sql(
        "CREATE TABLE page_by_page AS"
        " SELECT format('customer-%s-eu', n) || repeat(' x', 400) AS held FROM generate_series(1, 400) n"
    )
    (table,) = [each for each in tables.tables() if each.name == "page_by_page"]
    for number in range(1, 401, 5):
        scan = tables.TableScan(table, people(f"customer-{number}-eu"), progress.Progress())
        assert scan.read(0, 64) == (400, [("held", frozenset({1}))])


def test_what_is_found_before_a_statement_takes_too_long_counts_once(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PIECE_PAGES", 4)
    run_sql("CREATE TABLE slow_table AS SELECT repeat('x ', 1000) AS held FROM generate_series(1, 100)")
    run_sql(f"UPDATE slow_table SET held = '{EMAIL}'")
    examine, examined = tables.TableScan.examine, list[Any]()

    def takes_too_long_once(self: tables.TableScan, where: Any) -> tuple[int, list[tables.Hit]]:
        examined.append(where)
        if len(examined) == 2:
            raise OperationalError from QueryCanceled()
        return examine(self, where)

    monkeypatch.setattr(tables.TableScan, "examine", takes_too_long_once)
    assert places(scan_texts(EMAIL)) == {"slow_table.held": 100}


@pytest.mark.django_db(transaction=True)
def test_a_locked_table_is_named_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOCK_TIMEOUT", "50ms")
    run_sql("CREATE TABLE a_locked_table AS SELECT 'x' AS held")
    # What waits without a limit of its own is cancelled in other words.
    run_sql("SET statement_timeout = '5s'")
    try:
        with second_connection() as somebody:
            somebody.execute("LOCK TABLE a_locked_table IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(tables.TableLocked, match="a_locked_table"):
                scan_texts(EMAIL)
        assert scan_texts(EMAIL).found_by_case() == {}
    finally:
        run_sql("RESET statement_timeout")
        run_sql("DROP TABLE a_locked_table")


def test_what_may_not_be_read_is_said(db: None) -> None:
    run_sql("CREATE TABLE half_open (id int, open_text text, closed_text text)")
    run_sql(f"INSERT INTO half_open VALUES (1, '{EMAIL}', '{EMAIL}')")
    run_sql("CREATE ROLE memadmin_scan_test")
    run_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO memadmin_scan_test")
    # Row policies call functions, which another test may have taken from PUBLIC.
    run_sql("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO memadmin_scan_test")
    run_sql("REVOKE ALL ON half_open FROM memadmin_scan_test")
    run_sql("GRANT SELECT (id, open_text) ON half_open TO memadmin_scan_test")
    run_sql("SET ROLE memadmin_scan_test")
    try:
        result = scan_texts(EMAIL)
    finally:
        run_sql("RESET ROLE")
    assert places(result) == {"half_open.open_text": 1}
    assert result.state["hidden"] == ["half_open"]


def test_bytes_of_a_digest_are_no_id(db: None) -> None:
    """Three letters stand in one of some hundred thousand digests by chance."""
    looks_like_ada = b"\x01ada\x02" + bytes(27)
    AuditLeaf.objects.create(index=0, event_number=0, hash=looks_like_ada)
    run_sql("CREATE TABLE of_somebody (held bytea)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO of_somebody VALUES (%s)", [looks_like_ada])
    assert places(scan_texts("ada")) == {"of_somebody.held": 1}


def test_files_are_searched_across_pieces(
    db: None, tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE_BYTES", 64)
    settings.DATA_DIR = tmp_path
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "1234").write_text(EMAIL)
    assert scan_texts(EMAIL).found_by_case() == {}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "web.log").write_bytes(b"\xff" + b"x" * 50 + EMAIL.encode() + b"x" * 500)
    assert places(scan_texts(EMAIL)) == {"data_folder.files": 1}


def test_free_pages_of_a_database_file_are_searched(db: None, tmp_path: Path, settings: LazySettings) -> None:
    settings.DATA_DIR = tmp_path / "ours"
    path = tmp_path / "agents.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(5000) + EMAIL.encode() + bytes(50))
    declare_store("files", kind="sqlite", options={"path": str(path)})
    assert places(scan_texts(EMAIL)) == {"files.files": 1}


def test_nothing_is_changed_while_a_range_is_read(db: None) -> None:
    with pytest.raises(Exception, match="read-only"), tables.reading():
        run_sql("DELETE FROM erasure_requestnote")


def test_errors_of_a_stream_are_those_of_django(db: None) -> None:
    with pytest.raises(DataError, match="division by zero"), tables.reading() as cursor:
        list(cursor.stream("SELECT 1 / 0"))


# --- vacuum -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_deleted_rows_leave_the_files_of_the_database(kept_main_store: SessionStore) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    subject = make_subject("customer-77-ada")
    add_items("talk-1", *(f"item {number}" for number in range(50)))
    attach_sessions(SessionRecord.objects.all(), subject, by=officer)
    request = erase(subject, officer, second)
    assert request.state == State.SCANNING, run_of(request).reason
    assert not [row for row in request.preview["out_of_reach"] if row["code"] == "not_vacuumed"]
    assert value_of("SELECT pg_relation_size('agent_messages')") == 0
    assert ErasureStep.objects.get(name="sessions").erased == 50
