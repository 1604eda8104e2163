"""Memories in a browser: the whole way from what a person says to what the bot does the next time, and their pages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.urls import reverse
from playwright.sync_api import Page, expect

from memadmin.demo import agents, preparing
from memadmin.demo.stories import support
from memadmin.deploy.roles import Roles
from memories_app.learning.evidence_linking import place_evidence
from memories_app.learning.screening import screen_memories
from memories_app.models import Distillation, Evidence, Memory, Recall, RecalledMemory
from sessions_app.models import AgentMessage, SessionRecord, SessionStore
from tests.agents import add_items, assistant, attach_main_store
from tests.browser.conftest import in_all_views
from tests.builders import make_subject
from tests.deploy.conftest import in_force  # noqa: F401
from tests.deploy.connecting import bring_into_force
from tests.memories.builders import approved

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


def aside(work: Callable[[], Any]) -> Any:
    """In a thread of its own: Playwright keeps an event loop running in this one, and agents bring theirs."""

    def working() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(working).result()


@pytest.fixture
def role(in_force: Roles, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: F811
    """Under which the demo's bots run; the console's own tables, and what agents may do with them, are there."""
    settings.DATA_DIR = tmp_path
    settings.SESSION_KEYS = {}
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    attach_main_store()
    bring_into_force(in_force)
    monkeypatch.setattr(preparing, "ROLES", in_force)
    return in_force["agents"]


@pytest.mark.release
def test_from_what_a_person_says_to_what_the_bot_does_the_next_time(role: str, page: Page, sign_in: SignIn) -> None:
    # Somebody talks to the bot, which asks to remember something.
    aside(lambda: agents.run_all([support.DENTED_POT], role=role))
    place_evidence()
    screen_memories()
    memory = Memory.objects.get()
    statement = "Wants refunds on the card, never as a voucher."

    # A reviewer sees the proposal beside the words that it comes from, and approves it by one key.
    sign_in("reviewer")
    page.goto(reverse("reviews:list"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(statement)
    expect(page.locator(".quote.hit")).to_contain_text("not a voucher")
    page.keyboard.press("a")
    expect(page.locator("#main")).to_contain_text("No proposals waiting")

    # The item that it was learned from says so, on its timeline.
    page.goto(memory.get_absolute_url())
    page.get_by_role("link", name="open in session").click()
    page.locator(".tl-item.found").get_by_role("link", name="memory learned").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(statement)

    # The next run is told, and goes by it.
    said = StringIO()
    aside(lambda: call_command("demo_run", "support", stdout=said))
    assert f"Answer:   I know about you: {statement}" in said.getvalue()

    # And the timeline says so: that something was recalled, what, and in which words.
    record = SessionRecord.objects.get(pk__in=[Recall.objects.get().record_id])
    page.goto(record.get_absolute_url())
    run = page.locator(".tl-run")
    expect(page.locator(".tl")).to_contain_text(f"I know about you: {statement}")
    run.get_by_role("link", name="1 memory recalled").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memories used by Triage")
    expect(page.locator("#main")).to_contain_text(f"- {statement}")
    page.get_by_role("link", name="Open in session").click()
    expect(page.locator(".tl-item.found")).to_contain_text("I know about you")

    # The memory knows where it was told.
    page.goto(memory.get_absolute_url())
    expect(page.get_by_role("heading", name="Usage:")).to_have_text("Usage: 1 recall")
    page.get_by_role("table").get_by_role("link", name=record.ticket).click()
    expect(page.locator(".tl-item.found")).to_contain_text("I know about you")


@in_all_views
def test_the_pages_can_be_looked_at(kept_main_store: SessionStore, sign_in: SignIn, look: Look) -> None:
    add_items("s", "Where is my parcel? I drink tea, and never coffee.")
    add_items("s", assistant("On its way."))
    record = SessionRecord.objects.get()
    SessionRecord.objects.update(ticket="T-1", subject=make_subject("cust_1"))
    record.refresh_from_db()
    item = AgentMessage.objects.order_by("pk")[0]
    memory = approved("Lives at Kalju 4.", subject=record.subject)
    Memory.objects.filter(pk=memory.pk).update(statement="Drinks tea.", status="needs_revalidation")
    Evidence.objects.create(
        memory=memory, record_id=record.pk, item_id=str(item.pk), quote="I drink tea", tools=["track"]
    )
    shared = approved("Calls are not answered before nine.")
    recall = Recall.objects.create(record_id=record.pk, session_id="s", agent="Barista", subject=record.subject)
    for place, told in enumerate((memory, shared, None), 1):
        RecalledMemory.objects.create(recall=recall, memory=told, version=1, place=place)
    Distillation.objects.create(
        record_id=record.pk, session_id="s", distiller="agent:small/1", outcome="done", model_calls=1, input_tokens=912
    )
    sign_in("compliance")
    look(reverse("memories:distillers"))
    look(record.get_absolute_url())
    look(reverse("memories:recall-detail", args=[recall.pk]))
    look(memory.get_absolute_url())
    look(reverse("memories:change", args=[memory.pk]))
    look(reverse("memories:list"))
    # That of a session is a part of it.
    look(f"{reverse('memories:learned-by-tool')}?tool=track")
    look(reverse("memories:recall"))


def test_a_version_is_erased_by_keyboard(transactional_db: None, sign_in: SignIn, page: Page) -> None:
    memory = approved("Lives at Kalju 4.")
    Memory.objects.filter(pk=memory.pk).update(statement="Has moved.", status="needs_revalidation")
    sign_in("compliance")
    page.goto(memory.get_absolute_url())
    page.locator("summary", has_text="Erase…").press("Enter")
    page.get_by_label("Reason").first.select_option("personal")
    page.get_by_role("button", name="Erase version 1").press("Enter")
    expect(page.locator("#main")).to_contain_text("Text erased. The version remains listed.")
    expect(page.locator("#main")).not_to_contain_text("Kalju")


def test_words_are_searched_for_by_keyboard(transactional_db: None, sign_in: SignIn, page: Page) -> None:
    approved("Drinks green tea."), approved("Wants refunds on the card.")
    sign_in("reviewer")
    page.goto(reverse("memories:list"))
    page.get_by_role("textbox", name="Words in the statement").fill("refund")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row")).to_have_count(2)  # with the head
    expect(page.get_by_role("row").last).to_contain_text("Wants refunds on the card.")
    assert "refund" not in page.url
