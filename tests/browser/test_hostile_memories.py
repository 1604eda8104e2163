"""Hostile text in a real browser, in every place where a page shows what was learned, from what, and who said so."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice, product
from typing import TypeAlias
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.safestring import mark_safe
from playwright.sync_api import Page

from memadmin.home.models import SavedView
from memadmin.web import safe_text as hostile_text
from memories_app.models import ApprovalRule, Evidence, Memory, Recall, RecalledMemory, Review, Signal
from sessions_app.models import SessionRecord, SubjectAlias
from tests.browser.test_hostile import ELSEWHERE, EVERYWHERE, IN_LISTS, Trap, parted, storable, trap, write_all
from tests.hostile import CORPUS
from tests.memories.builders import approval_rule, approved, proposed

__all__ = ["trap"]

SignIn: TypeAlias = Callable[..., User]


def write_memories(record: SessionRecord, *texts: str) -> tuple[Memory, Memory]:
    """A memory that agents recall, and a proposal to change it: all that anybody wrote of either has each of the texts,
    or one by turns where there is room for one.
    """
    said = [storable(text, 1_500) for text in texts]
    pieces = [storable(text, 1_400 // len(texts)) for text in texts]
    in_extractor, in_key, in_note, in_agent = islice(cycle(texts), 1, 5)
    shared = {
        "kind": "note",
        "agents": [storable(text, 200) for text in texts],
        "extractor": storable(in_extractor, 80),
        "key": storable(in_key, 80),
        "data": {each: [each] for each in said},
    }
    known = approved(f"Known: {' '.join(pieces)}", subject=record.subject, is_embedded=True, **shared)
    changed = " ".join(reversed(pieces))
    change = proposed(
        f"{changed} and more {changed[:200]}",
        subject=record.subject,
        replaces=known,
        base_version=known.version,
        **shared,
    )
    Memory.objects.filter(pk=change.pk).update(risk_flags=["instruction"])
    for memory, text in product((known, change), texts):
        Evidence.objects.create(
            memory=memory,
            record_id=record.pk,
            session_id=record.session_id,
            item_id=storable(text, 200),
            speaker=storable(text, 40),
            quote=storable(text, 1_500),
            tools=[storable(text, 200)],
        )
    Review.objects.filter(memory=known).update(note=storable(in_note, 1_000))
    for each in said:
        Signal.objects.create(kind="feedback", subject=record.subject, record_id=record.pk, memory=known, text=each)
    told = Recall.objects.create(subject=record.subject, record_id=record.pk, agent=storable(in_agent, 200))
    RecalledMemory.objects.create(recall=told, memory=known, version=1, place=1)
    return known, change


def test_memories_and_proposals_are_sound(agent_tables: None, trap: Trap, sign_in: SignIn) -> None:
    """Both pages with the texts of every way out, and each with one half of the others."""
    sign_in("reviewer")
    halves = parted(ELSEWHERE, -(-len(ELSEWHERE) // 2))
    for texts, shows_memory, shows_change in zip((EVERYWHERE, *halves), (1, 1, 0), (1, 0, 1), strict=True):
        (record,) = write_all([texts])
        known, change = write_memories(record, *texts.values())
        if shows_memory:
            trap.visit(known.get_absolute_url(), about=", ".join(texts))
        if shows_change:
            trap.visit(reverse("reviews:review", args=[change.pk]), about=", ".join(texts))
    trap.check()


@pytest.mark.release
def test_everything_around_memories_is_sound(agent_tables: None, trap: Trap, sign_in: SignIn, page: Page) -> None:
    officer = sign_in("reviewer", "compliance")
    records = write_all(IN_LISTS)
    for record, texts in zip(records, IN_LISTS, strict=True):
        write_memories(record, *texts.values())
        for text in texts.values():
            if name := storable(text, 120):
                if not ApprovalRule.objects.filter(name=name).exists():
                    approval_rule(name, extractor=storable(text, 80))
                SavedView.objects.get_or_create(owner=officer, list_name="reviews-list", name=storable(text, 60))
    lists = [reverse("memories:list"), reverse("reviews:list"), f"{reverse('reviews:list')}?as=table"]
    # The log has a text in the names of subjects and rules.
    named = [reverse("audit:list", query={"type": f"{kind}.row_inserted"}) for kind in ("subject", "approval_rule")]
    for path in [*lists, reverse("reviews:rules"), reverse("reviews:health"), *named]:
        while path:
            trap.visit(path)
            older = page.locator("nav.pager a", has_text="Older")
            path = (older.first.get_attribute("href") or "") if older.count() else ""
    # One of whom a memory has every sixth text.
    about_all = records[0]
    known, _ = write_memories(about_all, *list(CORPUS.values())[::6])
    trap.visit(reverse("memories:learned-from", args=[about_all.pk]))
    for text in (CORPUS["script"], CORPUS["one long word"]):
        trap.visit(f"{reverse('memories:learned-by-tool')}?{urlencode({'tool': storable(text, 200)})}")
    assert about_all.subject
    trap.visit(about_all.subject.get_absolute_url())
    trap.visit(about_all.get_absolute_url())
    trap.visit(reverse("memories:change", args=[known.pk]))
    trap.check()


def test_what_an_agent_would_be_told_is_sound(agent_tables: None, trap: Trap, sign_in: SignIn, page: Page) -> None:
    """The preview shows statements as an agent reads them, and what was typed."""
    sign_in("reviewer")
    texts = list(CORPUS.values())[::9]
    (record,) = write_all([dict(list(CORPUS.items())[::9])])
    for text in texts:
        write_memories(record, text)
    assert record.subject
    # Typed into a field, what the text has of line breaks would be lost.
    SubjectAlias.objects.create(subject=record.subject, key="plain")
    page.goto(reverse("memories:recall"))
    typed = " ".join(storable(text, 150) for text in texts)
    page.locator("[name=query]").fill(f"Where is it? {typed}")
    page.locator("[name=subject]").fill("plain")
    with page.expect_navigation():
        page.locator("main form").get_by_role("button").last.click()
    trap.look_around(page.url)
    trap.check()


def test_a_template_that_marks_a_memory_safe_is_noticed(
    agent_tables: None, trap: Trap, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile_text, "write_out_invisible", mark_safe)
    sign_in("reviewer")
    noticed = {
        "image that fails": "script-src-attr",
        "script": "script-src-elem inline",
        "style attribute": "style-src-attr",
    }
    texts = {name: CORPUS[name] for name in noticed}
    (record,) = write_all([texts])
    known, _ = write_memories(record, *texts.values())
    trap.visit(known.get_absolute_url())
    assert trap.missing(noticed) == []
