"""Events for the pages of the log, and what its pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db import connection
from django.urls import reverse

from memadmin import audit
from memadmin.audit.log import types
from memadmin.audit.models import AuditEvent
from memadmin.audit.transparency.sequencer import Sequencer

SESSION_SEEN = types.declare(
    "test.session_viewed", "Only tests view this.", object="sessions_app.sessionrecord", counters=("items",)
)
SUBJECT_CHANGED = types.declare("test.subject_merged", "Only tests merge this.", object="sessions_app.subject")
NOTED = types.declare("note.taken", "Only tests note this.", counters=("lines",), reasons=("no_grant",))

INSERT_SEEN = """
INSERT INTO audit_event (type, actor_kind, object_kind, object_ref, subject_ref, shown, outcome, counters)
SELECT 'test.session_viewed', 'database', 'sessions_app.sessionrecord', gen_random_uuid(), %s, '{}', 'succeeded', '{}'
FROM generate_series(1, %s)
"""
INSERT_MANY = """
INSERT INTO audit_event (type, actor_kind, shown, outcome, counters)
SELECT 'note.taken', 'database', '{}', 'succeeded', '{}' FROM generate_series(1, %s)
"""
INSERT_ROW = """
INSERT INTO audit_event (type, actor_kind, object_kind, object_ref, subject_ref, shown, outcome, counters, cause)
VALUES (%s, 'database', 'sessions_app.subject', %s, %s, '{}', 'succeeded', '{"rows": 1}', %s) RETURNING id
"""


def address(**query: Any) -> str:
    return reverse("audit:list") + (f"?{urlencode(query)}" if query else "")


def shown(page: Any) -> list[str]:
    """The types of the events that stand in the table, from above; not of those folded beneath them."""
    rows = re.findall(r"<tr id=\"event-.*?</tr>", page.text, re.S)
    return [unescape(re.findall(r'<span class="mono">([^<]*)</span>', row)[0]) for row in rows]


def seen(page: Any) -> list[str]:
    """Those of them that only tests record: making people and records leaves events of its own, and so does looking."""
    return [name for name in shown(page) if name.startswith(("note.", "test."))]


def link(page: Any, text: str) -> str:
    for address, label in re.findall(r'<a[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', page.text, re.S):
        if text in re.sub(r"<[^>]*>", "", label):
            return unescape(address)
    raise AssertionError(f"no link says {text}")


def insert_notes(count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT_MANY, [count])


def insert_views(count: int, subject: UUID) -> None:
    """Of as many sessions, all about one subject."""
    with connection.cursor() as cursor:
        cursor.execute(INSERT_SEEN, [subject, count])


def insert_row(name: str, subject: UUID, *, cause: UUID | None = None) -> AuditEvent:
    """What a trigger writes of a changed row."""
    with connection.cursor() as cursor:
        cursor.execute(INSERT_ROW, [name, subject, subject, cause])
        (event_id,) = cursor.fetchone()
    return AuditEvent.objects.get(id=event_id)


def event(event_id: UUID) -> AuditEvent:
    return AuditEvent.objects.get(id=event_id)


def note(**columns: Any) -> AuditEvent:
    return event(audit.record_alone(NOTED, **columns))


def sign_log() -> None:
    """Gives every event its place, under a checkpoint."""
    assert Sequencer().finish()


def texts(page: Any) -> Iterator[str]:
    """What a reader sees, without markup, blanks as one."""
    for row in re.findall(r"<tr id=\"event-.*?</tr>", page.text, re.S):
        yield " ".join(unescape(re.sub(r"<[^>]*>", " ", row)).split())


def words_of(page: Any) -> str:
    """What a reader sees of the page's main part, blanks as one."""
    main = page.text[page.text.index("<main") : page.text.index("</main>")]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
