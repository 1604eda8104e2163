"""A whole case about a person whose every word is a canary: none gets into log lines, events, jobs, runs or receipts.

After its end none is anywhere in the database, and none in a file of a store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.utils.timezone import now

from memadmin.deploy.metrics.views import metrics_text
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.views import cases
from memadmin.runs.models import Run
from memadmin.web.log_lines import JsonLines, TextLines
from memories_app.models import Evidence, Recall, Signal
from sessions_app.models import SessionRecord, TextSearch
from sessions_app.services.discovery import discover
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store, run_sql, user
from tests.approvals import shown
from tests.builders import make_subject
from tests.erasure.builders import work_off
from tests.erasure.faults import a_day_later, retry
from tests.mails import words_of_mail
from tests.memories.builders import approved as approved_memory
from tests.memories.builders import proposed
from tests.people import person, signed_in
from tests.stores.sqlite_files import SqliteAgent

State = SubjectRequest.State

WORD = "quokka"
"""In all that is the person's, and in nothing else."""

KEY = "quokka-7@example.org"

KEPT = """
SELECT 'event', e::text FROM audit_event AS e
UNION ALL SELECT 'job', j::text FROM procrastinate_jobs AS j
UNION ALL SELECT 'run', r::text FROM runs_run AS r
UNION ALL SELECT 'run log', n::text FROM runs_runlog AS n
UNION ALL SELECT 'step', s::text FROM erasure_erasurestep AS s
UNION ALL SELECT 'receipt', receipt FROM erasure_subjectrequest
UNION ALL SELECT 'scans', scans::text FROM erasure_subjectrequest
UNION ALL SELECT 'ledger', s::text FROM erasure_suppressionentry AS s
"""
"""What is kept for good, or longer than the person's data."""


def leaks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Where a canary is that must never be there."""
    with connection.cursor() as cursor:
        cursor.execute(KEPT)
        told = cursor.fetchall()
    told += [("mail", words_of_mail(message)) for message in mail.outbox]
    told += [
        ("log", caplog.text),
        *(("formatted log", form.format(record)) for record in caplog.records for form in (JsonLines(), TextLines())),
        ("metrics", metrics_text().decode()),
        *(("log", repr(vars(record))) for record in caplog.records if not is_of_test(record)),
    ]
    return sorted({f"{place}: {text}" for place, text in told if WORD in text.lower()})


def is_of_test(record: logging.LogRecord) -> bool:
    """Whether a line is Django's own about a request: it keeps the request itself, which nobody writes down."""
    return record.name == "django.request"


def places_with_the_word() -> list[str]:
    """Tables with the word in any column."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        tables = [name for (name,) in cursor.fetchall()]
        found = []
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table} AS t WHERE t::text ILIKE %s", [f"%{WORD}%"])
            if cursor.fetchone() != (0,):
                found.append(table)
    return found


@pytest.fixture
def caught(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """All lines of all loggers."""
    monkeypatch.setattr(logging.getLogger("django"), "propagate", True)
    caplog.set_level(logging.INFO)
    return caplog


def test_no_canary_of_a_whole_case_gets_where_it_is_kept(
    agent_tables: None, tmp_path: Path, settings: Any, caught: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CANCEL_WINDOW = timedelta(0)
    settings.MAIL_SERVER, settings.NOTICES_TO = "smtp://localhost", ["dpo@example.invalid"]
    officer, second = person("compliance"), person("compliance", "reviewer")
    make_everything(tmp_path, officer)
    agent = SessionRecord.objects.get(session_id="quokka:2").store
    first, colleague = signed_in(officer), signed_in(second)

    answer = first.post(
        "/requests/new/",
        {
            **{"kind": "erasure", "subject_kind": "user", "key": KEY, "channel": "letter", "ground": "consent"},
            **{"received_on": str(now().date()), "known_as": "Quokka Example", "note": "Quokka wrote a letter."},
        },
    )
    assert answer.status_code == 302
    request = SubjectRequest.objects.get()
    own = request.get_absolute_url()
    for client, action, sent in (
        (first, "comment", {"note": "Quokka called."}),
        (first, "check", {"note": "The passport of Quokka was shown."}),
        (first, "count", {}),
        (first, "extend", {"until": str(request.due_on + timedelta(days=20)), "note": "Quokka has many stores."}),
        (first, "ask", {}),
        (colleague, "approve", {"typed": KEY, "is_read": "on"}),
    ):
        current = SubjectRequest.objects.get()
        digest = shown(current) if current.approval else ""
        assert client.post(f"{own}{action}/", {**sent, "shown": digest}).status_code == 302, action
    refused_pages(first, own, monkeypatch)
    assert leaks(caught) == []

    request.refresh_from_db()
    file = tmp_path / "agents.db"
    file.rename(tmp_path / "aside")
    run = work_off(request)
    assert (run.state, request.state) == (Run.State.WAITING, State.RUNNING)
    assert first.post(f"{own}cancel/", {"note": "Quokka has changed their mind."}).status_code == 409
    assert leaks(caught) == []
    (tmp_path / "aside").rename(file)
    retry(run)
    work_off(request)
    assert request.state == State.SCANNING, run.reason
    assert leaks(caught) == []

    # An agent of a store without a fence writes again, which the second scan finds.
    run_sql("ALTER TABLE agent_messages DISABLE TRIGGER USER; ALTER TABLE agent_sessions DISABLE TRIGGER USER")
    add_items("quokka:0", "I am Quokka, and back.", KEY)
    run_sql("ALTER TABLE agent_messages ENABLE TRIGGER USER; ALTER TABLE agent_sessions ENABLE TRIGGER USER")
    for _ in range(2):
        a_day_later(request)
        work_off(request)
    assert request.is_closed
    assert caught.records, "something is written to the log"
    assert mail.outbox
    assert leaks(caught) == []
    assert places_with_the_word() == []
    assert WORD.encode() not in file.read_bytes().lower()
    assert agent.name in request.receipt


def make_everything(folder: Path, officer: Any) -> None:
    """Canaries in sessions of two stores, memories, evidence, signals and searches."""
    attach_main_store()
    subject = make_subject(KEY)
    agent = SqliteAgent(folder)
    for number in range(2):
        add_items(f"quokka:{number}", "I am Quokka.", f"Write to {KEY}.")
    agent.add("quokka:2", user("Quokka here, too."))
    agent.close()
    discover(agent.store)
    records = SessionRecord.objects.filter(session_id__startswith="quokka")
    attach_sessions(records, subject, by=officer)
    memory = approved_memory("Quokka drinks tea.", subject=subject)
    proposed("Quokka drinks milk.", subject=subject)
    record = records.get(session_id="quokka:0")
    Evidence.objects.create(memory=memory, record_id=record.pk, session_id="quokka:0", quote="I am Quokka.")
    Signal.objects.create(subject=subject, kind="preference", text="Quokka likes tea.")
    Recall.objects.create(subject=subject, record_id=record.pk)
    TextSearch.objects.create(text=KEY, searched_by=officer, expires_at=now() + timedelta(hours=1))


def refused_pages(client: Any, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers with canaries in what was asked: none repeats them, besides the form that they were typed into."""

    def breaks(*given: object, **named: object) -> None:
        raise ZeroDivisionError

    asked: list[tuple[int, Callable[[], Any]]] = [
        (404, lambda: client.get(f"/requests/00000000-0000-0000-0000-000000000000/?q={KEY}")),
        (404, lambda: client.get(f"/subjects/00000000-0000-0000-0000-000000000000/?q={KEY}")),
        (400, lambda: client.get("/requests/?kind=quokka")),
        (409, lambda: client.post(f"{own}check/", {"note": "Quokka again."})),
    ]
    for status, ask in asked:
        answer = ask()
        assert answer.status_code == status
        if status != 409:  # the page of the case, which shows the id
            assert WORD not in answer.content.decode().lower(), status
    client.raise_request_exception = False
    with monkeypatch.context() as patching:
        patching.setattr(cases, "case_page", breaks)
        answer = client.get(f"{own}?q={KEY}")
    assert answer.status_code == 500
    assert WORD not in answer.content.decode().lower()
