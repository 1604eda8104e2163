"""The log as a list, as auditors and compliance staff read it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.log.actors import Kind
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.audit.pages.forms import AuditFilter
from memadmin.audit.pages.recent_readers import who_looked
from sessions_app.services.subjects import merge_subjects
from tests.audit.log_pages import (
    SESSION_SEEN,
    SUBJECT_CHANGED,
    address,
    event,
    insert_notes,
    insert_row,
    insert_views,
    link,
    note,
    seen,
    shown,
    sign_log,
    texts,
    words_of,
)
from tests.builders import make_session, make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

SHOWN = "shown &&"


# The same in every process: it stands in the names of tests.
SOMETHING = UUID("00000000-0000-4000-8000-000000000001")


class TestRows:
    def test_a_row_says_who_did_what_to_what_and_when(self, compliance: Client) -> None:
        session, subject = make_session(), make_subject("cust_48213")
        audit.record_alone(
            SESSION_SEEN, by=person("support"), target=session, subject=subject, counters={"items": 1_056}
        )
        (row,) = [text for text in texts(compliance.get(address())) if "test.session_viewed" in text]
        for words in ("test.session_viewed", "support", f"session {str(session.pk)[:8]}", "cust_48213", "1,056 items"):
            assert words in row
        assert "unsequenced" in row
        assert row.endswith("ok")

    def test_a_row_tells_how_far_its_event_is_signed(self, auditor: Client) -> None:
        note()
        sign_log()
        row = next(text for text in texts(auditor.get(address())) if "note.taken" in text)
        assert re.match(r"\d+ \d", row)

    def test_what_was_denied_stands_out(self, auditor: Client) -> None:
        note(outcome="denied", reason_code="no_grant")
        (row,) = [text for text in texts(auditor.get(address())) if "note.taken" in text]
        assert "no grant" in row
        assert "denied" in row

    def test_the_newest_come_first(self, auditor: Client) -> None:
        for _ in range(3):
            note()
        ids = re.findall(r'id="event-([^"]*)"', auditor.get(address()).text)
        newest = AuditEvent.objects.order_by("-number").values_list("id", flat=True)[: len(ids)]
        assert ids == [str(found) for found in newest]
        assert len(ids) > 3

    def test_rows_that_a_verb_changed_are_folded_beneath_it(self, auditor: Client) -> None:
        subject = make_subject()
        verb = audit.record_alone(SUBJECT_CHANGED, by=person("support"), target=subject)
        insert_row("test.row_updated", subject.pk, cause=verb)
        insert_row("test.row_inserted", subject.pk, cause=verb)
        page = auditor.get(address())
        assert seen(page) == ["test.subject_merged"]
        (row,) = [text for text in texts(page) if "test.subject_merged" in text]
        assert "2 changes of rows recorded by the database" in row
        assert row.index("test.row_updated") < row.index("test.row_inserted")

    def test_a_row_whose_verb_is_on_another_page_leads_to_it(self, auditor: Client) -> None:
        subject = make_subject()
        verb = audit.record_alone(SUBJECT_CHANGED, target=subject)
        insert_row("test.row_updated", subject.pk, cause=verb)
        page = auditor.get(address(type="test.row_updated"))
        assert seen(page) == ["test.row_updated"]
        assert link(page, "test.subject_merged") == event(verb).get_absolute_url()
        assert "outside the console" not in next(texts(page))

    def test_a_row_that_raw_sql_changed_says_which_database_role_did_it(self, auditor: Client) -> None:
        row = insert_row("test.row_updated", make_subject().pk)
        role = AuditActor.objects.get(ref=row.role_ref).label
        (text,) = [text for text in texts(auditor.get(address())) if "test.row_updated" in text]
        assert f"changed outside the console by database role {role}" in text


class TestNames:
    def test_an_auditor_sees_the_log_and_no_content(self, auditor: Client) -> None:
        session, subject = make_session("customer_48213:ticket_1"), make_subject("cust_48213")
        audit.record_alone(SESSION_SEEN, target=session, subject=subject)
        page = auditor.get(address())
        (text,) = [text for text in texts(page) if "test.session_viewed" in text]
        assert f"{str(session.pk)[:8]}" in text
        assert f"subject {str(subject.pk)[:8]}" in text
        for secret in ("customer_48213", "cust_48213", session.get_absolute_url(), subject.get_absolute_url()):
            assert secret not in page.text

    def test_who_may_open_it_is_led_to_it(self, compliance: Client) -> None:
        session, subject = make_session(), make_subject("cust_48213")
        audit.record_alone(SESSION_SEEN, target=session, subject=subject)
        page = compliance.get(address())
        assert link(page, f"session {str(session.pk)[:8]}") == session.get_absolute_url()
        assert link(page, "cust_48213") == subject.get_absolute_url()

    def test_what_is_gone_is_called_by_its_id(self, compliance: Client) -> None:
        subject = make_subject("cust_48213")
        audit.record_alone(SUBJECT_CHANGED, target=subject)
        session = make_session(erased_at=now())
        audit.record_alone(SESSION_SEEN, target=session)
        ids = [str(subject.pk)[:8], str(session.pk)[:8]]
        subject.delete()
        page = compliance.get(address())
        assert f"subject {ids[0]}" in " ".join(texts(page))
        assert ids[1] in " ".join(texts(page))
        assert session.get_absolute_url() not in page.text

    def test_who_left_stays_readable_and_who_was_erased_does_not(self, auditor: Client) -> None:
        leaver = person("support")
        note(by=leaver)
        leaver.is_active = False
        leaver.save()
        assert "support" in next(text for text in texts(auditor.get(address())) if "note.taken" in text)
        leaver.delete()
        row = next(text for text in texts(auditor.get(address())) if "note.taken" in text)
        assert "support" not in row
        assert "erased" in row

    def test_names_that_somebody_chose_are_only_text(self, compliance: Client) -> None:
        note(by=audit.Actor("agent", "<script>alert(1)</script>\u202e"))
        audit.record_alone(SUBJECT_CHANGED, target=make_subject("<b>bold</b>"))
        text = compliance.get(address()).text
        for markup in ("<script>alert", "<b>bold", "\u202e"):
            assert markup not in text
        assert "&lt;b&gt;bold" in text


class TestCost:
    def test_ten_rows_and_a_thousand_cost_the_same(self, compliance: Client) -> None:
        def queries_for(count: int) -> int:
            insert_views(count, make_subject().pk)
            with CaptureQueriesContext(connection) as queries:
                page = compliance.get(address(type="test.session_viewed"))
            assert len(shown(page)) == min(count, 50)
            assert "OFFSET" not in str(queries.captured_queries)
            return len(queries)

        compliance.get(address())
        assert queries_for(10) == queries_for(990)

    def test_many_events_are_walked_page_by_page(self, auditor: Client) -> None:
        insert_notes(260)
        page = auditor.get(address(type="note.taken"))
        assert len(shown(page)) == 50
        seen_ids: set[str] = set()
        for _ in range(4):
            seen_ids |= set(re.findall(r'id="event-([^"]*)"', page.text))
            page = auditor.get(link(page, "Older"))
        assert len(seen_ids) == 200

    def test_each_filter_walks_along_an_index_of_its_own(self) -> None:
        """However old what it finds is: nothing newer is walked over, and nothing is sorted."""
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["audit_event_people_newest"]),
            ({"jobs": "with"}, ["audit_event_busy_newest", "audit_event_people_newest"]),
            (
                {"jobs": "with", "since": "2026-01-01", "until": "2026-02-01"},
                ["audit_event_busy_newest", "audit_event_people_newest"],
            ),
            ({"actor": SOMETHING}, ["audit_event_actor_newest"]),
            ({"actor": SOMETHING, "since": "2026-01-01"}, ["audit_event_actor_newest"]),
            ({"type": "note.taken"}, ["audit_event_type_newest"]),
            ({"type": "test.*"}, ["audit_event_type_newest"]),
            ({"type": "reads"}, ["audit_event_type_newest"]),
            ({"type": "outside"}, ["audit_event_outside_newest"]),
            ({"outcome": "denied"}, ["audit_event_outcome_newest"]),
            ({"object": SOMETHING}, ["audit_event_object_newest"]),
            ({"subject": SOMETHING}, ["audit_event_subject_newest"]),
            ({"request_id": "00000000000000ff"}, ["audit_event_request_newest"]),
            ({"job_id": 7}, ["audit_event_job_newest"]),
        ]
        with connection.cursor() as cursor:
            # Statistics of a log like others, whatever the autovacuum saw of the tests before.
            cursor.execute(INSERT_OF_JOB, [note().actor_ref, 3_000])
            cursor.execute("ANALYZE audit_event")
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off")
        for query, indexes in cases:
            plans = [branch[:51].explain() for branch in AuditFilter(QueryDict(urlencode(query)), User()).branches()]
            used = set()
            for plan in (plan for plan in plans if SHOWN not in plan):
                used |= set(re.findall(r"using (audit_event_\w+)", plan))
                assert "Sort" not in plan, query
                assert "Filter" not in plan.replace("Filter: ((type)::text ~~ '%.row\\_%'::text)", ""), (query, plan)
            assert sorted(used) == indexes, query

    def test_what_was_shown_among_others_is_looked_up_and_then_sorted(self) -> None:
        """However many events there are: the planner never walks over them to find the few that show somebody."""
        note()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        for name in ("object", "subject"):
            branches = AuditFilter(QueryDict(urlencode({name: uuid4()})), User()).branches()
            (plan,) = [plan for branch in branches if SHOWN in (plan := branch[:51].explain())]
            assert "Bitmap Index Scan on audit_event_shown_ids" in plan, name
            assert "Index Cond: (number = ANY (" in plan, name


class TestFilters:
    @pytest.fixture(autouse=True)
    def some_events(self) -> None:
        self.subject, self.session = make_subject("cust_1"), make_session("s-1")
        helper, other = person("support"), person("reviewer")
        note(by=helper)
        audit.record_alone(SESSION_SEEN, by=helper, target=self.session, subject=self.subject)
        audit.record_alone(SUBJECT_CHANGED, by=other, target=self.subject, subject=self.subject)
        note(by=other, outcome="denied", reason_code="no_grant", shown=[self.session, self.subject])
        insert_row("test.row_updated", self.subject.pk)

    def test_every_filter_shows_what_it_says(self, auditor: Client) -> None:
        everything = ["test.row_updated", "note.taken", "test.subject_merged", "test.session_viewed", "note.taken"]
        support = AuditActor.objects.get(label="support").ref
        today = f"{now():%Y-%m-%d}"
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({}, everything),
            ({"type": "note.taken"}, ["note.taken", "note.taken"]),
            ({"type": "test.*"}, ["test.subject_merged", "test.session_viewed"]),
            ({"type": "reads"}, ["test.session_viewed"]),
            ({"type": "outside"}, ["test.row_updated"]),
            ({"type": "test.row_updated"}, ["test.row_updated"]),
            ({"actor": support}, ["test.session_viewed", "note.taken"]),
            ({"actor": support, "type": "reads"}, ["test.session_viewed"]),
            ({"actor": SOMETHING}, []),
            ({"outcome": "denied"}, ["note.taken"]),
            ({"outcome": "failed"}, []),
            ({"subject": self.subject.pk}, everything[:4]),
            ({"subject": self.subject.pk, "type": "reads"}, ["test.session_viewed"]),
            ({"subject": self.subject.pk, "object": self.session.pk}, ["note.taken", "test.session_viewed"]),
            ({"subject": SOMETHING}, []),
            ({"object": self.session.pk}, ["note.taken", "test.session_viewed"]),
            ({"since": today, "until": today}, everything),
            ({"until": "2025-10-14"}, []),
            ({"since": "0001-01-01", "until": "9999-12-31"}, everything),
            ({"since": today, "type": "note.taken", "outcome": "denied"}, ["note.taken"]),
        ]
        for query, expected in cases:
            page = auditor.get(address(**query))
            assert page.status_code == 200
            assert seen(page) == expected, query

    def test_changes_are_all_that_is_no_read(self, auditor: Client) -> None:
        assert seen(auditor.get(address(type="changes", subject=self.subject.pk))) == [
            "note.taken",
            "test.subject_merged",
        ]

    def test_a_person_is_found_under_every_id_that_was_merged(self, auditor: Client) -> None:
        into, later = make_subject("cust_2"), make_subject("cust_3")
        merge_subjects(self.subject, into, by=person("compliance", "reviewer"))
        merge_subjects(later, into, by=person("compliance", "support"))
        for subject in (self.subject, into, later):
            assert seen(auditor.get(address(subject=subject.pk, type="reads"))) == ["test.session_viewed"]

    def test_the_subjects_page_asks_who_looked_at_it(self, compliance: Client) -> None:
        page = compliance.get(self.subject.get_absolute_url())
        assert seen(compliance.get(link(page, "Readers"))) == ["test.session_viewed"]
        assert len(seen(compliance.get(link(page, "All events")))) == 4
        administrator = signed_in(person("administrator"))
        assert "Readers</a>" not in administrator.get(self.subject.get_absolute_url()).text

    def test_the_subjects_page_counts_who_looked_at_it(self, compliance: Client) -> None:
        page = compliance.get(self.subject.get_absolute_url())
        assert re.search(r"Readers in the last 30 days.*support</a>.*person.*1 read</span>", page.text, re.DOTALL)
        assert seen(compliance.get(link(page, "support"))) == ["test.session_viewed"]
        administrator = signed_in(person("administrator"))
        assert "Readers in the last 30 days" not in administrator.get(self.subject.get_absolute_url()).text
        assert "No earlier reads." in compliance.get(make_subject("cust_2").get_absolute_url()).text

    def test_lookers_are_counted_whoever_read_most_first(self) -> None:
        other = User.objects.get(username="reviewer")
        for _ in range(2):
            audit.record_alone(SESSION_SEEN, by=other, target=self.session, shown=[self.subject])
        # By itself and among others: one read.
        audit.record_alone(SESSION_SEEN, by=other, target=self.session, subject=self.subject, shown=[self.subject])
        yesterday = now() - timedelta(days=1)
        looked = who_looked([self.subject.pk], since=yesterday)
        assert [(str(who), count) for who, count in looked.shown] == [("reviewer", 3), ("support", 1)]
        assert (looked.others, looked.is_capped) == (0, False)
        assert not who_looked([self.subject.pk], since=now() + timedelta(days=1)).shown
        assert not who_looked([SOMETHING], since=yesterday).shown

    def test_a_value_nobody_knows_is_said_and_shows_nothing(self, auditor: Client) -> None:
        cases: list[tuple[dict[str, str], str]] = [
            ({"type": "tea.poured"}, "“tea.poured” is not a recorded event type."),
            ({"type": "tea.*"}, "“tea.*” is not a recorded event type."),
            ({"type": "<b>"}, "“&lt;b&gt;” is not a recorded event type"),
            ({"type": "x" * 65}, "at most 64 characters"),
            ({"type": "a\0b"}, "Null characters are not allowed."),
            ({"actor": "support"}, "The actor ID in the link is not valid."),
            ({"outcome": "maybe"}, "“maybe” is not an outcome."),
            ({"since": "yesterday"}, "“Since” is not a date"),
            ({"since": "2026-02-30"}, "“Since” is not a date"),
            ({"since": "2026-03-02", "until": "2026-03-01"}, "“Until” is before “Since”."),
            ({"jobs": "maybe"}, "“maybe” is not a valid choice for agents and background jobs."),
            ({"subject": "cust_1"}, "The subject ID in the link is not valid."),
            ({"object": "7"}, "The record ID in the link is not valid."),
        ]
        for query, sentence in cases:
            page = auditor.get(address(**query))
            assert page.status_code == 400, query
            assert sentence in page.text, query
            assert shown(page) == [], query

    def test_a_filter_that_finds_nothing_says_what_is_on(self, auditor: Client) -> None:
        # Alone, it also leaves out agents and jobs.
        for query in ({"until": "2025-10-14", "type": "note.taken"}, {"until": "2025-10-14"}):
            page = auditor.get(address(**query))
            assert "No event matches" in page.text
            (listed,) = re.findall(r"2 filters are on: (.*?)\. </p>", " ".join(page.text.split()))
            assert len(listed.split(", ")) == 2
        assert link(page, "Clear filters") == reverse("audit:list") + "?view=all"

    def test_chips_take_one_filter_away(self, auditor: Client) -> None:
        support = AuditActor.objects.get(label="support").ref
        page = auditor.get(address(type="reads", actor=support, subject=self.subject.pk, object=self.session.pk))
        chips = [
            " ".join(re.sub(r"<[^>]*>", "", chip).split())
            for chip in re.findall(r'<span class="chip">(.*?)</span>', page.text, re.S)
        ]
        short = str(self.subject.pk)[:8], str(self.session.pk)[:8]
        assert chips == ["all reads", "by support", f"about subject {short[0]}", f"object {short[1]}"]
        removal = re.search(r'href="([^"]*)"\s*aria-label="Remove filter by support"', page.text)
        assert removal
        assert set(parse_qs(urlsplit(removal[1].replace("&amp;", "&")).query)) == {"type", "subject", "object"}

    def test_a_type_of_an_older_version_can_still_be_asked_for(self, auditor: Client) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO audit_event (type, actor_kind, shown, outcome, counters)"
                " VALUES ('tea.poured', 'database', '{}', 'succeeded', '{}')"
            )
        assert shown(auditor.get(address(type="tea.poured"))) == ["tea.poured"]


class TestPages:
    def test_every_event_is_on_one_page(self, auditor: Client) -> None:
        insert_notes(120)
        page = auditor.get(address(type="note.taken"))
        seen_ids = re.findall(r'id="event-([^"]*)"', page.text)
        while page.context["page"].older:
            page = auditor.get(link(page, "Older"))
            seen_ids += re.findall(r'id="event-([^"]*)"', page.text)
        assert seen_ids == [
            str(found)
            for found in AuditEvent.objects.filter(type="note.taken").newest_first().values_list("id", flat=True)
        ]
        back = auditor.get(link(page, "Newer"))
        assert re.findall(r'id="event-([^"]*)"', back.text) == seen_ids[50:100]

    def test_pages_of_a_person_hold_each_event_once(self, auditor: Client) -> None:
        subject = make_subject()
        for number in range(60):
            note(subject=subject, shown=[subject] if number % 3 else [])
        page = auditor.get(address(subject=subject.pk, type="note.taken"))
        ids = re.findall(r'id="event-([^"]*)"', page.text)
        ids += re.findall(r'id="event-([^"]*)"', auditor.get(link(page, "Older")).text)
        assert len(ids) == len(set(ids)) == 60

    def test_a_page_link_that_was_tampered_with_leads_to_the_first_page(self, auditor: Client) -> None:
        for cursor in ("made-up", "x" * 5_000, "\0"):
            page = auditor.get(address(cursor=cursor, type="note.taken"))
            assert page.status_code == 400, cursor
            assert "incomplete or was changed" in page.text, cursor
            assert link(page, "Go to the first page") == address(type="note.taken"), cursor

    def test_what_is_newer_is_offered(self, auditor: Client) -> None:
        note()
        page = auditor.get(address(type="note.taken"))
        match = re.search(r'hx-get="([^"]*newer[^"]*)"', page.text)
        assert match
        ask = match[1].replace("&amp;", "&")
        assert auditor.get(ask).status_code == 204
        note()
        note()
        assert "2 newer" in auditor.get(ask).text
        assert auditor.get(reverse("audit:newer") + "?cursor=made-up").status_code == 400

    def test_a_fragment_is_a_part_of_the_page(self, auditor: Client) -> None:
        note()
        # Whoever reads the log for the first time is somebody new to filter by.
        auditor.get(address())
        page = auditor.get(address(type="note.taken"))
        part = auditor.get(address(type="note.taken"), headers={"HX-Request": "true"})
        assert "<html" not in part.text
        # The CSRF token is masked anew each time.
        plain = [re.sub(r'value="[^"]{64}"', "", text) for text in (part.text, page.text)]
        assert plain[0].strip() in plain[1]


INSERT_OF_JOB = """
INSERT INTO audit_event (type, actor_kind, actor_ref) SELECT 'note.taken', 'job', %s FROM generate_series(1, %s)
"""


class TestJobs:
    """What jobs and agents did is left out of the plain list, which says so; whoever looks for something finds it."""

    @pytest.fixture(autouse=True)
    def a_person_and_many_jobs(self) -> None:
        self.subject = make_subject()
        self.note = note(by=person("support"))
        self.raw = insert_row("test.row_updated", self.subject.pk)
        with audit.acting(audit.Actor("job", "inspect_sessions")):
            for _ in range(60):
                self.of_job = note(subject=self.subject)

    def test_the_first_page_shows_what_people_did_however_much_jobs_did_since(self, auditor: Client) -> None:
        page = auditor.get(address())
        assert seen(page) == ["test.row_updated", "note.taken"]
        assert "without agents and background jobs" in words_of(page)

    def test_neither_jobs_nor_agents_stand_there(self, auditor: Client) -> None:
        kinds: tuple[Kind, ...] = ("job", "agent")
        for kind in kinds:
            with audit.acting(audit.Actor(kind, "busy")):
                done = note()
            assert str(done.id) not in auditor.get(address()).text, kind
            assert str(done.id) in auditor.get(address(jobs="with")).text, kind

    def test_they_are_one_step_away_and_back(self, auditor: Client) -> None:
        page = auditor.get(chip(auditor.get(address()), "without agents and background jobs"))
        assert len(seen(page)) > 40
        assert "with agents and background jobs" in words_of(page)
        assert str(self.note.id) in auditor.get(link(page, "Older")).text
        assert chip(page, "with agents and background jobs") == address() + "?view=all"

    def test_none_of_them_is_walked_over(self) -> None:
        insert_notes(200)
        with connection.cursor() as cursor:
            cursor.execute(INSERT_OF_JOB, [self.of_job.actor_ref, 3_000])
            cursor.execute("ANALYZE audit_event")
        for query in ({}, {"since": "2026-01-01"}, {"since": "2026-01-01", "until": "2126-01-01"}):
            (branch,) = AuditFilter(QueryDict(urlencode(query)), User()).branches()
            plan = branch[:51].explain()
            assert "using audit_event_people_newest" in plan
            assert "Filter" not in plan

    def test_a_day_is_no_other_list(self, auditor: Client) -> None:
        page = auditor.get(address(since="2026-01-01"))
        assert seen(page) == ["test.row_updated", "note.taken"]
        assert chip(page, "without agents and background jobs") == address(since="2026-01-01", jobs="with")

    def test_who_looks_for_something_finds_it_of_jobs_too(self, auditor: Client) -> None:
        for query in ({"subject": self.subject.pk}, {"type": "note.taken"}, {"actor": self.of_job.actor_ref}):
            page = auditor.get(address(**query))
            assert str(self.of_job.id) in page.text
            assert "background jobs" not in words_of(page).partition("Filtered by")[2].partition("Index")[0]
            assert str(self.of_job.id) not in auditor.get(address(**query, jobs="without")).text

    def test_its_event_says_what_was_left_out(self, auditor: Client) -> None:
        for query in ({}, {"jobs": "with"}, {"type": "note.taken"}):
            auditor.get(address(**query))
        views = AuditEvent.objects.filter(type="log.viewed").order_by("number")
        kept = [json.loads(view.detail.details)["filter"] for view in views]
        assert kept == ["jobs=without", "jobs=with", "type=note.taken"]


def chip(page: Any, text: str) -> str:
    """Where the cross of a filter that is on leads."""
    match = re.search(rf'<a href="([^"]*)"\s+aria-label="Remove filter {text}"', page.text)
    assert match, f"no filter says {text}"
    return unescape(match[1])


class TestRecorded:
    def test_looking_at_the_log_is_one_event(self, auditor: Client) -> None:
        insert_notes(60)
        subject = make_subject()
        auditor.get(address(subject=subject.pk))
        (view,) = AuditEvent.objects.filter(type="log.viewed")
        assert (view.actor_kind, view.subject_ref, view.outcome) == ("person", subject.pk, "succeeded")
        assert AuditActor.objects.get(ref=view.actor_ref).label == "auditor"

    def test_without_its_event_nothing_is_shown(self, auditor: Client) -> None:
        note(reason_code="no_grant")
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE audit_event ADD CONSTRAINT is_full CHECK (false) NOT VALID")
        page = auditor.get(address())
        assert page.status_code == 503
        assert "note.taken" not in page.text

    def test_asking_for_what_is_newer_is_no_event(self, auditor: Client) -> None:
        auditor.get(reverse("audit:newer"))
        assert not AuditEvent.objects.filter(type__startswith="log.").exists()


class TestAbout:
    """From what people call somebody to the events about them."""

    def find(self, client: Client, typed: str, filters: str = "") -> Any:
        return client.post(reverse("audit:about"), {**dict(parse_qsl(filters)), "q": typed})

    def test_an_auditor_finds_a_person_by_their_id(self, auditor: Client) -> None:
        subject = make_subject("cust_48213")
        answer = self.find(auditor, " cust_48213 ", "type=reads&subject=7&object=8")
        assert answer.status_code == 302
        assert parse_qs(urlsplit(answer.url).query) == {"type": ["reads"], "subject": [str(subject.pk)]}
        (search,) = AuditEvent.objects.filter(type="log.searched")
        assert search.shown == [subject.pk]
        assert not hasattr(search, "detail")

    def test_a_session_is_found_by_its_id_in_the_store(self, auditor: Client) -> None:
        session = make_session("customer_1:ticket_2")
        assert self.find(auditor, "customer_1:ticket_2").url == address(object=session.pk)

    def test_an_id_is_found_after_what_it_stood_for_is_gone(self, auditor: Client) -> None:
        gone, record, unknown = uuid4(), uuid4(), uuid4()
        note(subject=gone, shown=[record])
        assert self.find(auditor, str(gone)).url == address(subject=gone)
        assert self.find(auditor, str(record)).url == address(object=record)
        assert self.find(auditor, str(unknown)).url == address(object=unknown)

    def test_the_id_of_an_event_leads_to_it(self, auditor: Client) -> None:
        found = note()
        assert self.find(auditor, str(found.id)).url == found.get_absolute_url()

    def test_several_are_offered(self, compliance: Client) -> None:
        from sessions_app.models import SubjectKind

        user, tenant = make_subject("7"), make_subject("7", SubjectKind.TENANT)
        session = make_session("7")
        page = self.find(compliance, "7")
        for ref in (f"subject={user.pk}", f"subject={tenant.pk}", f"object={session.pk}"):
            assert ref in page.text

    def test_nobody_of_that_name_is_said_and_what_was_typed_stays(self, auditor: Client) -> None:
        page = self.find(auditor, "<nobody>")
        assert page.status_code == 422
        assert "Nothing found for “&lt;nobody&gt;”" in page.text
        assert 'value="&lt;nobody&gt;"' in page.text
        assert AuditEvent.objects.get(type="log.searched").counters == {"found": 0}

    def test_a_session_is_found_by_its_ticket_and_by_a_part_of_it(self, auditor: Client) -> None:
        session = make_session(ticket="T-90460")
        make_session(ticket="T-11111")
        for typed in ("T-90460", "90460", "t-9046"):
            assert self.find(auditor, typed).url == address(object=session.pk), typed

    def test_a_subject_is_found_by_a_part_of_its_id_which_the_page_does_not_show(self, auditor: Client) -> None:
        subject = make_subject("cust_48213")
        for typed in ("48213", "CUST_482"):
            assert self.find(auditor, typed).url == address(subject=subject.pk), typed
        other = make_subject("cust_48299")
        page = self.find(auditor, "cust_482")
        for each in (subject, other):
            assert f'subject={each.pk}">subject {str(each.pk)[:8]}</a>' in page.text
        assert "cust_48213" not in page.text
        assert "cust_48299" not in page.text
        search = AuditEvent.objects.filter(type="log.searched").latest("number")
        assert sorted(search.shown) == sorted([subject.pk, other.pk])
        assert not hasattr(search, "detail")

    def test_the_whole_id_of_a_subject_counts_more_than_parts_of_any(self, auditor: Client) -> None:
        subject = make_subject("cust_1")
        make_subject("cust_11")
        make_session("cust_1:ticket_2")
        assert self.find(auditor, "cust_1").url == address(subject=subject.pk)

    def test_a_part_of_many_ids_offers_ten_subjects_and_the_sessions_for_the_same_cost(self, auditor: Client) -> None:
        def queries_of_search() -> int:
            with CaptureQueriesContext(connection) as queries:
                self.page = self.find(auditor, "customer")
            return len(queries)

        sessions = [make_session("customer_1"), make_session("customer_2")]
        for number in range(2):
            make_subject(f"customer_{number + 10}")
        queries_of_search()
        few = queries_of_search()
        assert "Type more of the ID" not in self.page.text
        for number in range(2, 40):
            make_subject(f"customer_{number + 10}")
        assert queries_of_search() == few
        assert self.page.text.count(">subject ") == 10
        assert "The first 10 of each kind. Type more of the ID" in self.page.text
        for session in sessions:
            assert f"object={session.pk}" in self.page.text

    def test_a_subject_with_many_ids_is_offered_once(self, auditor: Client) -> None:
        subject = make_subject("customer_1")
        for number in range(20):
            subject.aliases.create(kind="user", key=f"customer_1_{number}")
        assert self.find(auditor, "customer").url == address(subject=subject.pk)

    def test_the_whole_ticket_counts_more_than_a_part(self, auditor: Client) -> None:
        session = make_session(ticket="T-1")
        make_session(ticket="T-11")
        assert self.find(auditor, "T-1").url == address(object=session.pk)

    def test_a_session_is_found_by_the_beginning_of_its_id(self, auditor: Client) -> None:
        session = make_session("customer_cust_7:ticket_2")
        assert self.find(auditor, "customer_cust_7").url == address(object=session.pk)

    def test_all_that_have_a_short_id_are_found_by_it(self, auditor: Client) -> None:
        session, subject = make_session(), make_subject("cust_1")
        assert self.find(auditor, str(session.pk)[:8]).url == address(object=session.pk)
        assert self.find(auditor, str(subject.pk)[:8].upper()).url == address(subject=subject.pk)
        gone, record = uuid4(), uuid4()
        note(subject=gone)
        insert_row("test.row_updated", record)
        assert self.find(auditor, str(gone)[:8]).url == address(subject=gone)
        assert parse_qs(urlsplit(self.find(auditor, str(record)[:13]).url).query).popitem()[1] == [str(record)]

    def test_one_id_is_found_once_however_many_events_name_it(self, auditor: Client) -> None:
        gone = uuid4()
        insert_views(1_000, gone)
        with CaptureQueriesContext(connection) as queries:
            assert self.find(auditor, str(gone)[:8]).url == address(subject=gone)
        asked = [query["sql"] for query in queries if '"subject_ref" BETWEEN' in query["sql"]]
        assert len(asked) == 2
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off")
            for sql in asked:
                cursor.execute(f"EXPLAIN {sql}")
                plan = "\n".join(line for (line,) in cursor.fetchall())
                assert "audit_event_subject_newest" in plan
                assert "Sort" not in plan

    def test_too_short_a_beginning_finds_nothing(self, auditor: Client) -> None:
        assert self.find(auditor, str(note().id)[:7]).status_code == 422

    def test_filters_are_sent_without_a_search_too(self, auditor: Client) -> None:
        subject = make_subject()
        answer = self.find(auditor, " ", f"type=reading&since=2026-01-01&subject={subject.pk}&x=y")
        assert parse_qs(urlsplit(answer.url).query) == {
            "type": ["reading"],
            "since": ["2026-01-01"],
            "subject": [str(subject.pk)],
        }
        assert not AuditEvent.objects.filter(type="log.searched").exists()

    def test_what_cannot_be_looked_for_is_said(self, auditor: Client) -> None:
        for typed in ("x" * 513, "\0"):
            assert self.find(auditor, typed).status_code == 422, typed

    def test_filters_that_were_changed_on_the_way_do_no_harm(self, auditor: Client) -> None:
        make_subject("cust_1")
        assert self.find(auditor, "cust_1", "type=<b>&outcome=maybe&x=y").status_code == 302


class TestAccess:
    def test_other_roles_may_not_read_it(self) -> None:
        for role in ("support", "reviewer", "administrator"):
            client = signed_in(person(role))
            page = client.get(reverse("audit:list"))
            assert page.status_code == 403, role
            assert "compliance and auditor" in page.text, role
            assert client.get(reverse("audit:newer")).status_code == 403, role

    def test_nobody_signed_in_is_asked_to(self, client: Client) -> None:
        assert client.get(address()).status_code == 302

    def test_the_sidebar_offers_it_to_who_may_read_it(self, auditor: Client) -> None:
        assert link(auditor.get("/"), "Audit log") == reverse("audit:list")
        assert 'data-key="g a"' in auditor.get("/").text
        assert reverse("audit:list") not in signed_in(person("support")).get("/").text

    def test_the_wrong_method_is_refused(self, auditor: Client) -> None:
        for name, method in (("audit:list", "post"), ("audit:newer", "post"), ("audit:about", "get")):
            assert getattr(auditor, method)(reverse(name)).status_code == 405, name

    def test_the_browser_keeps_no_copy(self, auditor: Client) -> None:
        assert "no-store" in auditor.get(address())["Cache-Control"]
