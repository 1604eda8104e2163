"""Pages of a session begin and end between runs, wherever one opens it and however it is turned over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from sessions_app.masked_reader import Reader
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.timeline import build_timeline
from sessions_app.timeline.runs import run_starts
from sessions_app.views.window import PAGE_ITEMS
from sessions_app.whole_runs import MOST_ITEMS
from tests.agents import assistant, user
from tests.sessions.timeline.items import COMPACTION, ENVELOPE, call, handoff, output, session

LENGTHS = (2, 7, 31, 3, 64, 5, 90, 4, 12, 130, 2, 2, 58)
"""Numbers of items of the runs of a session, more than four pages together."""


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


def write_runs(lengths: Iterable[int], session_id: str = "long") -> list[list[str]]:
    """Writes runs of a user's text and answers, each item in a batch of its own; returns the ids of their items."""
    runs = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(created_at) FROM agent_messages WHERE session_id = %s", [session_id])
        start = cursor.fetchone()[0] or now() - timedelta(days=3)
        cursor.execute("INSERT INTO agent_sessions (session_id) VALUES (%s) ON CONFLICT DO NOTHING", [session_id])
        number = 0
        for length in lengths:
            items = [user("Question"), *(assistant(f"Answer {place}") for place in range(1, length))]
            ids = []
            for item in items:
                number += 1
                cursor.execute(
                    "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (%s, %s, %s)"
                    " RETURNING id",
                    [session_id, json.dumps(item), start + timedelta(seconds=number)],
                )
                ids.append(str(cursor.fetchone()[0]))
            runs.append(ids)
    return runs


def address(**query: str) -> str:
    record = SessionRecord.objects.get(session_id="long")
    return reverse("sessions:timeline", args=[record.pk], query=query or None)


def ids_on(page: Any) -> list[str]:
    return [item.id for item in page.context["page"].items]


def assert_whole(shown: Sequence[str], runs: Sequence[Sequence[str]]) -> None:
    """Every run on the page is there with all its items."""
    for run in runs:
        on_page = [item_id for item_id in run if item_id in set(shown)]
        assert on_page in ([], list(run))


def test_no_page_cuts_a_run_in_either_direction(store: SessionStore, operator: Client) -> None:
    runs = write_runs(LENGTHS)
    everything = [item_id for run in runs for item_id in run]
    for opening, onward, way in ((address(start=""), "later_url", 1), (address(), "earlier_url", -1)):
        page = operator.get(opening)
        seen: list[str] = []
        while True:
            shown = ids_on(page)
            assert_whole(shown, runs)
            seen = seen + shown if way == 1 else shown + seen
            if not page.context[onward]:
                break
            page = operator.get(page.context[onward])
        assert seen == everything


def test_no_page_around_an_item_cuts_a_run(store: SessionStore, operator: Client) -> None:
    runs = write_runs(LENGTHS)
    reader = Reader(store, backend_for(store))
    for run in runs:
        for item_id in {run[0], run[len(run) // 2], run[-1]}:
            shown = [item.id for item in reader.page_around("long", item_id, PAGE_ITEMS).items]
            assert item_id in shown
            assert_whole(shown, runs)
        if len(run) in (7, 64, 130):
            middle = run[len(run) // 2]
            expected = [item.id for item in reader.page_around("long", middle, PAGE_ITEMS).items]
            assert ids_on(operator.get(address(item=middle))) == expected


def test_a_day_that_begins_inside_a_run_is_shown_with_the_beginning_of_the_run(
    store: SessionStore, operator: Client
) -> None:
    runs = write_runs([3, 4, 3])
    with connection.cursor() as cursor:
        for day, ids in (("2026-03-01", [*runs[0], *runs[1][:2]]), ("2026-03-04", [*runs[1][2:], *runs[2]])):
            cursor.execute(
                "UPDATE agent_messages SET created_at = %s::timestamptz + id * interval '1 second' WHERE id = ANY(%s)",
                [f"{day} 12:00+00", [int(item_id) for item_id in ids]],
            )

    page = operator.get(address(date="2026-03-04"))
    assert ids_on(page) == [*runs[1], *runs[2]]
    assert not page.context["problem"]

    page = operator.get(address(date="2026-03-02"))
    assert ids_on(page) == [*runs[1], *runs[2]]
    assert "No items on 2 March 2026. The page shows the next ones, of 4 March 2026." in page.text

    page = operator.get(address(date="2026-03-05"))
    assert ids_on(page) == [item_id for run in runs for item_id in run]
    assert "No items on 5 March 2026 or later. The page shows the newest ones." in page.text


def test_a_session_opens_at_its_newest_item_with_links_above_and_below(store: SessionStore, operator: Client) -> None:
    runs = write_runs([2] * PAGE_ITEMS)
    page = operator.get(address())
    assert ids_on(page)[-1] == runs[-1][-1]
    assert page.text.count(">Start</a>") == page.text.count(">End</a>") == 2
    assert page.text.index('aria-label="Pages of this session"') < page.text.index('<ol class="tl">')
    assert page.text.index('aria-label="Pages of this session, below"') > page.text.index('<ol class="tl">')
    assert ids_on(operator.get(page.context["start_url"]))[0] == runs[0][0]


def test_a_run_that_is_too_long_for_a_page_says_where_it_continues(store: SessionStore, operator: Client) -> None:
    runs = write_runs([4, MOST_ITEMS + 60, 3])
    everything = [item_id for run in runs for item_id in run]
    page = operator.get(address(start=""))
    seen, cut = ids_on(page), 0
    while url := page.context["later_url"]:
        cut += "It continues on the next page." in page.text
        page = operator.get(url)
        assert len(ids_on(page)) <= MOST_ITEMS + PAGE_ITEMS
        seen += ids_on(page)
    assert seen == everything
    assert cut == 1
    assert "It begins on an earlier page." in operator.get(operator.get(address()).context["earlier_url"]).text


def test_a_page_costs_the_same_in_a_session_of_ten_thousand_items(store: SessionStore, operator: Client) -> None:
    write_runs([2] * 100)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO agent_sessions (session_id) VALUES ('longest')")
        cursor.execute(
            "INSERT INTO agent_messages (session_id, message_data, created_at)"
            " SELECT 'longest', message_data, created_at - number * interval '1 hour'"
            " FROM agent_messages, generate_series(1, 50) AS number WHERE session_id = 'long'"
        )
    costs = {}
    for session_id in ("long", "longest"):
        record = SessionRecord.objects.get(session_id=session_id)
        url = reverse("sessions:timeline", args=[record.pk])
        middle = operator.get(operator.get(url).context["earlier_url"]).context["start_url"]
        for opened in (url, middle):
            operator.get(opened)
            with CaptureQueriesContext(connection) as queries:
                operator.get(opened)
            costs[session_id, opened == url] = len(queries)
    assert costs["long", True] == costs["longest", True]
    assert costs["long", False] == costs["longest", False]


def test_starts_are_those_of_the_timeline() -> None:
    items = session(
        [{"role": "system", "content": "be kind"}],
        [user("one"), user("two")],
        [call("a"), output("a"), *handoff("b", "Refunds")],
        [assistant("1")],
        [user("three"), assistant("3"), user("four"), assistant("4")],
        [COMPACTION],
        ["not an item", {"role": 5}],
        [user("five")],
        [user("six")],
    )
    runs = build_timeline(items, starts_session=True, ends_session=True).runs
    assert [items[start].id for start in run_starts(items)] == [run.anchor for run in runs]


def test_encrypted_items_may_be_parted() -> None:
    items = session([user("one")], [ENVELOPE], [ENVELOPE], [ENVELOPE])
    assert run_starts(items) == [0, 2, 3]


def test_items_written_after_the_page_was_opened_are_counted_wherever_one_reads(
    store: SessionStore, operator: Client
) -> None:
    write_runs([2] * PAGE_ITEMS)
    page = operator.get(address(start=""))
    news = page.context["news_url"]
    assert news
    assert not page.context["live_url"]
    assert operator.get(news).status_code == 204

    [new] = write_runs([3])
    answer = operator.get(news)
    assert "3 new items" in answer.text
    assert f"item={new[0]}#item-{new[0]}" in answer.text
    assert "Question" not in answer.text

    write_runs([2] * 30)
    answer = operator.get(news)
    assert "50+ new items" in answer.text
    assert answer.status_code == 286


def test_news_at_the_open_end_is_counted_until_it_was_seen(store: SessionStore, operator: Client) -> None:
    write_runs([2, 2])
    page = operator.get(address())
    live, seen = page.context["live_url"], page.context["seen"]
    [new] = write_runs([3])
    grown = operator.get(live, {"seen": seen})
    assert grown.context["news"].count == 3
    assert f'href="#item-{new[0]}"' in grown.text
    newer = grown.context["newest"]
    write_runs([2])
    assert operator.get(grown.context["live_url"], {"seen": seen}).context["news"].count == 5
    assert operator.get(grown.context["live_url"], {"seen": newer}).context["news"].count == 2


def test_a_forged_place_ends_the_questions(store: SessionStore, operator: Client, outsider: Client) -> None:
    write_runs([2])
    url = reverse("sessions:news", args=[SessionRecord.objects.get().pk])
    assert operator.get(url, {"after": "forged"}).status_code == 286
    assert outsider.get(url).status_code == 403
