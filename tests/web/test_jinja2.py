"""Jinja2 templates, and Django templates that show others' text on many pages: whatever they are given is text."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.contrib.auth.context_processors import PermWrapper
from django.contrib.auth.models import User
from django.http import QueryDict
from django.template import engines
from django.template.backends.base import BaseEngine
from django.template.backends.django import DjangoTemplates
from django.template.backends.jinja2 import Jinja2
from django.test import RequestFactory
from django.utils.timezone import now
from jinja2 import UndefinedError

from memadmin.accounts.content_access.rules import Stated
from memadmin.accounts.purposes import Purpose
from memadmin.web.paging import KeysetPage
from memadmin.web.templatetags.memadmin import tagx
from sessions_app.filters import SessionFilter
from sessions_app.listing import ListedSession
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.search.sessions import MatchingSession, MatchingSessions
from sessions_app.search.snippets import Snippet
from sessions_app.stores.base import SessionPreview
from sessions_app.timeline import build_timeline
from tests.hostile import MARKUP, items_of
from tests.sessions.timeline.items import session

WITHOUT_COLUMNS = {"head": "", "shown": "", "address": ""}
"""A table that no list shows."""


def jinja2_contexts(text: str) -> dict[str, dict[str, Any]]:
    """What each Jinja2 template shows, with the text wherever somebody else may have written it."""
    record = record_of(text)
    row = ListedSession(
        record,
        SessionPreview(1, text),
        "/sessions/7/",
        names=text,
        match=match_in(record, text),
        store_tag=tagx("database", text),
        about_store=text,
    )
    timeline = build_timeline(session(list(items_of(text))), starts_session=True, ends_session=True)
    return {
        "sessions/table.html": {"sessions": [row], "caption": text, "selectable": True, **WITHOUT_COLUMNS},
        "sessions/events.html": {"timeline": timeline, "record": record},
    }


def django_contexts(text: str) -> dict[str, dict[str, Any]]:
    """The same for Django templates that many pages include."""
    record = record_of(text)
    user = User(pk=7, username=text, first_name=text, is_superuser=True)
    return {
        "sessions/_found.html": {"matches": MatchingSessions([match_in(record, text)], older="")},
        "sessions/_filters.html": {
            "filters": SessionFilter(QueryDict(urlencode({"agent": text, "ticket": text}))),
            "request": {"get_full_path": text},
        },
        "_pager.html": {"page": KeysetPage([record], text, text, text), "address": text, "query": text, "note": text},
        "_topbar.html": {
            "user": user,
            "perms": PermWrapper(user),
            "purpose": Stated(Purpose.CHECK, text, 0),
            "request": RequestFactory().get("/"),
        },
    }


def record_of(text: str) -> SessionRecord:
    store = SessionStore(name=text)
    return SessionRecord(
        pk=UUID(int=7), store=store, session_id=text, ticket=text, labels=[text], last_activity_at=now()
    )


def match_in(record: SessionRecord, text: str) -> MatchingSession:
    return MatchingSession(record, text, Snippet(((text, False), (text, True))))


def shown_by(jinja2: BaseEngine, django: BaseEngine, text: str) -> dict[str, str]:
    pages = [(jinja2, jinja2_contexts(text)), (django, django_contexts(text))]
    return {
        name: engine.get_template(name).render(context)
        for engine, contexts in pages
        for name, context in contexts.items()
    }


@pytest.mark.django_db
@pytest.mark.parametrize("text", MARKUP.values(), ids=MARKUP)
def test_markup_stays_text(text: str) -> None:
    shown = shown_by(engines["jinja2"], engines["django"], text)
    assert [name for name, html in shown.items() if text in html] == []


@pytest.mark.django_db
def test_a_template_that_does_not_escape_is_noticed() -> None:
    loose = without_escaping("jinja2", Jinja2), without_escaping("django", DjangoTemplates)
    text = MARKUP["image that fails"]
    noticed = [name for name, html in shown_by(*loose, text).items() if text in html]
    assert noticed == [*jinja2_contexts(text), *django_contexts(text)]


def without_escaping(name: str, backend: type[BaseEngine]) -> BaseEngine:
    settings = {key: value for key, value in engines.templates[name].items() if key != "BACKEND"}
    return backend({**settings, "OPTIONS": {**settings["OPTIONS"], "autoescape": False}})


def test_what_was_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="sessions"):
        engines["jinja2"].get_template("sessions/table.html").render(
            {"caption": "", "selectable": False, **WITHOUT_COLUMNS}
        )
