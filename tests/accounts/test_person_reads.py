"""Recent reads on the page of an account, for readers of the log."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memadmin import audit
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.audit.pages import person_reads
from memadmin.audit.pages.person_reads import reads_of
from sessions_app.audit_events import SESSION_VIEWED, SESSIONS_ATTACHED
from sessions_app.models import SessionRecord
from tests.builders import make_session, make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader() -> User:
    return person("support")


def read(reader: User, session: SessionRecord, **columns: object) -> None:
    audit.record_alone(
        SESSION_VIEWED,
        by=reader,
        target=session,
        subject=session.subject,
        counters={"items": 16},
        reason_code="customer_case",
        **columns,  # type: ignore[arg-type]
    )


def page_for(viewer: User, shown: User) -> str:
    page = signed_in(viewer).get(reverse("people:person", args=[shown.pk]))
    assert page.status_code == 200
    return page.text.split('id="main"')[1].split("</main>")[0]


def test_an_auditor_sees_what_an_account_read_the_newest_first_with_links(reader: User) -> None:
    first, second = make_session(subject=make_subject("cust_1")), make_session(subject=make_subject("cust_2"))
    read(reader, first)
    read(reader, second)
    read(person("reviewer"), make_session())
    audit.record_alone(SESSIONS_ATTACHED, by=reader, subject=first.subject, counters={"sessions": 1})
    shown = page_for(person("auditor"), reader)
    card = shown.split('id="reads"')[1].split("</section>")[0]
    events = [
        event.get_absolute_url() for event in AuditEvent.objects.filter(type="session.viewed").order_by("-number")
    ]
    assert re.findall(r'href="(/audit/[^"?]+)"', card) == events[1:]
    assert card.count("customer support") == 2 * len(events[1:])  # for narrow and wide screens
    assert "attached" not in card
    actor = AuditActor.objects.get(user_id=reader.pk)
    assert f"/audit/?actor={actor.ref}&amp;type=reading" in card
    # Who watches whom is in the log, too.
    assert AuditEvent.objects.filter(type="log.viewed").count() == 1


def test_refused_reads_are_marked(reader: User) -> None:
    read(reader, make_session(), outcome="denied")
    assert "denied" in page_for(person("auditor"), reader)


def test_an_administrator_without_the_log_sees_none(reader: User) -> None:
    read(reader, make_session())
    shown = page_for(person("administrator"), reader)
    assert "Recent reads" not in shown
    assert "session.viewed" not in shown
    assert not AuditEvent.objects.filter(type="log.viewed").exists()


def test_an_account_without_reads_says_what_would_be_there(reader: User) -> None:
    assert "No reads of content are recorded." in page_for(person("auditor"), reader)


def test_the_newest_are_shown_and_the_rest_is_in_the_log(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_reads, "MOST_SHOWN", 2)
    session = make_session()
    for _ in range(3):
        read(reader, session)
    reads = reads_of(reader, viewer=person("auditor"))
    assert (len(reads.shown), reads.is_partial) == (2, True)
    monkeypatch.setattr(person_reads, "EVENTS_SEARCHED", 1)
    reads = reads_of(reader, viewer=User.objects.get(username="auditor"))
    assert (len(reads.shown), reads.is_partial) == (1, True)


def test_events_of_others_cost_nothing(reader: User) -> None:
    """The events come along the index of actors, and queries do not grow with the reads."""
    auditor = person("auditor")
    session = make_session(subject=make_subject("cust_1"))
    read(reader, session)
    reads_of(reader, viewer=auditor)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            reads_of(reader, viewer=auditor)
        counts.append(len(queries))
        for _ in range(15):
            read(reader, session)
    assert counts[0] == counts[1]
    (sql,) = [each["sql"] for each in queries if 'FROM "audit_event"' in each["sql"] and 'actor_ref" =' in each["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {sql}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "using audit_event_actor_newest" in plan
    assert "Filter" not in plan
