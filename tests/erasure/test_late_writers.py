"""Agents that write to a person's sessions while the person is erased, and requests made at the same moment."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from sqlalchemy.exc import DBAPIError

from memadmin.audit.models import AuditEvent
from memadmin.erasure import services
from memadmin.erasure.models import SubjectRequest
from sessions_app.models import SessionRecord
from sessions_app.stores.sqlalchemy.engine import open_agent_tables
from tests.agents import attach_main_store, user, value_of
from tests.builders import make_subject
from tests.erasure.builders import Kind, approved, work_off
from tests.erasure.faults import erased_of, items_of, with_sessions
from tests.people import person

State = SubjectRequest.State

WRITERS = 8
SESSIONS = 4
TRIES = 5
"""Attempts of each writer after its first refusal: a refusal is for good."""


class Writer:
    """An agent in a thread with a connection of its own, which writes to one session until it is refused."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.wrote = threading.Event()
        self.refused: Counter[str] = Counter()
        self.written = self.written_afterwards = 0

    def run(self) -> None:
        asyncio.run(self.write())

    async def write(self) -> None:
        tables = open_agent_tables()
        try:
            session: Any = tables.session(self.session_id)
            while sum(self.refused.values()) < TRIES:
                try:
                    await session.add_items([user(f"late word {self.written}")])
                except DBAPIError as problem:
                    self.refused[str(getattr(problem.orig, "sqlstate", ""))] += 1
                else:
                    self.written += 1
                    self.written_afterwards += bool(self.refused)
                    self.wrote.set()
        finally:
            await tables.aclose()


def test_late_writers_leave_nothing_and_are_refused(agent_tables: None) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    attach_main_store()
    subject, _ = with_sessions("ada", by=officer, sessions=SESSIONS), with_sessions("bob", by=officer)
    request = approved(subject, by=officer, second=second)
    writers = [Writer(f"ada:{number % SESSIONS}") for number in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(writer.run) for writer in writers]
        for writer in writers:
            assert writer.wrote.wait(60), "it writes before the erasure begins"
        run = work_off(request)
        for each in running:
            each.result(120)
    assert request.state == State.SCANNING, run.reason
    assert (items_of("ada"), items_of("bob")) == (0, 50)
    assert value_of("SELECT count(*) FROM agent_sessions WHERE session_id LIKE 'ada:%'") == 0
    assert SessionRecord.objects.filter(subject=subject, erased_at=None).count() == 0
    assert not SessionRecord.objects.filter(session_id__startswith="ada:").exists()
    for writer in writers:
        assert writer.written_afterwards == 0, writer.refused
        assert set(writer.refused) == {"P0E01"}
    before = SESSIONS * 25 + sum(writer.written for writer in writers)
    assert erased_of(request)["sessions/main"] == before, "everything that was written went, and was counted"


def test_fifty_requests_at_once_are_one_case(transactional_db: None) -> None:
    officer = person("compliance")
    subject = make_subject("ada")
    together = threading.Barrier(10)

    def ask(number: int) -> tuple[int, bool]:
        try:
            if number < 10:
                together.wait(60)
            request, is_new = services.open_request(
                Kind.ERASURE, subject, by=User.objects.get(pk=officer.pk), channel=SubjectRequest.Channel.FORM
            )
            return request.number, is_new
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(ask, range(50)))
    request = SubjectRequest.objects.get()
    assert {number for number, _ in answers} == {request.number}
    assert [is_new for _, is_new in answers].count(True) == 1
    codes = Counter(request.notes.values_list("code", flat=True))
    assert codes == {"received": 1, "joined": 49}
    told = Counter(AuditEvent.objects.filter(object_ref=request.id).values_list("type", flat=True))
    assert (told["request.opened"], told["request.joined"]) == (1, 49)
