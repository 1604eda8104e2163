"""One search box on every list, the one of the top bar, whatever a role may see."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.builders import make_store

SignIn = Callable[..., User]

LISTS = {
    "support": ["/sessions/", "/subjects/", "/memories/", "/stores/"],
    "reviewer": ["/reviews/", "/reviews/?as=table", "/memories/"],
    "compliance": ["/audit/", "/requests/", "/holds/", "/retention/runs/", "/data-map/", "/runs/"],
    "auditor": ["/audit/", "/people/"],
    "administrator": ["/people/", "/stores/", "/runs/", "/subjects/"],
}


@pytest.mark.parametrize(
    "role", ["support", *(pytest.param(role, marks=pytest.mark.release) for role in LISTS if role != "support")]
)
def test_every_list_has_one_search_box(transactional_db: None, page: Page, sign_in: SignIn, role: str) -> None:
    make_store()
    sign_in(role)
    for address in LISTS[role]:
        page.goto(address)
        boxes = page.locator("input[type=search]:visible, [role=search] input:not([type=hidden]):visible")
        expect(boxes, address).to_have_count(1)
        expect(page.get_by_role("search"), address).to_have_count(1)
        page.locator("main").focus()
        page.keyboard.press("/")
        expect(boxes, address).to_be_focused()


def test_an_auditor_finds_events_and_an_administrator_an_account(
    transactional_db: None, page: Page, sign_in: SignIn, watch: Watch
) -> None:
    watch.expect("status of 422")
    sign_in("auditor")
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("nothing like it")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing found for “nothing like it”.")).to_be_visible()
    sign_in("administrator")
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("administrator")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="People")).to_be_visible()
    expect(page.locator("[data-row]").first).to_contain_text("administrator")


def test_the_key_of_the_search_box_replaces_the_last_search(
    transactional_db: None, page: Page, sign_in: SignIn
) -> None:
    sign_in("support")
    page.goto("/")
    page.get_by_role("searchbox").fill("90460")
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type("cust_1")
    expect(page.get_by_role("searchbox")).to_have_value("cust_1")
