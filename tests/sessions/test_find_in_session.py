"""Searching in one session, from hit to hit."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import SessionRecord, SessionStore, TextSearch
from tests.agents import add_items, assistant


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    store = kept_main_store
    add_items("s", "I want a refund, not a voucher")
    add_items("s", assistant("A Voucher would be quicker."))
    add_items("s", "No.")
    add_items("s", "I said: no VOUCHER")
    return store


def look_for(client: Client, text: str) -> Any:
    record = SessionRecord.objects.get(session_id="s")
    return client.post(reverse("sessions:find", args=[record.pk]), {"q": text}, follow=True)


def shown_item(page: Any) -> str:
    return str(page.context["target"])


def test_the_arrows_lead_from_hit_to_hit_and_stop_at_the_ends(store: SessionStore, operator: Client) -> None:
    page = look_for(operator, "voucher")
    first = shown_item(page)
    second = shown_item(page := operator.get(page.context["find"].next_url, follow=True))
    third = shown_item(page := operator.get(page.context["find"].next_url, follow=True))
    assert int(first) < int(second) < int(third)

    beyond = operator.get(page.context["find"].next_url, follow=True)
    assert b"No later item matches." in beyond.content
    assert not beyond.context["find"].next_url
    assert beyond.context["find"].previous_url

    back = operator.get(page.context["find"].previous_url, follow=True)
    assert shown_item(back) == second


def test_the_page_says_which_of_how_many_hits_it_points_at(store: SessionStore, operator: Client) -> None:
    page = look_for(operator, "voucher")
    for number in (1, 2, 3):
        assert (page.context["find"].number, page.context["find"].count) == (number, 3)
        assert re.search(rf"{number} of\s+3\s*</span>", page.text)
        page = operator.get(page.context["find"].next_url, follow=True)
    # None is pointed at; and of a session that goes on, only what the page shows is counted.
    add_items(
        "s", *(item for number in range(2, 120) for item in (f"No voucher, said {number} times", assistant("No.")))
    )
    page = operator.get(page.request["PATH_INFO"], {"find": str(TextSearch.objects.get().pk), "start": ""})
    assert (page.context["find"].number, page.context["find"].count) == (0, 51)
    assert re.search(r"\s51<span[^>]*> on this page<", page.text)
    # A page without any says so.
    add_items("s", *(item for number in range(51) for item in ("Anything else?", assistant("No."))))
    page = operator.get(page.request["PATH_INFO"], {"find": str(TextSearch.objects.get().pk), "end": ""})
    assert page.context["find"].count == 0
    assert re.search(r"\sNo matches<span[^>]*> on this page<", page.text)


def test_a_hit_that_is_masked_is_not_counted(store: SessionStore, reviewer: Client) -> None:
    add_items("s", "Mine is the voucher of voucher@example.org", "Write to voucher@example.org")
    assert look_for(reviewer, "voucher").context["find"].count == 4


def test_what_was_searched_for_is_marked_and_stands_in_no_address(store: SessionStore, operator: Client) -> None:
    page = look_for(operator, "voucher")
    assert page.content.count(b"<mark>") == 3
    for url, _ in page.redirect_chain:
        assert "voucher" not in url
    search = TextSearch.objects.get()
    assert f"find={search.pk}" in page.redirect_chain[-1][0]


def test_what_is_marked_stays_marked_while_the_agent_writes(store: SessionStore, operator: Client) -> None:
    page = look_for(operator, "voucher")
    add_items("s", assistant("No voucher then."))
    fragment = operator.get(page.context["live_url"])
    assert fragment.content.count(b"<mark>") == 4
    assert fragment.content.count(b" found") == page.content.count(b" found") == 1


def test_words_that_nobody_said_lead_to_the_start_with_a_sentence(store: SessionStore, operator: Client) -> None:
    page = look_for(operator, "cello")
    assert page.status_code == 200
    assert b"No matches in this session." in page.content
    # A search that found nothing leads nowhere.
    assert "Next match" not in page.text
    assert "circle-check" not in page.text
    assert b"not a voucher" in page.content


def test_what_cannot_be_searched_for_is_refused_with_a_sentence(store: SessionStore, operator: Client) -> None:
    for text in ("", "   ", "!!!", "x" * 600, "a\0b"):
        answer = look_for(operator, text)
        assert answer.status_code == 422, text
        assert not TextSearch.objects.exists(), text


def test_a_search_that_is_over_shows_the_session_all_the_same(store: SessionStore, operator: Client) -> None:
    record = SessionRecord.objects.get(session_id="s")
    for gone in (uuid4(), "nonsense"):
        page = operator.get(f"{record.get_absolute_url()}?find={gone}")
        assert page.status_code == 200
        assert b"This search has expired." in page.content
        assert b"not a voucher" in page.content


def test_the_outsider_may_not_search(store: SessionStore, outsider: Client) -> None:
    assert look_for(outsider, "voucher").status_code == 403
