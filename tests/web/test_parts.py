"""Parts of pages: whatever they are given is text, and a name that is not there is an error."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.utils.timezone import now
from jinja2 import UndefinedError

from memadmin.accounts.content_access.rules import Stated
from memadmin.accounts.purposes import Purpose
from memadmin.web.paging import KeysetPage
from memadmin.web.templatetags.memadmin import tagx
from sessions_app.filters import SessionFilter
from sessions_app.listing import ListedSession
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.search.sessions import MatchingSession
from sessions_app.search.snippets import Snippet
from sessions_app.stores.base import Preview
from sessions_app.timeline import build_timeline
from tests.hostile import MARKUP, items_of
from tests.sessions.timeline.items import session


def parts_with(text: str) -> dict[str, dict[str, Any]]:
    """What each part shows, with the text wherever somebody else may have written it."""
    store = SessionStore(name=text)
    record = SessionRecord(
        pk=UUID(int=7), store=store, session_id=text, ticket=text, labels=[text], last_activity_at=now()
    )
    match = MatchingSession(record, text, Snippet(((text, False), (text, True))))
    row = ListedSession(
        record,
        Preview(1, text),
        "/sessions/7/",
        names=text,
        match=match,
        store_tag=tagx("database", text),
        about_store=text,
    )
    timeline = build_timeline(session(list(items_of(text))), starts_session=True, ends_session=True)
    return {
        "sessions/table.html": {"sessions": [row], "caption": text, "selectable": True},
        "sessions/found.html": {"found": [match]},
        "sessions/events.html": {"timeline": timeline, "record": record},
        "sessions/filters.html": {
            "filters": SessionFilter(QueryDict(urlencode({"agent": text, "ticket": text}))),
            "here": text,
            "may_name_subjects": True,
            "csrf_token": "token",
        },
        "pager.html": {"page": KeysetPage([record], text, text, text), "address": text, "query": text, "note": text},
        "shell/topbar.html": {
            "user": User(username=text, first_name=text, is_superuser=True),
            "roles": text,
            "purpose": Stated(Purpose.CHECK, text, 0),
            "now": "12:00",
            "csrf_token": "token",
        },
    }


def shown_by(engine: Any, text: str) -> dict[str, str]:
    return {name: engine.get_template(name).render(context) for name, context in parts_with(text).items()}


@pytest.mark.django_db
@pytest.mark.parametrize("text", MARKUP.values(), ids=MARKUP)
def test_markup_stays_text(text: str) -> None:
    assert [name for name, html in shown_by(engines["parts"], text).items() if text in html] == []


@pytest.mark.django_db
def test_a_part_that_does_not_escape_is_noticed() -> None:
    parts = engines["parts"]
    assert isinstance(parts, Jinja2)
    loose = parts.env.overlay(autoescape=False)
    text = MARKUP["image that fails"]
    noticed = [name for name, context in parts_with(text).items() if text in loose.get_template(name).render(context)]
    assert noticed == list(parts_with(text))


def test_what_was_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="found"):
        engines["parts"].get_template("sessions/found.html").render({})


def test_spaces_that_were_given_stay_and_those_of_the_indent_go() -> None:
    parts = engines["parts"]
    assert isinstance(parts, Jinja2)
    text = "<div>\n    {% if said %}\n      <p>{{ said }} </p>\n    {% endif %}\n</div>"
    assert parts.from_string(text).render({"said": " a\n   b"}) == "<div>\n<p> a\n   b </p>\n</div>"
