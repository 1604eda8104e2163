"""Searches do not reveal masked values: neither word by word, nor letter by letter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import SessionRecord, SessionStore
from sessions_app.search import slices
from sessions_app.search.snippets import is_shown
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex
from tests.agents import add_items
from tests.cases import for_each

CARD, MAIL = "4012 8888 8888 1881", "tern@example.com"


@pytest.fixture(params=["no index", "index"])
def store(request: pytest.FixtureRequest, kept_main_store: SessionStore) -> SessionStore:
    store = kept_main_store
    if request.param == "index":
        SqlWordIndex(store).create()
    add_items("early", "Tern likes a dark roast")
    add_items("mail", f"Please send the roast to {MAIL}")
    add_items("late", "Where is my roast", f"The card is {CARD}")
    return store


def sessions_saying(client: Client, text: str) -> list[str]:
    answer = client.post(reverse("sessions:search"), {"q": text})
    page = client.get(f"{answer['Location']}messages/")
    return [match.record.session_id for match in page.context["matches"].found] if "matches" in page.context else []


def items_saying(client: Client, session_id: str, text: str) -> list[str]:
    """Ids of the items that "next match" visits, from the start of the session."""
    record = SessionRecord.objects.get(session_id=session_id)
    page = client.post(reverse("sessions:find", args=[record.pk]), {"q": text}, follow=True)
    stops: list[str] = []
    while page.context.get("target") and page.context["target"] not in stops:
        stops.append(page.context["target"])
        page = client.get(page.context["find"].next_url, follow=True)
    return stops


def assert_tells_nothing(client: Client) -> None:
    for guess in ("4012", "4012 8888", CARD, MAIL):
        assert not sessions_saying(client, guess), guess
        assert not items_saying(client, "late", guess), guess
    assert sessions_saying(client, "tern") == ["early"]
    assert sessions_saying(client, "roast") == ["late", "mail", "early"]
    assert items_saying(client, "mail", "roast")
    assert not items_saying(client, "mail", "tern roast")


def test_who_reads_masked_text_searches_masked_text(store: SessionStore, reviewer: Client) -> None:
    assert_tells_nothing(reviewer)


def test_who_may_reveal_finds_what_is_stored_and_sees_it_masked(store: SessionStore, operator: Client) -> None:
    assert sessions_saying(operator, CARD) == ["late"]
    assert sessions_saying(operator, "tern") == ["mail", "early"]
    assert items_saying(operator, "late", CARD)
    with pytest.raises(AssertionError):  # so the test above is worth something
        assert_tells_nothing(operator)


def test_an_item_between_two_hits_that_only_masked_words_say_is_passed(store: SessionStore, reviewer: Client) -> None:
    add_items("s", "Tern speaking", f"reach me at {MAIL}", "Tern again")
    assert len(items_saying(reviewer, "s", "tern")) == 2


def test_leaving_words_out_would_tell_what_is_masked(store: SessionStore, reviewer: Client, operator: Client) -> None:
    assert sessions_saying(operator, "roast -tern") == ["late"]
    answer = reviewer.post(reverse("sessions:search"), {"q": "roast -tern"}, follow=True)
    page = reviewer.get(f"{answer.redirect_chain[-1][0]}messages/")
    assert "Your role cannot exclude words" in page.text
    record = SessionRecord.objects.get(session_id="mail")
    found = reviewer.post(reverse("sessions:find", args=[record.pk]), {"q": "roast -tern"})
    assert found.status_code == 422


def test_a_search_that_only_hides_the_snippet_is_noticed(
    store: SessionStore, reviewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken variant: every item that the store returns counts as shown."""
    monkeypatch.setattr(slices, "is_shown", lambda raw, wording: True)
    with pytest.raises(AssertionError):
        assert_tells_nothing(reviewer)


@for_each(
    ("text", "typed", "is_said"),
    [
        ("Tern likes tea", "tern", True),
        ("a pattern", "tern", False),
        ("tea for Tern", "tern tea", True),
        ("tea for Tern", '"tern tea"', False),
        ("tea", "tern or tea", True),
        ("T-90420", "t 90420", True),
        ("", "tea", False),
    ],
)
def test_whether_a_text_says_so(text: str, typed: str, is_said: bool) -> None:
    assert ParsedSearch.parse(typed).matches_text(text) is is_said


def test_words_of_different_members_are_said_together() -> None:
    raw: Any = json.dumps({"role": "user", "content": [{"text": "tea"}, {"text": "for Tern"}]})
    assert is_shown(raw, ParsedSearch.parse("tern tea"))
