"""The lists of sessions and subjects as tables: under their filters, without content, recorded, a batch at a time."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.web import downloads
from sessions_app.models import SessionStore, SubjectAlias
from sessions_app.search.remembered import remember_search
from sessions_app.views import exports
from tests.agents import add_items, user
from tests.builders import make_session, make_store, make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db


def download(client: Client, name: str, **query: Any) -> str:
    answer: Any = client.get(reverse(f"sessions:{name}"), query)
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


def table(client: Client, name: str = "table", **query: Any) -> list[dict[str, str]]:
    text = download(client, name, **query)
    assert text.startswith(downloads.BYTE_ORDER_MARK)
    return list(csv.DictReader(StringIO(text.removeprefix(downloads.BYTE_ORDER_MARK), newline="")))


def said(answer: Any) -> list[str]:
    """What a redirect tells the user."""
    assert answer.status_code == 302
    return [str(message) for message in get_messages(answer.wsgi_request)]


class TestSessions:
    def test_it_has_what_the_list_shows_under_its_filters(self, operator: Client) -> None:
        subject = make_subject("cust_48213")
        ours = make_session("s-1", subject=subject, ticket="T-1", agent="Refunds", labels=["vip", "late"])
        make_session("s-2", ticket="T-2")
        make_session("s-3", ticket="T-1", erased_at=now())
        (row,) = table(operator, ticket="T-1")
        assert row["id"] == str(ours.pk)
        assert row["last activity (UTC)"] == f"{ours.last_activity_at:%Y-%m-%d %H:%M:%S}"
        names = ("store", "session id", "subject", "subject id", "ticket", "agent", "labels", "locked")
        assert [row[name] for name in names] == [
            *("main", "s-1", "cust_48213", str(subject.pk), "T-1", "Refunds", "vip, late", "no")
        ]
        assert [row["session id"] for row in table(operator)] == ["s-2", "s-1"]

    def test_its_name_has_the_date(self, operator: Client) -> None:
        answer = operator.get(reverse("sessions:table"))
        assert answer["Content-Disposition"] == f'attachment; filename="sessions-{now():%Y-%m-%d}.csv"'
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        assert "no-store" in answer["Cache-Control"]

    def test_it_is_recorded_before_it_is_sent(self, operator: Client) -> None:
        subject = make_subject("cust_1")
        for _ in range(3):
            make_session(subject=subject)
        make_session()
        operator.get(reverse("sessions:table"), {"subject": str(subject.pk)})
        (made,) = AuditEvent.objects.filter(type="session.table_exported")
        assert AuditActor.objects.get(ref=made.actor_ref).user_id == User.objects.get().pk
        assert (made.counters, made.subject_ref) == ({"sessions": 3}, subject.pk)
        assert json.loads(made.detail.details) == {"filter": f"subject={subject.pk}"}

    def test_without_its_event_nothing_is_sent(self, operator: Client) -> None:
        make_session("s-secret")
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE audit_event ADD CONSTRAINT is_full CHECK (false) NOT VALID")
        answer = operator.get(reverse("sessions:table"))
        assert answer.status_code == 503
        assert "s-secret" not in answer.text

    def test_no_cell_is_a_formula(self, operator: Client) -> None:
        make_session("=cmd|' /C calc'!A0", ticket="+1", agent="@SUM(A1)", labels=["-1"])
        (row,) = table(operator)
        found = [row[name] for name in ("session id", "ticket", "agent", "labels")]
        assert found == ["'=cmd|' /C calc'!A0", "'+1", "'@SUM(A1)", "'-1"]

    def test_it_is_read_a_batch_at_a_time_while_it_is_sent(
        self, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exports, "BATCH", 7)
        for number in range(20):
            make_session(f"s-{number}")
        answer: Any = operator.get(reverse("sessions:table"))
        sent = iter(answer.streaming_content)
        with CaptureQueriesContext(connection) as queries:
            lines = [next(sent) for _ in range(2 + 7)]
        assert len([query for query in queries if "LIMIT 7" in query["sql"]]) == 1
        with CaptureQueriesContext(connection) as queries:
            lines += list(sent)
        assert len([query for query in queries if "LIMIT 7" in query["sql"]]) == 2
        assert "OFFSET" not in str(queries.captured_queries)
        assert len(lines) == 2 + 20
        assert len(set(lines)) == len(lines)

    def test_what_registers_meanwhile_is_not_in_it(self, operator: Client) -> None:
        make_session("s-1")
        answer: Any = operator.get(reverse("sessions:table"))
        make_session("s-2")
        assert len(list(answer.streaming_content)) == 3

    def test_a_locked_store_is_said(self, operator: Client) -> None:
        make_session("s-1", store=make_store("closed", is_sensitive=True))
        assert [row["locked"] for row in table(operator)] == ["yes"]

    def test_more_than_a_spreadsheet_reads_is_refused(self, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exports, "MOST_ROWS", 1)
        make_session("s-1")
        assert len(table(operator)) == 1
        make_session("s-2")
        answer = operator.get(reverse("sessions:table"))
        assert said(answer) == ["More than 1 sessions match. Add a filter."]
        assert AuditEvent.objects.filter(type="session.table_exported").count() == 1

    def test_a_filter_that_is_wrong_and_a_search_in_messages_lead_back(self, operator: Client) -> None:
        answer = operator.get(reverse("sessions:table"), {"days": "3"})
        assert (answer.status_code, answer.url) == (302, f"{reverse('sessions:list')}?days=3")  # type: ignore[attr-defined]
        search = remember_search(User.objects.get(), "refund")
        answer = operator.get(reverse("sessions:table"), {"search": str(search.pk)})
        assert said(answer) == ["A search in messages cannot be downloaded. Remove it and keep the other filters."]
        assert not AuditEvent.objects.filter(type="session.table_exported").exists()

    def test_the_list_links_to_it_with_its_filters(self, operator: Client) -> None:
        assert (
            f'href="{reverse("sessions:table")}?ticket=T-1"'
            in operator.get(reverse("sessions:list"), {"ticket": "T-1"}).text
        )

    def test_it_needs_a_recent_sign_in(self, operator: Client) -> None:
        session = operator.session
        session["confirmed_at"] = 0
        session.save()
        answer = operator.get(reverse("sessions:table"))
        assert not answer.streaming
        assert not AuditEvent.objects.filter(type="session.table_exported").exists()


@pytest.mark.django_db(transaction=True)
def test_no_word_of_a_message_is_in_it(kept_main_store: SessionStore) -> None:
    add_items("s-1", user("My cat is called Murmel."))
    text = download(signed_in(person("support")), "table")
    assert "s-1" in text
    assert "Murmel" not in text


class TestSubjects:
    def test_it_has_the_subjects_of_the_list_with_their_ids(self, operator: Client) -> None:
        subject = make_subject("cust_1")
        SubjectAlias.objects.create(subject=subject, kind="tenant", key="=acme")
        merged, erased = make_subject("cust_2"), make_subject("cust_3")
        type(subject).objects.filter(pk=merged.pk).update(merged_into=subject)
        type(subject).objects.filter(pk=erased.pk).update(erased_at=now())
        (row,) = table(operator, "subjects-table")
        assert row["id"] == str(subject.pk)
        assert "user cust_1" in row["IDs"]
        assert "tenant =acme" in row["IDs"]
        (made,) = AuditEvent.objects.filter(type="subject.table_exported")
        assert made.counters == {"subjects": 1}
        assert "cust_1" not in str(made.__dict__)

    def test_who_may_see_no_subject_gets_none(self) -> None:
        make_subject("cust_1")
        assert signed_in(person("auditor")).get(reverse("sessions:subjects-table")).status_code == 403
        assert not AuditEvent.objects.filter(type="subject.table_exported").exists()
