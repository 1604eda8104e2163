"""A session with several branches on its page: which one is shown, and how one gets to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from sessions_app.models import SessionRecord
from sessions_app.services.discovery import discover_sessions
from sessions_app.stores.kinds import branching
from tests.agents import assistant, user
from tests.sessions.stores import link
from tests.stores.test_advanced_sqlite import AdvancedAgent


@pytest.fixture
def agent(db: None, tmp_path: Path) -> Iterator[AdvancedAgent]:
    agent = AdvancedAgent(tmp_path)
    agent.add("talk", user("A red one?"), assistant("Sold out."))
    agent.add("talk", user("Then a blue one"), assistant("Ordered blue."))
    agent.branch("talk", 2, "ask <b>Ann</b>")
    agent.add("talk", user("Then a green one"), assistant("Ordered green."))
    agent.add("single", user("Just one"))
    discover_sessions()
    yield agent
    agent.close()


@pytest.fixture
def record(agent: AdvancedAgent) -> SessionRecord:
    return SessionRecord.objects.select_related("store").get(session_id="talk")


def opened(client: Client, record: SessionRecord, query: str = "") -> Any:
    page = client.get(record.get_absolute_url() + query)
    assert page.status_code == 200
    return page


def item_saying(record: SessionRecord, words: str) -> str:
    backend = branching(record.store)
    assert backend
    return next(item.id for item in backend.every_item("talk") if words in item.raw)


def test_the_first_branch_is_shown_and_leads_to_the_others(record: SessionRecord, operator: Client) -> None:
    page = opened(operator, record)
    assert "Ordered blue." in page.text
    assert "Ordered green." not in page.text
    assert "2 of its 4 items are in other branches as well" in " ".join(page.text.split())

    other = operator.get(link(page, "ask &lt;b&gt;Ann"))
    assert "Ordered green." in other.text
    assert "Ordered blue." not in other.text
    assert "A red one?" in other.text

    both = opened(operator, record, "?branch=all")
    assert "Ordered green." in both.text
    assert "Ordered blue." in both.text


def test_an_address_of_an_item_opens_the_branch_that_has_it(record: SessionRecord, operator: Client) -> None:
    green = item_saying(record, "Ordered green.")
    page = opened(operator, record, f"?item={green}")
    assert "Ordered green." in page.text
    assert "Ordered blue." not in page.text
    shared = opened(operator, record, f"?item={item_saying(record, 'Sold out.')}")
    assert "Ordered blue." in shared.text


def test_an_item_that_no_branch_has_is_shown_among_all(
    agent: AdvancedAgent, record: SessionRecord, operator: Client
) -> None:
    lost = item_saying(record, "Ordered green.")
    agent.ask("DELETE FROM message_structure WHERE message_id = ?", int(lost))
    page = opened(operator, record, f"?item={lost}")
    assert "Ordered green." in page.text
    assert "Ordered blue." in page.text


def test_the_live_end_stays_on_the_branch(agent: AdvancedAgent, record: SessionRecord, operator: Client) -> None:
    main, other = (opened(operator, record, query).context["live_url"] for query in ("", "?branch=all"))
    assert (operator.get(main).status_code, operator.get(other).status_code) == (204, 204)
    agent.add("talk", user("And a bow"))
    assert operator.get(main).status_code == 204
    assert "And a bow" in operator.get(other).text


def test_a_branch_that_is_gone_or_made_up_gives_the_first(record: SessionRecord, operator: Client) -> None:
    for query in ("?branch=999", "?branch=", "?branch=ask"):
        assert "Ordered blue." in opened(operator, record, query).text


def test_names_of_branches_are_in_no_address(record: SessionRecord, operator: Client) -> None:
    page = opened(operator, record)
    assert "branch=ask" not in page.text
    assert "<b>Ann" not in page.text


def test_a_session_with_one_branch_has_nothing_to_choose(agent: AdvancedAgent, operator: Client) -> None:
    page = opened(operator, SessionRecord.objects.get(session_id="single"))
    assert "Just one" in page.text
    assert "?branch=" not in page.text


def test_what_turns_took_stands_beside_the_branch(
    agent: AdvancedAgent, record: SessionRecord, operator: Client
) -> None:
    assert "Tokens by turn" not in opened(operator, record).text
    agent.ask(
        "INSERT INTO turn_usage (session_id, branch_id, user_turn_number, requests, input_tokens, output_tokens,"
        " total_tokens) VALUES ('talk', 'main', 1, 2, 12300, 40, 12340), ('single', 'main', 1, 1, 5, 6, 11)"
    )
    page = opened(operator, record)
    assert "Tokens by turn" in page.text
    assert "12,340" in page.text
    assert 'value="12340"' in page.text
    assert "Tokens by turn" in opened(operator, SessionRecord.objects.get(session_id="single")).text


def test_pages_of_a_long_branch_keep_to_it(agent: AdvancedAgent, record: SessionRecord, operator: Client) -> None:
    agent.add("talk", *(item for number in range(75) for item in (user(f"more {number}"), assistant("Yes."))))
    backend = branching(record.store)
    assert backend
    number = backend.branches("talk")[1].number
    page = opened(operator, record, f"?branch={number}")
    assert "more 74" in page.text
    assert f"branch={number}" in link(page, "Earlier")
    earlier = operator.get(link(page, "Earlier"))
    assert "Ordered blue." not in earlier.text
    assert f"branch={number}" in link(earlier, "Later")
