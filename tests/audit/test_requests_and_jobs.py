"""Events name the web request or the job in which they were written, as lines of the log do, and are found by it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin import audit, log_context
from memadmin.audit.log.actors import Actor
from memadmin.audit.models import AuditEvent
from memadmin.audit.transparency import log_export
from memadmin.audit.transparency.canonical import body_of
from memadmin.deploy.roles import Roles
from memadmin.log_context import LogContext, within
from sessions_app.models import SessionRecord, SubjectKind
from sessions_app.services.subjects import subject_for_key
from tests.agents import run_sql
from tests.audit.log_pages import NOTED, address, insert_notes, link, note, seen, sign_log, words_of
from tests.audit.test_agents_apart import SIGNAL, in_run_of, latest
from tests.audit.test_exports import table
from tests.builders import make_session, make_store
from tests.deploy.connecting import connected_as
from tests.memories.conftest import agents_role  # noqa: F401
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

REQUEST = LogContext(request_id="00c0ffee00c0ffee")
JOB = LogContext(job="drain_outbox", job_id=77)


def events_of(answer: Any) -> list[str]:
    return list(
        AuditEvent.objects.filter(request_id=int(answer["X-Request-ID"], 16))
        .order_by("number")
        .values_list("type", flat=True)
    )


class TestWritten:
    def test_a_read_has_the_id_of_its_request_whatever_the_client_sends(self, auditor: Client) -> None:
        answer = auditor.get(address(), headers={"x-request-id": "00000000000000ff"})
        assert events_of(answer) == ["log.viewed"]
        assert not AuditEvent.objects.filter(request_id=255).exists()
        assert AuditEvent.objects.get(type="log.viewed").request == answer["X-Request-ID"]

    def test_denied_access_has_it_too(self) -> None:
        answer = signed_in(person("support")).get(address())
        assert answer.status_code == 403
        assert events_of(answer) == ["access.denied"]

    def test_a_changed_row_has_the_id_of_the_request_that_changed_it(self) -> None:
        session = make_session()
        with audit.acting(audit.person(person("compliance"))), within(REQUEST):
            SessionRecord.objects.filter(pk=session.pk).update(ticket="T-1")
        changed = AuditEvent.objects.latest("number")
        assert (changed.type, changed.request, changed.job_id) == ("session.row_updated", REQUEST.request_id, None)

    def test_events_of_a_job_have_its_id(self) -> None:
        session = make_session()
        with audit.acting(Actor("job", "drain_outbox")), within(JOB):
            SessionRecord.objects.filter(pk=session.pk).update(ticket="T-1")
            noted = note()
        changed = AuditEvent.objects.filter(type="session.row_updated").latest("number")
        assert [(each.request, each.job_id) for each in (changed, noted)] == [("", 77), ("", 77)]

    def test_others_have_neither_also_on_a_connection_that_just_served_a_request(self) -> None:
        session = make_session()
        with audit.acting(audit.person(person("compliance"))), within(REQUEST):
            SessionRecord.objects.filter(pk=session.pk).update(ticket="T-1")
        with audit.acting(Actor("command", "erase_subject")):
            SessionRecord.objects.filter(pk=session.pk).update(ticket="T-2")
            noted = note()
        changed = AuditEvent.objects.filter(type="session.row_updated").latest("number")
        assert [(each.request, each.job_id) for each in (changed, noted)] == [("", None), ("", None)]

    def test_an_agent_cannot_claim_a_request_or_a_job(self, agents_role: Roles) -> None:  # noqa: F811
        make_store("support", agent_roles=[agents_role["agents"]])
        subject = subject_for_key(SubjectKind.USER, "4711")
        for claimed in ("7", "not a number"):
            with connected_as(agents_role["agents"]):
                run_sql(in_run_of(subject))
                run_sql(f"SELECT set_config('memadmin.request_id', '{claimed}', true)")
                run_sql(f"SELECT set_config('memadmin.job_id', '{claimed}', true)")
                run_sql(SIGNAL.format(subject.pk, "triage"))
            signal = latest("signal")
            assert (signal.actor_kind, signal.request_id, signal.job_id) == ("agent", None, None)


@pytest.mark.django_db(transaction=True)
def test_nothing_of_a_request_stays_on_its_connection() -> None:
    session = make_session()
    with audit.acting(audit.person(person("compliance"))), within(REQUEST):
        SessionRecord.objects.filter(pk=session.pk).update(ticket="T-1")
        with connection.cursor() as cursor:
            # It may commit by itself, so that its settings are those of the connection meanwhile.
            cursor.execute("DO $$ BEGIN UPDATE sessions_app_sessionrecord SET ticket = 'T-3'; END $$")
    insert_notes(1)
    last, *changes = AuditEvent.objects.filter(type__in=("note.taken", "session.row_updated")).order_by("-number")
    assert [each.request for each in changes] == [REQUEST.request_id] * 2
    assert (last.type, last.request_id) == ("note.taken", None)


def test_the_hashed_form_is_that_of_events_without_them() -> None:
    """A copy of the verifier that somebody keeps, and a worker of the version before, read every event alike."""
    insert_notes(1)
    with within(REQUEST):
        note()
    with within(JOB):
        note()
    assert {tuple(body_of(each)) for each in AuditEvent.objects.all()} == {
        (
            *("v", "number", "id", "type", "at", "actor_kind", "actor", "role", "object_kind", "object", "subject"),
            *("shown", "outcome", "reason", "counters", "cause", "commitment"),
        )
    }
    sign_log()
    exported = [json.loads(line) for line in log_export.as_json_lines()]
    leaves = {line["number"]: line["leaf"] for line in exported if "leaf" in line}
    # The ids of all are taken away, which only the owner of the database can do.
    run_sql("ALTER TABLE audit_event DISABLE TRIGGER USER")
    run_sql("UPDATE audit_event SET request_id = NULL, job_id = NULL")
    again = [json.loads(line) for line in log_export.as_json_lines()]
    assert {line["number"]: line["leaf"] for line in again if "leaf" in line} == leaves
    assert [line.get("event") for line in again] == [line.get("event") for line in exported]


class TestFound:
    def find(self, client: Client, typed: str) -> Any:
        return client.post(reverse("audit:about"), {"q": typed})

    @pytest.fixture(autouse=True)
    def some_events(self) -> None:
        note()
        with within(REQUEST):
            audit.record_alone(NOTED, outcome="failed")
            note()
        with within(JOB):
            note()

    @pytest.mark.parametrize("typed", ["00c0ffee00c0ffee", " 00C0FFEE00C0FFEE ", "request 00c0ffee00c0ffee"])
    def test_by_the_request_id_of_an_error_page_or_a_line_of_the_log(self, auditor: Client, typed: str) -> None:
        answer = self.find(auditor, typed)
        assert answer.url == address(request_id="00c0ffee00c0ffee")
        page = auditor.get(answer.url)
        assert seen(page) == ["note.taken", "note.taken"]
        assert "request 00c0ffee00c0ffee" in words_of(page)
        search = AuditEvent.objects.get(type="log.searched")
        assert (search.counters, search.shown) == ({"found": 1}, [])

    def test_by_the_job_id_of_a_line_of_the_log(self, auditor: Client) -> None:
        assert self.find(auditor, "job 77").url == address(job_id=77)
        assert seen(auditor.get(address(job_id=77))) == ["note.taken"]

    def test_beside_other_filters(self, auditor: Client) -> None:
        assert seen(auditor.get(address(request_id="00c0ffee00c0ffee", outcome="failed"))) == ["note.taken"]

    def test_not_by_one_without_events(self, auditor: Client) -> None:
        for typed in ("1234567812345678", "job 78"):
            assert self.find(auditor, typed).status_code == 422, typed

    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ({"request_id": "7"}, "A request ID has 16 digits"),
            ({"request_id": "f" * 16}, "A request ID has 16 digits"),
            ({"job_id": "x"}, "A job ID is a number."),
            ({"job_id": 2**63}, "A job ID is a number."),
            ({"job_id": -1}, "A job ID is a number."),
        ],
    )
    def test_a_wrong_id_is_an_error(self, auditor: Client, query: dict[str, Any], sentence: str) -> None:
        page = auditor.get(address(**query))
        assert page.status_code == 400
        assert sentence in page.text

    def test_the_page_of_an_event_leads_to_the_others(self, auditor: Client) -> None:
        of_request, of_job = (AuditEvent.objects.filter(**{name: value}).latest("number") for name, value in WHERE)
        page = auditor.get(of_request.get_absolute_url())
        assert "Request 00c0ffee00c0ffee" in words_of(page)
        assert link(page, "All events of this request") == address(request_id="00c0ffee00c0ffee")
        page = auditor.get(of_job.get_absolute_url())
        assert "Job 77" in words_of(page)
        assert link(page, "All events of this job") == address(job_id=77)
        of_neither = AuditEvent.objects.filter(type="note.taken", request_id=None, job_id=None)[0]
        page = auditor.get(of_neither.get_absolute_url())
        assert not re.search("All events of this (request|job)", page.text)

    def test_the_table_of_an_export_has_them(self, auditor: Client) -> None:
        rows = table(auditor, request_id="00c0ffee00c0ffee")
        assert [(row["request id"], row["job id"]) for row in rows] == [("00c0ffee00c0ffee", "")] * 2
        assert [(row["request id"], row["job id"]) for row in table(auditor, job_id=77)] == [("", "77")]


WHERE = (("request_id", 0x00C0FFEE00C0FFEE), ("job_id", 77))


def test_an_error_page_leads_to_what_was_recorded_before_the_error(
    administrator: Client, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(request: object) -> None:
        audit.record_alone(NOTED)
        raise ZeroDivisionError

    monkeypatch.setattr("memadmin.deploy.system.views.system_page", breaks)
    administrator.raise_request_exception = False
    page = administrator.get(reverse("system:system"))
    [(shown,)] = [match.groups() for match in re.finditer(r"request ([0-9a-f]{16})", page.text)]
    found = auditor.post(reverse("audit:about"), {"q": shown}, follow=True)
    assert seen(found) == ["note.taken"]
    assert log_context.current() is None
