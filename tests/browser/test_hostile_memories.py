"""Hostile text in a real browser, in every place where a page shows what was learned, from what, and who said so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.safestring import mark_safe
from playwright.sync_api import Page

from memadmin.web import safe_text as hostile_text
from memories_app.models import ApprovalRule, Evidence, Memory, Recall, RecalledMemory, Review, SavedView, Signal
from sessions_app.models import SessionRecord, SubjectAlias
from tests.browser.test_hostile import Trap, storable, trap, write_all
from tests.hostile import CORPUS, MARKUP
from tests.memories.builders import approved, proposed

__all__ = ["trap"]

SignIn: TypeAlias = Callable[..., User]


def write_memories(record: SessionRecord, text: str) -> tuple[Memory, Memory]:
    """A memory that agents recall, and a proposal to change it, with the text in all that anybody wrote of either."""
    said = storable(text, 1_500)
    shared = {"kind": "note", "agents": [storable(text, 200)], "extractor": storable(text, 80), "data": {said: [said]}}
    known = approved(f"Known: {said}", subject=record.subject, key=storable(text, 80), is_embedded=True, **shared)
    change = proposed(
        f"{said} and more {said[:200]}",
        subject=record.subject,
        key=storable(text, 80),
        replaces=known,
        base_version=known.version,
        **shared,
    )
    Memory.objects.filter(pk=change.pk).update(risk_flags=["instruction"])
    for memory in (known, change):
        Evidence.objects.create(
            memory=memory,
            record_id=record.pk,
            session_id=record.session_id,
            item_id=storable(text, 200),
            speaker=storable(text, 40),
            quote=said,
            tools=[storable(text, 200)],
        )
    Review.objects.filter(memory=known).update(note=storable(text, 1_000))
    Signal.objects.create(kind="feedback", subject=record.subject, record_id=record.pk, memory=known, text=said)
    told = Recall.objects.create(subject=record.subject, record_id=record.pk, agent=storable(text, 200))
    RecalledMemory.objects.create(recall=told, memory=known, version=1, place=1)
    return known, change


def all_about(record: SessionRecord, text: str) -> list[str]:
    known, change = write_memories(record, text)
    assert record.subject
    return [known.get_absolute_url(), reverse("reviews:review", args=[change.pk])]


def test_memories_and_proposals_are_sound(agent_tables: None, trap: Trap, sign_in: SignIn) -> None:
    """Every second text on one of the two pages, by turns; the lists below have all of them."""
    sign_in("reviewer")
    corpus = dict(list(CORPUS.items())[::2])
    for number, (record, text) in enumerate(zip(write_all(corpus), corpus.values(), strict=True)):
        trap.visit(all_about(record, text)[number % 2])
    trap.check()


def test_everything_around_memories_is_sound(agent_tables: None, trap: Trap, sign_in: SignIn, page: Page) -> None:
    officer = sign_in("reviewer", "compliance")
    records = list(write_all(CORPUS))
    for record, text in zip(records, CORPUS.values(), strict=True):
        write_memories(record, text)
        if name := storable(text, 120):
            ApprovalRule.objects.get_or_create(name=name, defaults={"extractor": storable(text, 80)})
            SavedView.objects.get_or_create(owner=officer, name=storable(text, 60))
    lists = [reverse("memories:list"), reverse("reviews:list"), f"{reverse('reviews:list')}?as=table"]
    for path in [*lists, reverse("reviews:rules"), reverse("reviews:health"), reverse("audit:list")]:
        while path:
            trap.visit(path)
            older = page.locator("nav.pager a", has_text="Older")
            path = (older.first.get_attribute("href") or "") if older.count() else ""
    for record in records[::16]:
        assert record.subject
        trap.visit(reverse("memories:learned-from", args=[record.pk]))
        for tool in Evidence.objects.filter(record_id=record.pk)[0].tools or ():
            trap.visit(f"{reverse('memories:learned-by-tool')}?{urlencode({'tool': tool})}")
        trap.visit(record.subject.get_absolute_url())
        trap.visit(record.get_absolute_url())
        known = Memory.objects.get(subject=record.subject, status=Memory.Status.APPROVED)
        trap.visit(reverse("memories:change", args=[known.pk]))
    trap.check()


def test_what_an_agent_would_be_told_is_sound(agent_tables: None, trap: Trap, sign_in: SignIn, page: Page) -> None:
    """The preview shows statements as an agent reads them, and what was typed."""
    sign_in("reviewer")
    corpus = dict(list(CORPUS.items())[::9])
    for record, text in zip(write_all(corpus), corpus.values(), strict=True):
        write_memories(record, text)
        assert record.subject
        # Typed into a field, what the text has of line breaks would be lost.
        SubjectAlias.objects.create(subject=record.subject, key=f"plain-{record.subject_id}")
        trap.visit(reverse("memories:recall"))
        page.locator("[name=query]").fill(f"Where is it? {storable(text, 500)}")
        page.locator("[name=subject]").fill(f"plain-{record.subject_id}")
        with page.expect_navigation():
            page.locator("main form").get_by_role("button").last.click()
        trap.look_around(page.url)
    trap.check()


@pytest.mark.parametrize("name", ["image that fails", "script", "style attribute"])
def test_a_template_that_marks_a_memory_safe_is_noticed(
    name: str, agent_tables: None, trap: Trap, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile_text, "write_out_invisible", mark_safe)
    sign_in("reviewer")
    (record,) = write_all({name: CORPUS[name]})
    trap.visit(all_about(record, MARKUP[name])[0])
    with pytest.raises(AssertionError):
        trap.check()
