"""Search over HTTP in a store of 200,000 sessions, giants among them: each page ends in time, and leads on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from sessions_app.models import SessionStore
from sessions_app.search.remembered import remember_search
from tests.agents import run_sql

SESSIONS = 200_000

# The newest are giants: one of 20,000 items, and sixty with more than a first look reads. Behind them one is rare.
SEED = """
SET session_replication_role = replica;
INSERT INTO agent_sessions (session_id, created_at, updated_at)
SELECT 'session-' || n, instant, instant
FROM generate_series(1, {sessions}) AS n,
     LATERAL (SELECT timestamp '2026-01-01' - n * interval '1 minute') AS time_of(instant);
INSERT INTO sessions_app_sessionrecord (store_id, session_id, last_activity_at)
SELECT {store}, session_id, updated_at AT TIME ZONE 'UTC' FROM agent_sessions;
INSERT INTO agent_messages (session_id, message_data, created_at)
SELECT 'session-' || n, '{{"role": "user", "content": "' || word || ' ' || part || '"}}', timestamp '2026-01-01'
FROM generate_series(1, {sessions}) AS n,
     LATERAL (SELECT CASE WHEN n = 500 THEN 'rarely' WHEN n > 61 THEN 'commonly' ELSE 'giant' END) AS w(word),
     LATERAL generate_series(1, CASE WHEN n = 1 THEN 20000 WHEN n <= 61 THEN 150 ELSE 1 END) AS part;
SET session_replication_role = origin;
ANALYZE agent_messages, sessions_app_sessionrecord;
"""


pytestmark = pytest.mark.release


@pytest.fixture
def many_sessions(kept_main_store: SessionStore) -> None:
    run_sql(SEED.format(sessions=SESSIONS, store=kept_main_store.pk))


def pages(client: Client, word: str) -> Iterator[Any]:
    """The pages of a search, each requested by the link of the one before."""
    search = remember_search(User.objects.get(), word)
    address = reverse("sessions:search-messages", args=[search.pk])
    while address:
        page = client.get(address)
        assert page.status_code == 200
        yield page
        onward = re.search(r'href="([^"]*)"\s+rel="next"', page.text)
        address = unescape(onward[1]) if onward else ""


def test_common_rare_and_absent_words_in_many_sessions(many_sessions: None, operator: Client, settings: Any) -> None:
    settings.SEARCH_SCAN_SECONDS = 1

    common, rare, absent = (pages(operator, word) for word in ("commonly", "rarely", "never"))

    for page in common:
        if page.context["matches"].found:
            break
    assert len(page.context["matches"].found) == 20
    assert "Older" in page.text

    for page in rare:
        if page.context["matches"].found:
            break
    [match] = page.context["matches"].found
    assert match.record.session_id == "session-500"

    first, second = next(absent), next(absent)
    for page in (first, second):
        assert page.context["matches"].is_stopped
        assert "No messages match in the sessions searched so far" in page.text
        assert "older sessions were not searched" in page.text
    assert first.context["matches"].older != second.context["matches"].older
