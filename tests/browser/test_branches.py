"""A session with branches, and stores of other kinds, on screen and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sessions_app.models import SessionRecord
from sessions_app.services.discovery import discover_sessions
from tests.agents import assistant, user
from tests.browser.conftest import in_all_views
from tests.browser.looking import VIEWS, turn_to
from tests.stores.test_advanced_sqlite import AdvancedAgent

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def agent(agent_tables: None, tmp_path: Path) -> Iterator[AdvancedAgent]:
    agent = AdvancedAgent(tmp_path)
    agent.add("talk", user("A red one?"), assistant("Sold out."))
    agent.add("talk", user("Then a blue one"), assistant("Ordered blue."))
    agent.branch("talk", 2, "another colour, after all that was said about it before")
    agent.add("talk", user("Then a green one"), assistant("Ordered green."))
    agent.ask(
        "INSERT INTO turn_usage (session_id, branch_id, user_turn_number, requests, input_tokens, output_tokens,"
        " total_tokens) VALUES ('talk', 'main', 1, 2, 12300, 40, 12340), ('talk', 'main', 2, 1, 500, 6, 506)"
    )
    discover_sessions()
    yield agent
    agent.close()


def test_another_branch_is_chosen_by_keyboard_and_stays_live(
    agent: AdvancedAgent, sign_in: SignIn, page: Page, look: Look, refresh: Callable[[], None]
) -> None:
    sign_in("support")
    address = SessionRecord.objects.get(session_id="talk").get_absolute_url()
    look(address)
    turn_to(page, VIEWS[0])
    expect(page.get_by_text("Ordered blue.")).to_be_visible()
    menu = page.locator("details.menu summary", has_text="main")
    menu.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Ordered green.")).to_be_visible()
    expect(page.get_by_text("Ordered blue.")).to_have_count(0)
    agent.add("talk", user("With a bow"))
    refresh()
    expect(page.get_by_text("With a bow")).to_be_visible()
    expect(page.get_by_text("Ordered blue.")).to_have_count(0)


@in_all_views
def test_pages_of_a_store_that_is_a_file_look_sound(agent: AdvancedAgent, sign_in: SignIn, look: Look) -> None:
    """A list with a session that is gone, and the store when its file is gone: with it, it differs in its words."""
    sign_in("support", "administrator")
    agent.forget("talk")
    discover_sessions()
    look("/sessions/")
    agent.close()
    agent.path.unlink()
    look("/stores/files/")
