"""What each page asks the database: a fixed number of queries, for ten rows of everything as for more than a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.accounts import reauth
from memadmin.accounts.models import Approval, RoleRequest
from memadmin.audit.models import AuditEvent
from memadmin.erasure.models import BatchLine, RequestBatch, RequestNote, SubjectRequest
from memadmin.retention.models import PolicyVersion, SweepResult, SweptTable
from memadmin.runs.models import Run
from memadmin.web.paging import sign_cursor, sort_keys
from sessions_app.models import SessionFinding, SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectAlias
from sessions_app.search.remembered import remember_search
from sessions_app.stores import backend_for
from sessions_app.views.sessions import SESSIONS
from sessions_app.views.timeline import STOP_POLLING
from sessions_app.views.window import Cursor
from tests.agents import add_items, attach_main_store, run_sql, user, value_of
from tests.approvals import without_triggers
from tests.builders import make_subject
from tests.erasure.builders import make_request
from tests.people import person, signed_in
from tests.retention.policies import in_force

FEW, MANY = 10, 110
"""More than two pages of each list."""

LONG = "a-long-one"
"""The session whose timeline grows."""

QUERIES = {
    "overview": 52,
    "redactions": 12,
    "sessions": 17,
    "sessions of a subject": 18,
    "sessions of a ticket": 16,
    "sessions without a subject": 15,
    "sessions that say so": 23,
    "newer sessions": 5,
    "timeline": 22,
    "timeline at an item": 23,
    "search in a session": 24,
    "news of a timeline": 8,
    "items after a timeline": 4,
    "item": 12,
    "subjects": 13,
    "subject": 41,
    "search": 14,
    "search in messages": 20,
    "stores": 22,
    "store": 24,
    "connect a store": 15,
    "grants": 12,
    "role requests": 10,
    "account": 11,
    "people": 20,
    "person": 31,
    "audit log": 33,
    "audit log of a subject": 32,
    "events by day": 10,
    "event": 22,
    "holds": 15,
    "policies": 14,
    "session explained": 19,
    "policy": 11,
    "new policy": 9,
    "retention runs": 16,
    "retention run": 11,
    "tables of retention": 12,
    "requests": 14,
    "request": 19,
    "data map": 10,
    "batches": 10,
    "batch": 17,
    "broken lines of a batch": 10,
    "raw edits: sessions on record": 5,
    "raw edits: subjects": 5,
    "raw edits: people": 6,
}

MORE_THAN_A_PAGE = {
    # A session that a page shows whole needs no count of its own.
    "timeline": QUERIES["timeline"] + 1,
    # A page that does not show the newest item looks for it.
    **{name: QUERIES[name] + 2 for name in ("timeline at an item", "search in a session")},
    # A page that is full needs no further look for more.
    **{name: QUERIES[name] - 1 for name in ("sessions that say so", "search in messages")},
    # The newest events are about one kind of object less, whose names are not looked up.
    "audit log": QUERIES["audit log"] - 1,
    # Closed requests follow the last open one.
    "requests": QUERIES["requests"] - 1,
}


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    store = attach_main_store()
    add_items(LONG, "Good morning")
    make_subject("customer")
    SessionIdPattern.objects.create(store=store, name="sessions", pattern="session-{ticket}")
    return store


def grow(first: int, last: int) -> None:
    """Rows number `first` to `last` of everything.

    That is: sessions with a ticket and an item each, items and findings of the long session, subjects, and ids of one
    subject. Of three sessions one is that subject's, one has a subject of its own, and one has none.
    """
    numbers = range(first, last + 1)
    for number in numbers:
        in_force(f"policy {number}", days=number)
    run_sql(
        f"""
        INSERT INTO agent_sessions (session_id, created_at, updated_at)
        SELECT 'session-' || number, now(), now() FROM generate_series({first}, {last}) AS number;
        INSERT INTO agent_messages (session_id, message_data, created_at)
        SELECT unnest(ARRAY['session-' || number, '{LONG}']), '{json.dumps(user("the needle"))}',
            now() + number * interval '1 microsecond'
        FROM generate_series({first}, {last}) AS number
        """
    )
    whom, long = Subject.objects.get(aliases__key="customer"), SessionRecord.objects.get(session_id=LONG)
    subjects = Subject.objects.bulk_create(Subject() for _ in numbers)
    for number, subject in zip(numbers, subjects, strict=True):
        SubjectAlias.objects.create(subject=subject, key=f"customer_{number}", is_primary=True)
        SubjectAlias.objects.create(subject=whom, key=f"also_{number}")
        SessionRecord.objects.filter(session_id=f"session-{number}").update(
            subject=(whom, subject, None)[number % 3], ticket=f"T-{number}", agent="Refunds", labels=["vip"]
        )
    SessionFinding.objects.bulk_create(
        SessionFinding(record_id=long.pk, session_id=LONG, kind="orphan_output", item_id=str(number))
        for number in numbers
    )
    SessionRecord.objects.filter(pk=long.pk).update(finding_count=SessionFinding.objects.count())
    by = User.objects.get()
    for subject in subjects:
        make_request(subject, by=by)
    case = SubjectRequest.objects.earliest("number")
    RequestNote.objects.bulk_create(RequestNote(request=case, code="comment", by=by) for _ in numbers)
    grow_batches(numbers, SubjectRequest.objects.filter(subject__in=subjects))
    grow_sweeps(numbers)
    requests = [RoleRequest(person=by, is_superuser=True, reason="staff") for _ in numbers]
    with without_triggers():
        for request in requests:
            request.approval = Approval(kind="role", object_ref=request.pk, asked_by=by)
        Approval.objects.bulk_create(request.approval for request in requests if request.approval)
        RoleRequest.objects.bulk_create(requests)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Somebody whom every page shows all it has."""
    # The first page of each minute notes that somebody is still there: on a slow machine it could be any.
    monkeypatch.setattr(reauth, "USE_SECONDS", 10**9)
    reader = person("support", "compliance", "administrator")
    User.objects.update(is_superuser=True, is_staff=True)
    return signed_in(reader)


def grow_batches(numbers: Iterable[int], cases: Iterable[SubjectRequest]) -> None:
    """Batches, and lines of the first one: with an outcome, and broken."""
    numbers = list(numbers)
    for number in numbers:
        running = {"state": "running", "started_at": now()}
        RequestBatch.objects.get_or_create(
            number=number,
            defaults={
                **({"run": Run.objects.create(kind="erasure_batch"), **running} if number == 1 else {}),
                **{"file_name": "a.csv", "file_size": 1, "file_sha256": str(number), "ground": "consent"},
                **{"received_on": now(), "due_on": now()},
            },
        )
    first = RequestBatch.objects.get(number=1)
    BatchLine.objects.bulk_create(
        BatchLine(batch=first, number=case.number * 2, subject_id=case.subject_id, request=case) for case in cases
    )
    BatchLine.objects.bulk_create(
        BatchLine(batch=first, number=number * 2 + 1, problem="unknown") for number in numbers
    )


def grow_sweeps(numbers: Iterable[int]) -> None:
    """Retention runs with a result and a table each, and results of the first one at other places."""
    version = PolicyVersion.objects.first() or in_force("Chats")
    for number in numbers:
        run = Run.objects.create(kind="retention", state="complete", started_at=now(), ended_at=now())
        SweepResult.objects.create(run=run, version=version, state="done", backlog=number, left={"busy": 1})
        SweptTable.objects.create(run=run, name="agent_messages", rows=10_000, size_before=1)
        first = Run.objects.filter(kind="retention").earliest("number")
        SweepResult.objects.create(run=first, version=version, place=f"store-{number}", state="skipped")


def addresses() -> Mapping[str, str]:
    """Where each page is, by what it is called here."""
    whom, long = Subject.objects.get(aliases__key="customer"), SessionRecord.objects.get(session_id=LONG)
    records = SessionRecord.objects.newest_first()
    cursor = sign_cursor("newer", records[FEW], sort_keys(records), SESSIONS.salt)
    said, known = (remember_search(User.objects.get(), words) for words in ("needle", "customer"))
    first = Cursor("after", backend_for(long.store).first_page(LONG, 1).items[0].position)
    item = value_of(f"SELECT min(id) FROM agent_messages WHERE session_id = '{LONG}'")

    def at(name: str, *args: Any, **query: Any) -> str:
        return reverse(name, args=args, query=query)

    return {
        "overview": at("sessions:overview"),
        "sessions": at("sessions:list"),
        "sessions of a subject": at("sessions:list", subject=whom.pk),
        "sessions of a ticket": at("sessions:list", ticket="T-7"),
        "sessions without a subject": at("sessions:list", without_subject=1),
        "sessions that say so": at("sessions:list", search=said.pk),
        "newer sessions": at("sessions:newer", cursor=cursor),
        "timeline": at("sessions:timeline", long.pk),
        "timeline at an item": at("sessions:timeline", long.pk, item=item),
        "search in a session": at("sessions:timeline", long.pk, item=item, find=said.pk),
        "news of a timeline": at("sessions:live", long.pk),
        "items after a timeline": at("sessions:news", long.pk, after=first.sign(long)),
        "item": at("sessions:item", long.pk, item),
        "redactions": at("sessions:redactions"),
        "subjects": at("sessions:subjects"),
        "subject": at("sessions:subject", whom.pk),
        "search": at("sessions:search-results", known.pk),
        "search in messages": at("sessions:search-messages", said.pk),
        "stores": at("sessions:stores"),
        "store": at("sessions:store", "main"),
        "connect a store": at("sessions:connect"),
        "grants": at("accounts:grants"),
        "role requests": at("accounts:roles"),
        "holds": at("retention:holds"),
        "policies": at("policies:list"),
        "session explained": at("policies:list", session=long.pk),
        "policy": at("policies:policy", PolicyVersion.objects.get(policy__name="policy 1").policy_id),
        "new policy": at("policies:new"),
        "retention runs": at("sweeps:list"),
        "retention run": at("sweeps:run", Run.objects.filter(kind="retention").earliest("number").pk),
        "tables of retention": at("sweeps:tables"),
        "data map": at("data_map:map"),
        "requests": at("erasure:requests"),
        "request": at("erasure:request", SubjectRequest.objects.earliest("number").id),
        "batches": at("batches:batches"),
        "batch": at("batches:batch", RequestBatch.objects.get(number=1).id),
        "broken lines of a batch": at("batches:batch-broken", RequestBatch.objects.get(number=1).id),
        "account": at("accounts:account"),
        "people": at("people:list"),
        "person": at("people:person", User.objects.get().pk),
        "audit log": at("audit:list"),
        "audit log of a subject": at("audit:list", subject=whom.pk, type="reads"),
        "events by day": at("audit:volume"),
        "event": at("audit:event", AuditEvent.objects.filter(type="subject.row_inserted").order_by("number")[0].id),
        "raw edits: sessions on record": at("admin:sessions_app_sessionrecord_changelist"),
        "raw edits: subjects": at("admin:sessions_app_subject_changelist"),
        "raw edits: people": at("admin:auth_user_changelist"),
    }


def counted(reader: Client, pages: Mapping[str, str]) -> dict[str, int]:
    """How many queries each page takes that was shown before."""
    counts = {}
    for name, url in pages.items():
        assert reader.get(url).status_code in (200, STOP_POLLING), name
        with CaptureQueriesContext(connection) as queries:
            reader.get(url)
        assert not re.search(r" OFFSET [1-9]", str(queries.captured_queries)), name
        counts[name] = len(queries)
    return counts


def test_few_rows_and_many_cost_the_same(store: SessionStore, reader: Client) -> None:
    grow(1, FEW)
    pages = addresses()
    assert counted(reader, pages) == QUERIES
    grow(FEW + 1, MANY)
    assert counted(reader, pages) == QUERIES | MORE_THAN_A_PAGE
