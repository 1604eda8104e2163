"""Nobody's words, ids or names get where they cannot be erased: into events, log lines, arguments of jobs, error pages.

Every address is asked with both methods by somebody who may do everything, on records that hold canaries, with a canary
in every field that any form has.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from memadmin import audit
from memadmin.deploy.metrics.views import metrics_text
from memadmin.web.log_lines import JsonLines, TextLines
from sessions_app.models import SessionRecord, SubjectAlias
from sessions_app.views import sessions as session_views
from tests.accounts.matrix import MATRIX, SUPERUSER
from tests.accounts.test_matrix import (
    WORDS,
    World,
    address_of,
    browser_of,
    make_world,
    somebody,
    tables,
    with_lasting_people,
)
from tests.audit.log_pages import NOTED
from tests.people import person

__all__ = ["tables"]

TYPED = "Clerk-70933 clerk-70933@example.org 4242"
STORED = (WORDS, "customer_1", "customer_2", "customer_3", "also_1", "colleague")
CANARIES = ("Clerk-70933", "clerk-70933", *STORED)

# Every name of a field that a form of the console has, and those that are chosen rather than typed.
FIELDS = {
    **dict.fromkeys(("q", "key", "label", "ticket", "explanation", "note", "name", "pattern", "message_data"), TYPED),
    **dict.fromkeys(("statement", "query", "agent", "extractor"), TYPED),
    **dict.fromkeys(("username", "login", "password", "first_name", "last_name", "next", "confirm-password"), TYPED),
    **{"reason": "incident", "minutes": "30", "kind": "user", "subject_kind": "user", "create": "on", "form": "jsonl"},
}

KEPT_FOR_GOOD = """
SELECT string_agg(to_jsonb(event)::text, E'\n') FROM audit_event AS event WHERE number > %s
UNION ALL SELECT string_agg(task_name || args::text || coalesce(queueing_lock, ''), E'\n') FROM procrastinate_jobs
"""


@pytest.fixture(scope="module")
def world(tables: None, shared_world: None) -> World:
    """One of everything, of somebody who has a name and an address."""
    user = person()
    user.first_name, user.email = "Clerk-70933", "clerk-70933@example.org"
    user.save()
    return make_world(user)


@pytest.fixture
def owner(world: World, db: None) -> User:
    """The person to whom the world belongs, with every right."""
    return somebody(SUPERUSER)


def kept_for_good(client: Client, method: str, address: str, **sent: Any) -> tuple[Any, str]:
    """The answer, and what the request left where nothing is erased; its effect is undone."""
    point = transaction.savepoint()
    signed_in_with = client.cookies[settings.SESSION_COOKIE_NAME].value
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT max(number) FROM audit_event")
            (before,) = cursor.fetchone()
            answer = client.post(address, sent) if method == "POST" else client.get(address, sent)
            cursor.execute(KEPT_FOR_GOOD, [before])
            return answer, "\n".join(text for (text,) in cursor.fetchall() if text)
    finally:
        transaction.savepoint_rollback(point)
        client.cookies[settings.SESSION_COOKIE_NAME] = signed_in_with


def canaries_in(text: str) -> set[str]:
    return {canary for canary in CANARIES if canary in text}


def formatted(records: Iterable[logging.LogRecord]) -> str:
    """What the formatters of the settings make of the entries, fields and tracebacks included."""
    return "\n".join(formatter.format(record) for record in records for formatter in (JsonLines(), TextLines()))


def every_request(world: World, methods: Collection[str]) -> Iterator[tuple[str, str]]:
    for name, rule in MATRIX.items():
        for method, takes in (("GET", rule.reads), ("POST", rule.sends)):
            if takes is not None and method in methods and name != "audit:export-log":  # which waits for the sequencer
                yield method, address_of(name, world)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("methods", "recording"),
    [(("POST",), 40), pytest.param(("GET", "POST"), 100, marks=pytest.mark.release)],
    ids=["what is sent", "all"],
)
def test_no_canary_gets_into_events_jobs_or_log_lines(
    owner: User,
    world: World,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    methods: Collection[str],
    recording: int,
) -> None:
    client = browser_of(owner)
    with_lasting_people(monkeypatch)
    chosen = {"session": [str(record.pk) for record in SessionRecord.objects.all()]}
    found: list[str] = []
    recorded = 0
    with caplog.at_level(logging.INFO):
        for method, address in every_request(world, methods):
            caplog.clear()
            answer, text = kept_for_good(client, method, address, **FIELDS, **chosen)
            recorded += bool(text)
            told = {"events or jobs": text, "log": caplog.text, "formatted log": formatted(caplog.records)}
            if answer.status_code in (400, 403, 404, 500, 503):
                told["error page"] = answer.text.replace(owner.first_name, "").replace("customer_1:ticket_1", "")
            for place, what in told.items():
                if canaries := canaries_in(what):
                    found.append(f"{method} {address}: {sorted(canaries)} in {place}")
    if canaries := canaries_in(metrics_text().decode()):
        found.append(f"{sorted(canaries)} in the metrics")
    assert not found, "\n".join(found)
    assert recorded > recording, "this test is worth as much as the requests that record something"


def test_a_canary_in_a_log_line_is_noticed(
    owner: User, world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tells(sent: Any) -> Any:
        logging.getLogger("memadmin").warning("Labelled %s", sent)
        raise ZeroDivisionError

    monkeypatch.setattr(session_views, "LabelForm", tells)
    with pytest.raises(ZeroDivisionError):
        kept_for_good(browser_of(owner), "POST", address_of("sessions:label", world), **FIELDS)
    assert canaries_in(caplog.text)


def test_words_stand_beside_the_log_where_they_can_be_erased(owner: User, world: World) -> None:
    """And nowhere else: the database refuses them in an event (tests/audit/test_recording.py)."""
    alias = SubjectAlias.objects.first()
    assert alias
    event = audit.record(NOTED, details={"key": alias.key})
    with connection.cursor() as cursor:
        cursor.execute("SELECT details FROM audit_detail WHERE event_id = %s", [event])
        (details,) = cursor.fetchone()
    assert canaries_in(details)
