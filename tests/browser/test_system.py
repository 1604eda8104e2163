"""The page System in a real browser: it comes at once, and the checks follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin.deploy import checks
from memadmin.deploy.checks.finding import CheckFinding
from memadmin.deploy.system import last_check
from tests.browser.conftest import in_all_views
from tests.builders import make_store

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[..., None]

SYSTEM = reverse("system:system")


def found() -> Iterator[CheckFinding]:
    yield CheckFinding("error", "worker", "No worker is running: jobs are not done. Start `worker`.")
    yield CheckFinding("warning", "backups", "PostgreSQL has no archive of its write-ahead log and no replica.")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "OF_DATABASE", (found,))
    monkeypatch.setattr(checks, "OF_SETTINGS", ())


def test_the_checks_follow_the_page_and_are_repeated_on_request(page: Page, sign_in: SignIn) -> None:
    sign_in("administrator")
    page.goto(SYSTEM)
    expect(page.get_by_text("No worker is running: jobs are not done")).to_be_visible()
    expect(page.get_by_role("region", name="Findings").get_by_role("status")).to_contain_text("checked")
    first = last_check.last_result()
    page.get_by_role("button", name="Check now").press("Enter")
    expect(page.get_by_text("Checked.", exact=True)).to_be_visible()
    second = last_check.last_result()
    assert first
    assert second
    assert second.at > first.at


@in_all_views
def test_pages_in_all_sizes_and_themes(look: Look, sign_in: SignIn) -> None:
    sign_in("administrator")
    store = make_store()
    store.checked_at, store.last_check = (
        now(),
        {"problems": [{"code": "away", "sentence": "It does not answer.", "is_fatal": True}]},
    )
    store.save()
    last_check.run_checks()
    look(SYSTEM, with_shell=True)
