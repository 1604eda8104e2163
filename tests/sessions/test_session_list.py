"""The list of sessions, as support staff work with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from sessions_app.filters import SessionFilter
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.subjects import known_subject, merge_subjects
from sessions_app.stores.base import SessionPreview, StoreUnavailable
from tests.agents import add_items, assistant
from tests.builders import make_session, make_store, make_subject
from tests.people import person
from tests.sessions.stores import link, shown, stores

__all__ = ["stores"]

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


def address(**query: Any) -> str:
    return reverse("sessions:list") + (f"?{urlencode(query)}" if query else "")


class TestRows:
    def test_a_row_tells_what_the_agent_stored(self, kept_main_store: SessionStore, operator: Client) -> None:
        add_items("customer_1:ticket_2", "My flight AX 482 was cancelled", assistant("I am sorry."))
        subject = make_subject("cust_48213")
        SessionRecord.objects.update(
            subject=subject, ticket="T-90417", agent="Refunds", finding_count=2, labels=["vip"]
        )
        text = operator.get(address()).text
        for words in (
            "My flight AX 482 was cancelled",
            "cust_48213",
            "T-90417",
            "Refunds",
            "main",
            "vip",
            "2 findings",
        ):
            assert words in text
        assert re.search(r'<td class="num[^>]*>\s*2\s*</td>', text)

    def test_an_encrypted_session_shows_no_words(self, stores: dict[str, Any], operator: Client) -> None:
        make_session("sealed", is_encrypted=True)
        sealed = {"sealed": SessionPreview(3, is_encrypted=True)}
        stores["main"] = type("Sealed", (), {"previews": lambda self, ids: sealed})()
        assert "Encrypted: first words are not readable" in operator.get(address()).text

    def test_a_store_that_is_away_has_no_counts(self, kept_main_store: SessionStore, operator: Client) -> None:
        add_items("here", "I am still here")
        make_session("gone", store=make_store("claims", sessions_table="nowhere", messages_table="nowhere_either"))
        page = operator.get(address())
        assert shown(page) == ["gone", "here"]
        row = page.text[page.text.index("<tbody>") : page.text.index("</tr>", page.text.index("<tbody>"))]
        assert "First words unknown: claims is not responding" in row
        assert "unavailable" in row
        assert re.search(r"<td class=\"num[^>]*>\?</td>", row)
        assert "I am still here" in page.text

    def test_a_long_session_is_not_counted_to_the_end(self, stores: dict[str, Any], operator: Client) -> None:
        make_session("long")
        stores["main"] = type("Long", (), {"previews": lambda self, ids: {"long": SessionPreview(1001, "Hello")}})()
        assert "1,000+" in operator.get(address()).text

    def test_a_session_that_the_store_does_not_have_is_listed_all_the_same(
        self, stores: dict[str, Any], operator: Client
    ) -> None:
        make_session("registered")
        stores["main"] = type("Empty", (), {"previews": lambda self, ids: {"registered": SessionPreview(None)}})()
        assert "No items" in operator.get(address()).text

    def test_hostile_text_is_only_text(self, stores: dict[str, Any], operator: Client) -> None:
        make_session("x", ticket="<u>", agent="a\u202eb", labels=["<i>"], subject=make_subject("<script>"))
        stores["main"] = type(
            "Hostile", (), {"previews": lambda self, ids: {"x": SessionPreview(1, "<script>alert(1)")}}
        )()
        text = operator.get(address()).text
        assert "&lt;script&gt;alert(1)" in text
        for markup in ("<script>alert", "<script></", "<u>", "<i>"):
            assert markup not in text
        assert "\u202e" not in re.sub(r"<[^>]*>", "", text)

    def test_an_erased_session_is_in_no_list(self, stores: dict[str, Any], operator: Client) -> None:
        make_session("erased", erased_at=now())
        assert shown(operator.get(address())) == []


class TestCost:
    def test_a_store_is_asked_once_for_a_page(self, stores: dict[str, Any], operator: Client) -> None:
        for number in range(30):
            make_session(store=make_store(f"store-{number % 2}"))
        operator.get(address())
        assert {name: len(store.asked) for name, store in stores.items()} == {"store-0": 1, "store-1": 1}

    def test_ten_rows_and_a_thousand_cost_the_same(self, stores: dict[str, Any], operator: Client) -> None:
        subject, store = make_subject(), make_store()

        def queries_for(count: int) -> int:
            SessionRecord.objects.bulk_create(
                SessionRecord(id=uuid4(), store=store, session_id=f"{count}-{number}", subject=subject, agent="A")
                for number in range(count)
            )
            with CaptureQueriesContext(connection) as queries:
                page = operator.get(address())
            assert len(shown(page)) == min(count, 50)
            assert "OFFSET" not in str(queries.captured_queries)
            return len(queries)

        # Without what the test client's login costs on its first request.
        operator.get(address())
        assert queries_for(10) == queries_for(990) == 16

    def test_each_filter_walks_along_an_index_of_its_own(self, db: None) -> None:
        """However old what it finds is: nothing newer is walked over, and nothing is sorted."""
        make_session()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off")
        cases: list[tuple[dict[str, str], str]] = [
            ({}, "record_newest"),
            ({"days": "30"}, "record_newest"),
            ({"store": "main"}, "record_store_newest"),
            ({"without_subject": "1"}, "record_unattached_newest"),
            ({"agent": "Refunds"}, "record_agent_newest"),
            ({"ticket": "T-1"}, "record_ticket_newest"),
            ({"state": "findings"}, "record_findings_newest"),
            ({"state": "encrypted"}, "record_encrypted_newest"),
        ]
        for query, index in cases:
            plan = SessionFilter(QueryDict(urlencode(query))).queryset()[:51].explain()
            assert f"Scan using {index} " in plan, query
            assert "Sort" not in plan, query
            assert "Filter" not in plan.replace("Filter: (erased_at IS NULL)", ""), query


class TestPages:
    def test_every_session_is_on_one_page(self, stores: dict[str, Any], operator: Client) -> None:
        everything = [make_session(last_activity_at=NOON + timedelta(minutes=n // 7)).session_id for n in range(120)]
        seen: list[str] = []
        page = operator.get(address())
        seen += shown(page)
        while page.context["page"].older:
            page = operator.get(address() + "?" + urlsplit(link(page, "Older")).query)
            seen += shown(page)
        assert len(seen) == 120
        assert set(seen) == set(everything)
        back = operator.get(address() + "?" + urlsplit(link(page, "Newer")).query)
        assert shown(back) == seen[50:100]

    def test_filters_stay_on_the_next_page(self, stores: dict[str, Any], operator: Client) -> None:
        for number in range(60):
            make_session(agent="Refunds" if number % 10 else "Triage")
        page = operator.get(address(agent="Refunds"))
        query = parse_qs(urlsplit(link(page, "Older")).query)
        assert query["agent"] == ["Refunds"]
        rest = operator.get(address(agent="Refunds", cursor=query["cursor"][0]))
        assert len(shown(rest)) == 4

    def test_a_page_link_that_was_tampered_with_leads_to_the_first_page(
        self, stores: dict[str, Any], operator: Client
    ) -> None:
        make_session()
        page = operator.get(address(cursor="made-up", ticket="T-1"))
        assert page.status_code == 400
        assert "incomplete or was changed" in page.text
        assert link(page, "Go to the first page") == address(ticket="T-1")


class TestFilters:
    @pytest.fixture(autouse=True)
    def three_sessions(self, stores: dict[str, Any]) -> None:
        make_session(
            "refund",
            ticket="T-1",
            agent="Refunds",
            labels=["vip", "late"],
            finding_count=1,
            subject=make_subject("cust_1"),
            last_activity_at=now(),
        )
        make_session("kiosk", store=make_store("kiosk"), is_encrypted=True, last_activity_at=now() - timedelta(days=20))
        make_session("old", agent="Triage", last_activity_at=NOON - timedelta(days=400))

    def test_a_filter_shows_what_it_says(self, operator: Client) -> None:
        cases: list[tuple[dict[str, str], list[str]]] = [
            ({}, ["refund", "kiosk", "old"]),
            ({"store": "kiosk"}, ["kiosk"]),
            ({"agent": "Refunds"}, ["refund"]),
            ({"agent": "Nobody"}, []),
            ({"ticket": "T-1"}, ["refund"]),
            ({"ticket": "t-1"}, []),
            ({"label": "late"}, ["refund"]),
            ({"label": "la"}, []),
            ({"days": "7"}, ["refund"]),
            ({"days": "30"}, ["refund", "kiosk"]),
            ({"since": "2025-10-15"}, ["refund", "kiosk", "old"]),
            ({"until": "2025-10-15"}, ["old"]),
            ({"until": "2025-10-14"}, []),
            ({"since": "0001-01-01", "until": "9999-12-31"}, ["refund", "kiosk", "old"]),
            ({"state": "findings"}, ["refund"]),
            ({"state": "encrypted"}, ["kiosk"]),
            ({"without_subject": "1"}, ["kiosk", "old"]),
            ({"without_subject": "1", "agent": "Triage"}, ["old"]),
        ]
        for query, sessions in cases:
            assert shown(operator.get(address(**query))) == sessions, query

    def test_a_subject_shows_also_what_was_merged_into_it(self, operator: Client) -> None:
        into = make_subject("cust_2")
        merge_subjects(known_subject("user", "cust_1"), into, by=person("support", "reviewer"))
        make_session("newer", subject=into)
        page = operator.get(address(subject=into.pk))
        assert shown(page) == ["newer", "refund"]
        assert re.findall(r"(cust_\d) · ", page.text) == ["cust_2", "cust_1"]

    def test_a_value_nobody_knows_is_said_and_shows_nothing(self, operator: Client) -> None:
        cases: list[tuple[dict[str, str], str]] = [
            ({"store": "nowhere"}, "There is no store named “nowhere”."),
            ({"days": "many"}, "“many” is not one of the offered numbers of days"),
            ({"days": "-1"}, "“-1” is not one of the offered numbers of days"),
            ({"state": "<b>"}, "“&lt;b&gt;” is not a state"),
            ({"since": "yesterday"}, "“Since” is not a date"),
            ({"subject": "7"}, "This subject does not exist."),
            ({"subject": str(uuid4())}, "This subject does not exist."),
            ({"search": str(uuid4())}, "This search has expired"),
            ({"ticket": "a\0b"}, "Null characters are not allowed."),
            ({"agent": "x" * 201}, "at most 200 characters"),
        ]
        for query, sentence in cases:
            page = operator.get(address(**query))
            assert page.status_code == 400, query
            assert sentence in page.text, query
            assert page.context["sessions"] == [], query

    def test_each_filter_can_be_taken_off(self, operator: Client) -> None:
        page = operator.get(address(ticket="T-1", agent="Refunds", days="7"))
        chips = {chip.text: parse_qs(chip.query_without) for chip in page.context["filters"].chips()}
        assert chips == {
            "agent Refunds": {"days": ["7"], "ticket": ["T-1"]},
            "last 7 days": {"agent": ["Refunds"], "ticket": ["T-1"]},
            "ticket T-1": {"agent": ["Refunds"], "days": ["7"]},
        }
        assert "Clear all" in page.text

    def test_the_agents_that_there_are_can_be_chosen(self, operator: Client) -> None:
        text = operator.get(address()).text
        select = text[text.index('name="agent"') : text.index("</select>", text.index('name="agent"'))]
        assert re.findall(r'<option value="([^"]*)"', select) == ["", "Refunds", "Triage"]

    def test_a_list_without_a_match_says_what_is_filtered(self, operator: Client) -> None:
        text = operator.get(address(ticket="T-7", days="7")).text
        assert "No session matches" in text
        assert re.search(r"2 filters are on:\s+last 7 days,\s+ticket T-7\.", text)

    def test_sessions_without_a_subject_are_counted(self, operator: Client) -> None:
        assert operator.get(address()).context["filters"].without_subject_count == 2


class TestEmpty:
    def test_without_a_store_the_page_says_how_to_attach_one(self, operator: Client) -> None:
        assert "attach_store main --dry-run" in operator.get(address()).text

    def test_with_a_store_the_page_says_what_will_fill_it(self, operator: Client) -> None:
        make_store()
        assert "No sessions yet" in operator.get(address()).text


class TestNewer:
    def ask(self, operator: Client, page: Any) -> Any:
        return operator.get(unescape(re.search(r'hx-get="([^"]*newer[^"]*)"', page.text)[1]))  # type: ignore[index]

    def test_a_page_left_open_learns_what_is_newer(self, stores: dict[str, Any], operator: Client) -> None:
        make_session(last_activity_at=NOON)
        page = operator.get(address())
        assert self.ask(operator, page).status_code == 204
        make_session()
        make_session()
        assert "2 newer" in self.ask(operator, page).text

    def test_only_what_passes_the_filters_counts(self, stores: dict[str, Any], operator: Client) -> None:
        make_session(ticket="T-1", last_activity_at=NOON)
        page = operator.get(address(ticket="T-1"))
        make_session()
        assert self.ask(operator, page).status_code == 204
        make_session(ticket="T-1")
        answer = self.ask(operator, page)
        assert "1 newer" in answer.text
        assert link(answer, "Show") == address(ticket="T-1")

    def test_a_session_that_moved_up_is_newer_too(self, stores: dict[str, Any], operator: Client) -> None:
        make_session("a", last_activity_at=NOON)
        make_session("b", last_activity_at=NOON - timedelta(days=1))
        page = operator.get(address())
        SessionRecord.objects.filter(session_id="b").update(last_activity_at=now())
        assert "1 newer" in self.ask(operator, page).text

    def test_very_many_are_not_counted(self, stores: dict[str, Any], operator: Client) -> None:
        make_session(last_activity_at=NOON)
        page = operator.get(address())
        for _ in range(52):
            make_session()
        assert "50+ newer" in self.ask(operator, page).text

    def test_an_empty_list_learns_of_the_first_session(self, stores: dict[str, Any], operator: Client) -> None:
        page = operator.get(address())
        make_session()
        assert "1 newer" in self.ask(operator, page).text

    def test_a_cursor_that_was_tampered_with_is_refused(self, operator: Client) -> None:
        assert operator.get(reverse("sessions:newer"), {"cursor": "made-up"}).status_code == 400


class TestVerbs:
    def tick(self, client: Client, verb: str, *records: SessionRecord, **fields: str) -> Any:
        return client.post(reverse(f"sessions:{verb}"), {"session": [record.pk for record in records], **fields})

    def test_support_labels_what_they_ticked(self, operator: Client) -> None:
        one, other, third = make_session(), make_session(), make_session()
        answer = self.tick(operator, "label", one, other, label="vip", next=address(agent="Refunds"))
        assert answer.url == address(agent="Refunds")
        assert SessionRecord.objects.labelled("vip").count() == 2
        third.refresh_from_db()
        assert third.labels == []

    def test_support_takes_a_label_off(self, operator: Client) -> None:
        record = make_session(labels=["vip"])
        self.tick(operator, "unlabel", record, label="vip")
        assert not SessionRecord.objects.labelled("vip").exists()

    def test_support_attaches_sessions_to_a_subject_that_is_known(self, operator: Client) -> None:
        subject = make_subject("cust_1")
        one, other = make_session(), make_session()
        answer = self.tick(operator, "attach", one, other, kind="user", key="cust_1")
        assert answer.url == address()
        assert set(SessionRecord.objects.about(subject)) == {one, other}

    def test_a_mistyped_id_makes_no_subject(self, operator: Client) -> None:
        record = make_session()
        answer = self.tick(operator, "attach", record, kind="user", key="cust_l")
        assert answer.status_code == 422
        assert "There is no subject with the user ID" in answer.text
        assert not Subject.objects.exists()

    def test_a_new_subject_is_made_when_asked_for(self, operator: Client) -> None:
        record = make_session()
        confirmation = self.tick(operator, "attach", record, kind="user", key="cust_9", next=address(ticket="T-1"))
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', confirmation.text))
        answer: Any = operator.post(reverse("sessions:attach"), fields)
        assert answer.url == address(ticket="T-1")
        assert list(SessionRecord.objects.about(known_subject("user", "cust_9"))) == [record]

    def test_support_detaches_sessions(self, operator: Client) -> None:
        record = make_session(subject=make_subject())
        self.tick(operator, "detach", record)
        record.refresh_from_db()
        assert record.subject is None

    def test_what_is_missing_is_said(self, operator: Client) -> None:
        cases: list[tuple[str, dict[str, str], str]] = [
            ("label", {}, "A label needs a name."),
            ("label", {"label": "x" * 51}, "at most 50 characters"),
            ("attach", {"kind": "user"}, "Enter an ID."),
            ("attach", {"kind": "alien", "key": "a"}, "alien is not one of the available choices"),
        ]
        for verb, fields, sentence in cases:
            answer = self.tick(operator, verb, make_session(), **fields)
            assert answer.status_code == 422, (verb, fields)
            assert "Nothing was changed" in answer.text, (verb, fields)
            assert sentence in answer.text, (verb, fields)

    def test_nothing_ticked_is_said(self, operator: Client) -> None:
        for verb in ("label", "unlabel", "attach", "detach"):
            answer = self.tick(operator, verb, label="vip", kind="user", key="cust_1")
            assert "No session is selected" in answer.text, verb

    def test_a_session_erased_meanwhile_is_said(self, operator: Client) -> None:
        one, other = make_session(), make_session(erased_at=now())
        answer = self.tick(operator, "label", one, other, label="vip")
        assert "it may have been erased" in answer.text
        assert not SessionRecord.objects.labelled("vip").exists()

    def test_the_way_back_stays_here(self, operator: Client) -> None:
        for target in ("https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)"):
            assert self.tick(operator, "label", make_session(), label="vip", next=target).url == address(), target

    def test_reading_is_not_attaching(self, reviewer: Client) -> None:
        for verb in ("label", "unlabel", "attach", "detach"):
            assert self.tick(reviewer, verb, make_session(), label="vip").status_code == 403, verb

    def test_who_may_not_attach_sees_no_tick_boxes(
        self, stores: dict[str, Any], operator: Client, reviewer: Client
    ) -> None:
        make_session()
        assert 'type="checkbox"' in operator.get(address()).text
        page = reviewer.get(address()).text
        assert 'name="session"' not in page
        assert "Attach to subject" not in page


class TestAccess:
    def test_who_may_not_read_content_sees_no_sessions(self, outsider: Client, administrator: Client) -> None:
        for name in ("list", "newer"):
            url = reverse(f"sessions:{name}")
            assert outsider.get(url).status_code == 403, name
            assert administrator.get(url).status_code == 403, name
            assert Client().get(url).status_code == 302, name

    def test_reading_pages_take_no_post(self, operator: Client) -> None:
        for name in ("list", "newer"):
            assert operator.post(reverse(f"sessions:{name}")).status_code == 405, name

    def test_verbs_take_no_get(self, operator: Client) -> None:
        for name in ("label", "unlabel", "attach", "detach"):
            assert operator.get(reverse(f"sessions:{name}")).status_code == 405, name

    def test_the_fragment_is_the_part_of_the_page(self, stores: dict[str, Any], operator: Client) -> None:
        make_session()
        fragment = operator.get(address(), headers={"HX-Request": "true"})
        assert "<html" not in fragment.text
        assert "HX-Request" in fragment["Vary"]
        csrf = r'name="csrfmiddlewaretoken" value="[^"]*"'
        assert re.sub(csrf, "", fragment.text.strip()) in re.sub(csrf, "", operator.get(address()).text)

    def test_the_browser_keeps_no_copy(self, operator: Client) -> None:
        assert "no-store" in operator.get(address())["Cache-Control"]


def test_a_store_that_raises_is_away_and_the_others_are_not(stores: dict[str, Any], operator: Client) -> None:
    def away(self: Any, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        raise StoreUnavailable("It does not answer.")

    stores["kiosk"] = type("Away", (), {"previews": away})()
    make_session("a", store=make_store("kiosk"))
    make_session("b")
    sessions = operator.get(address()).context["sessions"]
    assert {session.record.session_id: session.preview for session in sessions} == {
        "a": None,
        "b": SessionPreview(3, "Words of b"),
    }
