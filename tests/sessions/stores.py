"""What the tests of lists share: stores that answer without tables, and how to read a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

import pytest

from sessions_app import listing
from sessions_app.stores.base import SessionPreview


class Answering:
    """A store that has something to say of every session, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        self.asked.append(session_ids)
        return {session_id: SessionPreview(3, f"Words of {session_id}") for session_id in session_ids}


@pytest.fixture
def stores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Backends by store name; each that is not put here answers. With `kept_main_store` the real ones are asked."""
    backends: dict[str, Any] = {}
    if "kept_main_store" not in request.fixturenames:
        request.getfixturevalue("db")
        monkeypatch.setattr(listing, "backend_for", lambda store: backends.setdefault(store.name, Answering()))
    return backends


def shown(page: Any) -> list[str]:
    """Session ids of the rows, in order."""
    assert page.status_code == 200
    return [session.record.session_id for session in page.context["sessions"]]


def link(page: Any, words: str) -> str:
    """Where the link with these words leads."""
    found = re.search(rf'<a\b[^>]*?href="([^"]*)"[^>]*>(?:(?!</a>).)*{words}', page.text, re.DOTALL)
    assert found, f"no link says {words}"
    return unescape(found[1])
