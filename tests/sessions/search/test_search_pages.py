"""The search as support staff use it: typed once, then an address that gives nothing away."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from sessions_app.models import SessionRecord, SessionStore, TextSearch
from sessions_app.search.remembered import remember_search
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex
from sessions_app.views import sessions as sessions_views
from tests.agents import add_items
from tests.builders import make_session, make_subject

SECRET = "zebra finch"


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


def type_into_top_bar(client: Client, text: str, **more: str) -> Any:
    return client.post(reverse("sessions:search"), {"q": text, **more})


def results(client: Client, text: str) -> Any:
    return client.get(type_into_top_bar(client, text).url)


def remembered(text: str) -> TextSearch:
    return remember_search(User.objects.get_or_create(username="somebody")[0], text)


def said(client: Client, text: str, **query: str) -> Any:
    """The page with the sessions in which it was said."""
    search = TextSearch.objects.filter(text=text).first() or remembered(text)
    return client.get(reverse("sessions:search-messages", args=[search.pk], query=query or None))


def test_support_finds_a_customer_a_ticket_and_what_was_said(store: SessionStore, operator: Client) -> None:
    add_items("904-session", "My flight AX 904 was cancelled")
    subject = make_subject("cust_904")
    SessionRecord.objects.update(subject=subject, ticket="T-904")

    page = results(operator, "904")

    assert page.status_code == 200
    for address, words in [
        (subject.get_absolute_url(), "cust_904"),
        (reverse("sessions:list", query={"ticket": "T-904"}), "T-904"),
        (SessionRecord.objects.get().get_absolute_url(), "904-session"),
    ]:
        assert re.search(rf'href="{re.escape(address)}"[^>]*>\s*{words}\s*<', page.text)
    fetched = re.search(r'hx-get="([^"]*)"\s+hx-trigger="load"', page.text)
    assert fetched
    matches = operator.get(fetched[1], headers={"HX-Request": "true"})
    assert "flight AX <mark>904</mark> was" in matches.text
    assert "<html" not in matches.text
    [item] = re.findall(r"\?item=(\d+)", matches.text)
    assert operator.get(SessionRecord.objects.get().get_absolute_url(), {"item": item}).context["target"] == item


def test_the_text_is_in_no_address_title_or_log(
    store: SessionStore, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    add_items("s", SECRET)
    with CaptureQueriesContext(connection):
        answer = type_into_top_bar(operator, SECRET)
    page = operator.get(answer.url)
    matches = said(operator, SECRET)

    assert re.fullmatch(r"/search/[0-9a-f-]{36}/", answer.url)
    for shown in (page, matches):
        assert SECRET in shown.text
        assert not any("zebra" in address for address in re.findall(r'(?:href|action|hx-get)="([^"]*)"', shown.text))
        assert "zebra" not in re.findall(r"<title>(.*?)</title>", shown.text, re.DOTALL)[0]
        assert shown["Referrer-Policy"] == "same-origin"
        assert "no-store" in shown["Cache-Control"]
    assert "zebra" not in "".join(
        record.getMessage() for record in caplog.records if record.name != "django.db.backends"
    )


def test_a_colleague_can_open_the_same_search(operator: Client, reviewer: Client) -> None:
    address = type_into_top_bar(operator, "refund").url
    assert "refund" in reviewer.get(address).text


def test_a_search_that_is_over_says_so(operator: Client) -> None:
    address = type_into_top_bar(operator, "refund").url
    TextSearch.objects.update(expires_at=now() - timedelta(seconds=1))

    for gone in (address, f"{address}messages/", reverse("sessions:search-results", args=[uuid4()])):
        page = operator.get(gone)
        assert page.status_code == 410
        assert "This search has expired" in page.text
        assert 'name="q"' in page.text
        assert "refund" not in page.text


def test_a_text_that_cannot_be_searched_gets_a_sentence(operator: Client) -> None:
    cases: list[tuple[str, str]] = [
        ("", "Enter part of an ID or ticket"),
        ("  \t ", "Enter part of an ID or ticket"),
        ("x" * 501, "This text has 501 characters; a search takes up to 500."),
        ("?!…", "at least one letter or digit"),
        ("a\0b", "NUL character"),
    ]
    for text, sentence in cases:
        page = type_into_top_bar(operator, text)
        assert page.status_code == 422, text
        assert sentence in unescape(page.text), text
        # The field of the top bar is the only one, and keeps what was typed.
        main = page.text[page.text.index("<main") : page.text.index("</main>")]
        assert "<input" not in main, text
        assert "circle-check" not in page.text, text
        if text == "?!…":
            assert 'value="?!…"' in page.text
        assert not TextSearch.objects.exists(), text


def test_words_to_leave_out_alone_find_names_but_no_messages(store: SessionStore, operator: Client) -> None:
    make_subject("cust-904")
    assert "cust-904" in results(operator, "-904").text
    assert "has only excluded words" in said(operator, "-904").text


def test_a_quotation_mark_that_is_not_closed_is_explained(store: SessionStore, operator: Client) -> None:
    add_items("s", "a 15 inch screen")
    page = said(operator, '15" screen')
    assert "A quotation mark is not closed" in page.text
    assert len(page.context["matches"].found) == 1


def test_short_texts_find_whole_names(store: SessionStore, operator: Client) -> None:
    make_subject("x7")
    make_subject("x71")
    make_session("x7-first", store=store)
    page = results(operator, "X7")
    assert "With fewer than 3 characters, only complete IDs" in page.text
    assert [alias.key for alias in page.context["aliases"]] == ["x7"]


def test_nothing_is_called_so(operator: Client) -> None:
    assert "No subject, ticket or session ID matches" in results(operator, "nobody").text


def test_more_than_ten_of_a_kind_ask_for_more_letters(store: SessionStore, operator: Client) -> None:
    for number in range(11):
        make_session(f"ticket-{number}", ticket=f"T-{number:04}", store=store)
    page = results(operator, "T-0")
    assert "The 10 closest matches of each kind" in page.text
    assert len(re.findall(r"\?ticket=T-", page.text)) == 10


class TestOneMatch:
    def test_a_ticket_with_one_session_opens_it(self, store: SessionStore, operator: Client) -> None:
        add_items("customer_cust_48213:ticket_T-90460", "Where is my parcel?")
        record = SessionRecord.objects.get()
        SessionRecord.objects.update(ticket="T-90460")
        for typed in ("90460", "T-90460", "customer_cust_48213"):
            assert type_into_top_bar(operator, typed).url == record.get_absolute_url()
        shown = operator.get(record.get_absolute_url(), follow=True)
        assert "The only ID that matches was opened." in shown.text

    def test_a_ticket_of_several_sessions_shows_their_first_words_dates_and_subjects(
        self, store: SessionStore, operator: Client
    ) -> None:
        subject = make_subject("cust_9")
        for name in ("one:90461", "two:90461"):
            add_items(name, f"Question of {name[:3]}")
        SessionRecord.objects.update(ticket="T-90461", subject=subject)
        page = results(operator, "90461")
        assert page.status_code == 200
        for words in ("Question of one", "Question of two", "cust_9 · T-90461", "just now"):
            assert words in page.text

    def test_words_open_nothing(self, store: SessionStore, operator: Client) -> None:
        make_subject("parcel")
        assert "/search/" in type_into_top_bar(operator, "parcel").url


def test_hostile_text_stays_text(store: SessionStore, operator: Client) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    add_items(attack, attack)
    SessionRecord.objects.update(ticket=attack)

    for page in (results(operator, attack[:50]), said(operator, "alert"), said(operator, attack)):
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text


def test_without_an_index_the_page_says_how_much_was_searched(
    store: SessionStore, operator: Client, settings: Any
) -> None:
    add_items("s", "hay")
    assert "Searched 1 item of 1 session in" in said(operator, "needle").text
    for number in range(60):
        make_session(f"empty {number}")
    settings.SEARCH_SCAN_SECONDS = 0

    page = said(operator, "needle")

    assert "No messages match in the sessions searched so far" in page.text
    assert "older sessions were not searched" in page.text
    assert "Continue the search, or filter the sessions" in page.text
    further = re.search(r'href="([^"]*)"[^>]*>\s*Continue search', page.text)
    assert further
    assert operator.get(unescape(further[1])).status_code == 200


def test_a_stopped_search_says_how_to_get_all_results(
    store: SessionStore, operator: Client, admin_client: Client, settings: Any
) -> None:
    """In words for the reader, and only where an index would help."""
    add_items("s", "hay")
    for number in range(60):
        make_session(f"empty {number}")
    settings.SEARCH_SCAN_SECONDS = 0
    settings.READ_LIMIT = 0
    command, request = "search_index main --create", "ask your administrators for a search index of main"

    def advice(client: Client) -> set[str]:
        text = " ".join(said(client, "hay -needle").text.split())
        return {each for each in (command, request) if each in text}

    assert advice(operator) == {request}
    assert advice(admin_client) == {command}
    operators = User.objects.get(pk=operator.session["_auth_user_id"])
    operators.user_permissions.clear()
    operators.groups.set([Group.objects.create(name="masked")])
    for name in ("read_content",):
        operators.groups.get().permissions.add(Permission.objects.get(codename=name))
    assert "Continue the search" in said(operator, "hay").text
    assert request not in said(operator, "hay").text, "an index does not help who reads masked text"
    SqlWordIndex(store).create()
    assert advice(admin_client) == set()


def test_a_page_reports_items_that_were_searched_in_part(store: SessionStore, operator: Client) -> None:
    add_items("s", "hay " * 40_000 + "needle")
    assert "One item is too long to search completely" in said(operator, "needle").text


def test_a_page_link_that_was_changed_is_refused(store: SessionStore, operator: Client) -> None:
    page = said(operator, "needle", cursor="forged")
    assert page.status_code == 400
    assert "incomplete or was changed" in page.text


def test_an_outsider_sees_nothing(store: SessionStore, outsider: Client) -> None:
    search = remembered("needle")
    assert type_into_top_bar(outsider, "needle").status_code == 403
    for name in ("search-results", "search-messages"):
        assert outsider.get(reverse(f"sessions:{name}", args=[search.pk])).status_code == 403


def test_wrong_methods_are_refused(operator: Client) -> None:
    search = remembered("needle")
    assert operator.put(reverse("sessions:search")).status_code == 405
    for name in ("search-results", "search-messages"):
        assert operator.post(reverse(f"sessions:{name}", args=[search.pk])).status_code == 405


@pytest.mark.parametrize("with_index", [False, True])
def test_a_page_of_matches_costs_the_same_for_many(store: SessionStore, operator: Client, with_index: bool) -> None:
    if with_index:
        SqlWordIndex(store).create()

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert said(operator, "needle").status_code == 200
        return len(asked)

    for number in range(5):
        add_items(f"s{number}", "needle", "hay")
    said(operator, "needle")
    few = queries()
    for number in range(5, 19):
        add_items(f"s{number}", "needle", "hay")
    assert queries() == few


class TestInTheSessionList:
    def test_words_narrow_the_list_under_its_filters(self, store: SessionStore, operator: Client) -> None:
        add_items("a", "where is my refund")
        add_items("b", "where is my refund")
        add_items("c", "hello")
        SessionRecord.objects.filter(session_id="a").update(ticket="T-1")

        answer = type_into_top_bar(operator, "refund", filters="ticket=T-1")

        assert re.fullmatch(r"/sessions/\?ticket=T-1&search=[0-9a-f-]{36}", answer.url)
        page = operator.get(answer.url)
        assert [session.record.session_id for session in page.context["sessions"]] == ["a"]
        assert "my <mark>refund</mark>" in page.text
        assert "words “refund”" in page.text

    def test_nothing_said_so(self, store: SessionStore, operator: Client) -> None:
        SessionRecord.objects.create(store=store, session_id="sealed", is_encrypted=True)
        page = operator.get(type_into_top_bar(operator, "refund", filters="").url)
        assert "No session matches" in page.text
        assert "Encrypted items are searched only if you have a grant for their session." in page.text

    def test_a_search_in_one_store_does_not_name_another(self, store: SessionStore, operator: Client) -> None:
        add_items("s", "refund")
        away = SessionStore.objects.create(name="away", messages_table="nowhere")
        SessionRecord.objects.create(store=away, session_id="gone")
        page = operator.get(type_into_top_bar(operator, "refund", filters="store=main").url)
        assert "<mark>refund</mark>" in page.text
        assert "could not be searched" not in page.text
        page = operator.get(type_into_top_bar(operator, "refund", filters="").url)
        assert "away could not be searched." in page.text

    def test_only_words_to_leave_out(self, store: SessionStore, operator: Client) -> None:
        page = operator.get(type_into_top_bar(operator, "-refund", filters="").url)
        assert "has only excluded words" in page.text

    def test_older_pages_keep_the_filters(self, store: SessionStore, operator: Client, monkeypatch: Any) -> None:
        monkeypatch.setattr(sessions_views, "SESSIONS", replace(sessions_views.SESSIONS, size=2))
        for number in range(3):
            add_items(f"s{number}", "refund")
        page = operator.get(type_into_top_bar(operator, "refund", filters="store=main").url)
        older = re.search(r'href="(\?[^"]*|/sessions/\?[^"]*cursor=[^"]*)"[^>]*>\s*Older', page.text)
        assert older
        page = operator.get(unescape(older[1]))
        assert [session.record.session_id for session in page.context["sessions"]] == ["s0"]
        assert "store=main" in unescape(older[1])
