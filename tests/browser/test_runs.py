"""Runs in a real browser: progress that refreshes itself, and the verbs by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from memadmin.runs.engine import Wait, carry_on
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from tests.browser.conftest import in_all_views
from tests.runs import moving

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[[str], None]


@pytest.fixture
def run(transactional_db: None) -> Iterator[Run]:
    with moving.tables(45):
        yield request_run("test_moving", total=45)


def test_a_run_is_followed_paused_and_resumed_by_keyboard(
    run: Run, page: Page, sign_in: SignIn, refresh: Callable[[], None]
) -> None:
    sign_in("compliance")
    page.goto("/runs/")
    carry_on(run, seconds=0)
    refresh()
    # The list refreshes itself.
    expect(page.locator(f"#run-{run.number}")).to_contain_text("10 of about 45 rows")
    page.get_by_role("link", name="Moving").press("Enter")
    page.get_by_role("button", name=f"Pause R-{run.number}").press("Enter")
    expect(page.locator("#run")).to_contain_text("Paused by compliance")
    carry_on(run, seconds=0)
    page.get_by_role("button", name=f"Resume R-{run.number}").press("Enter")
    expect(page.locator("#run")).to_contain_text("waiting")
    carry_on(run)
    refresh()
    expect(page.locator("#run")).to_contain_text("complete")
    expect(page.locator("#run")).to_contain_text("45 rows")


def test_a_limit_is_typed_while_the_page_refreshes_itself(
    run: Run, page: Page, sign_in: SignIn, refresh: Callable[[], None]
) -> None:
    sign_in("compliance")
    page.goto(run.get_absolute_url())
    page.get_by_label("Rows per second").fill("1000")
    carry_on(run, seconds=0)
    refresh()
    expect(page.locator("#run")).to_contain_text("10 of about 45 rows")
    page.get_by_label("Rows per second").press("Enter")
    expect(page.locator("#run")).to_contain_text("Limit 1,000 rows/s")
    expect(page.get_by_label("Rows per second")).to_have_value("1000")


@in_all_views
def test_pages_in_all_sizes_and_themes(
    run: Run, page: Page, sign_in: SignIn, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in("administrator")

    def unreachable(place: str) -> None:
        raise Wait("The store hotline is unreachable.")

    monkeypatch.setattr(moving, "come_to", unreachable)
    carry_on(run)
    look("/runs/")
    look(run.get_absolute_url())
    # A complete run differs from it in the list as it does on its page.
    monkeypatch.undo()
    Run.objects.update(retry_at=None)
    carry_on(run)
    look(run.get_absolute_url())
