"""Connecting a store, as somebody does who has a folder and a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sessions_app.models import SessionRecord
from tests.browser.conftest import Watch, in_all_views

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]

pytestmark = pytest.mark.usefixtures("agent_tables")


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    (tmp_path / "cust_1.json").write_text(json.dumps([{"role": "user", "content": "Is the shop open on Monday?"}]))
    return tmp_path


@in_all_views
def test_the_pages_look_sound(sign_in: SignIn, look: Look) -> None:
    sign_in("administrator")
    # The forms of all kinds are one template; the list of stores is looked at below.
    for path in ("/connect/", "/connect/remote_sql/"):
        look(path)


def test_a_folder_is_connected_by_keyboard_and_its_sessions_are_in_the_list(
    chats: Path, sign_in: SignIn, page: Page, watch: Watch
) -> None:
    watch.expect("422")
    sign_in("administrator", "support")
    page.goto("/stores/")
    page.get_by_role("link", name="Connect a store").press("Enter")
    page.get_by_role("link", name="JSON files").press("Enter")
    page.get_by_label("Name", exact=True).fill("hotline")
    page.get_by_label("Folder").fill(str(chats / "nowhere"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was connected.")
    expect(page.get_by_label("Name", exact=True)).to_have_value("hotline")
    page.get_by_label("Folder").fill(str(chats))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="hotline")).to_be_visible()
    page.goto("/sessions/?store=hotline")
    expect(page.get_by_text("Is the shop open on Monday?")).to_be_visible()
    assert SessionRecord.objects.get().session_id == "cust_1"


def test_a_path_with_a_star_is_watched_and_left_again_by_keyboard(
    tmp_path: Path, sign_in: SignIn, page: Page, look: Look
) -> None:
    for name in ("day", "night"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cust_1.json").write_text('[{"role": "user", "content": "Hello"}]')
    sign_in("administrator")
    page.goto("/connect/json_file/")
    page.get_by_label("Name", exact=True).fill("hotline")
    page.get_by_label("Folder").fill(f"{tmp_path}/*")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The path is now watched. Current matches: 2; 2 new stores.")).to_be_visible()
    expect(page.get_by_role("link", name="hotline-night")).to_be_visible()
    (tmp_path / "weekend").mkdir()
    (tmp_path / "weekend" / "cust_2.json").write_text("[]")
    page.get_by_role("button", name="Check for new files").press("Enter")
    expect(page.get_by_role("link", name="hotline-weekend")).to_be_visible()
    look("/stores/")
    page.get_by_role("button", name="Stop watching hotline").press("Enter")
    expect(page.get_by_role("heading", name="Watched paths")).to_have_count(0)
    expect(page.get_by_role("link", name="hotline-night")).to_be_visible()
