"""The page of one session, as support staff read it."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.models import SessionFinding, SessionRecord, SessionStore
from sessions_app.services.inspection import inspect_session
from sessions_app.views.timeline import LIVE_ITEMS
from sessions_app.views.window import PAGE_ITEMS
from sessions_app.whole_runs import MOST_ITEMS
from tests.agents import add_items, assistant, in_sdk, run_sql, user
from tests.builders import make_subject
from tests.people import person
from tests.sessions.stores import link


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


def record_of(session_id: str) -> SessionRecord:
    return SessionRecord.objects.select_related("store").get(session_id=session_id)


def address(session_id: str, **query: str) -> str:
    return reverse("sessions:timeline", args=[record_of(session_id).pk], query=query or None)


def item_ids(session_id: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM agent_messages WHERE session_id = %s ORDER BY created_at, id", [session_id])
        return [str(row[0]) for row in cursor.fetchall()]


def write_long_session(session_id: str, turns: int) -> None:
    """Two items a turn, each turn a transaction of its own; as the SDK stores them, in a tenth of its time."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO agent_sessions (session_id) VALUES (%s) ON CONFLICT DO NOTHING", [session_id])
        for number in range(turns):
            said = [json.dumps(item) for item in (user(f"Question {number}"), assistant(f"Answer {number}"))]
            cursor.execute(
                "INSERT INTO agent_messages (session_id, message_data) SELECT %s, unnest(%s::text[])",
                [session_id, said],
            )


def shown(page: Any) -> list[str]:
    return re.findall(r'aria-label="Link to item (\d+)"', page.text)


def live_url(page: Any) -> str:
    """Where the timeline of a page, or of a fragment, asks whether anything changed; empty when it does not."""
    found = re.search(r'id="timeline"\s+hx-get="([^"]+)"', page.text)
    return html.unescape(found[1]) if found else ""


def test_support_reads_a_session_from_its_first_word(store: SessionStore, operator: Client) -> None:
    add_items("s", "Where is my order?")
    add_items("s", assistant("It ships today."))

    page = operator.get(address("s"))

    assert page.status_code == 200
    assert b"Where is my order?" in page.content
    assert b"It ships today." in page.content
    assert b"2 items" in page.content


def test_content_is_hidden_from_the_outsider(store: SessionStore, outsider: Client, client: Client) -> None:
    add_items("s", "Where is my order?")
    record = record_of("s")
    for name in ("timeline", "live", "export-jsonl", "export-markdown"):
        url = reverse(f"sessions:{name}", args=[record.pk])
        assert outsider.get(url).status_code == 403
        assert client.get(url).status_code == 302
    assert outsider.get(reverse("sessions:item", args=[record.pk, item_ids("s")[0]])).status_code == 403


def test_an_erased_session_is_unknown(store: SessionStore, operator: Client) -> None:
    add_items("s", "Where is my order?")
    url = address("s")
    SessionRecord.objects.update(erased_at=record_of("s").registered_at)
    assert operator.get(url).status_code == 404


def test_a_page_never_stays_in_a_cache_and_refuses_other_methods(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    assert "no-store" in operator.get(address("s"))["Cache-Control"]
    assert operator.post(address("s")).status_code == 405


def test_long_sessions_are_read_in_pages_both_ways(store: SessionStore, operator: Client) -> None:
    write_long_session("long", PAGE_ITEMS + 20)
    everything = item_ids("long")

    page = operator.get(address("long", start=""))
    seen = shown(page)
    while url := page.context["later_url"]:
        page = operator.get(url)
        seen += shown(page)
    assert seen == everything

    page = operator.get(address("long", end=""))
    seen = shown(page)
    assert seen == everything[-PAGE_ITEMS:]
    while url := page.context["earlier_url"]:
        page = operator.get(url)
        seen = shown(page) + seen
    assert seen == everything


def test_a_link_to_an_item_opens_around_it_and_points_at_it(store: SessionStore, operator: Client) -> None:
    write_long_session("long", PAGE_ITEMS + 20)
    wanted = item_ids("long")[PAGE_ITEMS]

    page = operator.get(address("long", item=wanted))

    assert wanted in shown(page)[20:-20]
    assert b"found" in page.content
    assert page.context["earlier_url"]
    assert page.context["later_url"]


def test_an_output_leads_to_the_call_on_the_previous_page(store: SessionStore, operator: Client) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "found it"}
    add_items("s", *(f"Question {number}" for number in range(MOST_ITEMS - 1)), call, output, assistant("Done."))

    page = operator.get(operator.get(address("s", start="")).context["later_url"])

    found = re.search(
        r'<a class="inline small" href="([^"]*)">', page.text.partition("Call is on the previous page")[0]
    )
    assert found
    assert html.unescape(found[1]) == page.context["earlier_url"]
    assert "look_up" in operator.get(page.context["earlier_url"]).text


def test_a_date_leads_to_its_first_item(store: SessionStore, operator: Client) -> None:
    write_long_session("long", 3)
    old, new = item_ids("long")[:4], item_ids("long")[4:]
    run_sql(f"UPDATE agent_messages SET created_at = '2026-03-01 12:00' WHERE id IN ({','.join(old)})")
    run_sql(f"UPDATE agent_messages SET created_at = '2026-03-05 12:00' WHERE id IN ({','.join(new)})")

    assert shown(operator.get(address("long", date="2026-03-02"))) == new
    assert shown(operator.get(address("long", date="2026-03-01"))) == old + new


def test_an_address_that_cannot_be_followed_shows_the_start_and_says_why(store: SessionStore, operator: Client) -> None:
    add_items("s", "Where is my order?")
    cases: list[tuple[dict[str, str], int, str]] = [
        ({"at": "after~2026-01-01~1:forged"}, 400, "The link is incomplete or was changed."),
        ({"item": "999999999"}, 404, "This item is not in the session: the agent may have removed it"),
        (
            {"item": "'; DROP TABLE agent_messages; --"},
            404,
            "This item is not in the session: the agent may have removed it",
        ),
        ({"date": "yesterday"}, 400, "This is not a date. Use the format 2026-11-30."),
        ({"date": "2026-02-31"}, 400, "This is not a date. Use the format 2026-11-30."),
    ]
    for query, status, sentence in cases:
        page = operator.get(address("s", **query))
        assert page.status_code == status, query
        assert sentence in page.text, query
        assert "Where is my order?" in page.text, query


def test_a_cursor_of_one_session_does_not_open_another(store: SessionStore, operator: Client) -> None:
    write_long_session("long", PAGE_ITEMS)
    add_items("other", "Hello")
    cursor = parse_qs(urlparse(operator.get(address("long", start="")).context["later_url"]).query)["at"][0]
    assert operator.get(address("other", at=cursor)).status_code == 400


def test_new_items_appear_while_the_agent_writes(store: SessionStore, operator: Client) -> None:
    add_items("s", "Where is my order?")
    page = operator.get(address("s"))
    live = page.context["live_url"]
    assert operator.get(live).status_code == 204

    add_items("s", assistant("It ships today."))
    fragment = operator.get(live)

    assert fragment.status_code == 200
    assert b"It ships today." in fragment.content
    assert b"<html" not in fragment.content
    assert operator.get(live_url(fragment)).status_code == 204


def test_an_item_that_the_agent_took_back_disappears(store: SessionStore, operator: Client) -> None:
    add_items("s", "Where is my order?", "Sorry, wrong chat")
    live = operator.get(address("s")).context["live_url"]

    in_sdk(lambda tables: tables.session("s").pop_item())

    assert b"Sorry, wrong chat" not in operator.get(live).content


def test_the_open_end_of_a_long_session_grows_and_then_offers_the_next_page(
    store: SessionStore, operator: Client
) -> None:
    write_long_session("long", PAGE_ITEMS)
    page = operator.get(address("long", end=""))
    first = shown(page)[0]

    write_long_session("long", 1)
    grown = operator.get(live_url(page))
    assert shown(grown)[0] == first
    assert len(shown(grown)) == PAGE_ITEMS + 2

    write_long_session("long", LIVE_ITEMS // 2)
    full = operator.get(live_url(grown))
    assert len(shown(full)) == LIVE_ITEMS
    assert full.context["later_url"]
    assert not live_url(full)


def test_a_page_costs_the_same_for_ten_items_and_a_thousand(store: SessionStore, operator: Client) -> None:
    for session_id, turns in (("short", 5), ("long", 500)):
        add_items(session_id, *(item for number in range(turns) for item in (user(f"{number}?"), assistant("Yes."))))
    costs = []
    for session_id in ("short", "long"):
        url = address(session_id)
        operator.get(url)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            operator.get(url)
        costs.append(len(queries))
    # The long one is counted, up to a cap; the short one was seen whole.
    assert costs == [costs[0], costs[0] + 1]
    assert costs[0] <= 16


def test_the_session_is_attached_to_another_subject_from_its_own_page(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    other = make_subject("cust_2")
    SessionRecord.objects.update(subject=make_subject("cust_1"))
    form = operator.get(address("s")).text.partition("Attach to another subject")[2]
    assert 'name="session"' in form
    sent = {"session": record_of("s").pk, "kind": "user", "key": "cust_2", "next": address("s")}
    answer = operator.post(reverse("sessions:attach"), sent)
    assert answer["Location"] == address("s")
    assert record_of("s").subject == other


def test_who_may_read_the_log_sees_who_read_the_session(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    add_items("other", "Hello")
    for session_id in ("s", "other"):
        assert "Readers" not in operator.get(address(session_id)).text
    compliance = Client()
    compliance.force_login(person("compliance"))
    read_by = compliance.get(address("s")).text.partition('id="side-readers"')[2].partition("</section>")[0]
    assert "support" in read_by
    assert "1 read<" in read_by
    assert "<time" in read_by
    assert "side-readers" not in operator.get(address("s")).text
    page = compliance.get(link(compliance.get(address("s")), "Readers"))
    shown_events = [listed.event for listed in page.context["events"]]
    assert {event.object_ref for event in shown_events} == {record_of("s").pk}


def test_the_page_leads_from_finding_to_finding(store: SessionStore, operator: Client) -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
    add_items("s", "Hello", output, output | {"call_id": "call_2"})
    inspect_session(record_of("s"))
    first, second = item_ids("s")[1:]

    page = operator.get(address("s"))
    assert page.context["next_finding"].item_id == first
    assert b"2 findings" in page.content
    assert operator.get(address("s", item=first)).context["next_finding"].item_id == second
    assert operator.get(address("s", item=second)).context["next_finding"].item_id == first


def test_a_finding_whose_item_was_taken_back_is_looked_at_again(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello", {"type": "function_call_output", "call_id": "call_1", "output": "found"})
    inspect_session(record_of("s"))
    gone = item_ids("s")[-1]
    in_sdk(lambda tables: tables.session("s").pop_item())
    assert not SessionRecord.objects.awaiting_inspection().exists()

    assert operator.get(address("s", item=gone)).status_code == 404

    assert SessionRecord.objects.awaiting_inspection().exists()


def test_a_finding_of_another_version_is_shown_by_its_code(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    record = record_of("s")
    SessionFinding.objects.create(
        record_id=record.pk, session_id="s", kind="new_in_the_next_version", item_id=item_ids("s")[0]
    )
    SessionRecord.objects.update(finding_count=1)
    assert b"new_in_the_next_version" in operator.get(address("s")).content.lower()


def test_the_download_has_the_bytes_as_stored(store: SessionStore, operator: Client) -> None:
    add_items("s", "Größe \u0000 😀", {"type": "hologram_call", "id": "h_1"})
    run_sql(
        "UPDATE agent_messages SET message_data = message_data || '  ' WHERE id = (SELECT min(id) FROM agent_messages)"
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT message_data FROM agent_messages ORDER BY created_at, id")
        stored = "".join(row[0] + "\n" for row in cursor.fetchall())

    download = operator.get(reverse("sessions:export-jsonl", args=[record_of("s").pk]))

    assert b"".join(download).decode() == stored
    assert [json.loads(line) for line in stored.splitlines()][1] == {"type": "hologram_call", "id": "h_1"}
    assert download["Content-Disposition"].startswith("attachment")


def test_a_masked_download_is_json_and_says_that_it_is_masked(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello", "Hello")
    rows = [
        '{"role": "user", "content": "Hello", "score": 1.4242424242424242e-05}',
        '{"role": "user", "content": "4242 4242 4242 4242", "n": 4242424242424242, "n": 0.4242424242424242}',
    ]
    for item_id, row in zip(item_ids("s"), rows, strict=True):
        run_sql(f"UPDATE agent_messages SET message_data = '{row}' WHERE id = {item_id}")
    record = record_of("s")
    download = operator.get(reverse("sessions:export-jsonl", args=[record.pk]))
    lines = [json.loads(line) for line in b"".join(download).decode().splitlines()]
    assert lines == [json.loads(rows[0]), json.loads(rows[1]) | {"content": "[card •••• 4242]"}]
    assert f"session-{record.pk}-masked.jsonl" in download["Content-Disposition"]
    text = operator.get(reverse("sessions:export-markdown", args=[record.pk]))
    assert f"session-{record.pk}-masked.md" in text["Content-Disposition"]
    files = [
        operator.get(reverse("sessions:item", args=[record.pk, item_id]) + "?download") for item_id in item_ids("s")
    ]
    assert [("masked" in file["Content-Disposition"]) for file in files] == [False, True]


def test_an_item_that_takes_too_long_is_hidden_and_opens_on_its_own(store: SessionStore, operator: Client) -> None:
    add_items("s", "Before", "+1234567 " * 800, "After")
    page = operator.get(address("s"))
    item = reverse("sessions:item", args=[record_of("s").pk, item_ids("s")[1]])
    assert f'href="{item}">Load item' in page.text
    assert "1234567" not in page.text
    assert "Before" in page.text
    assert "After" in page.text
    assert "+1234567 +1234567" in operator.get(item).text


def test_a_part_of_an_item_opens_by_its_address(store: SessionStore, operator: Client) -> None:
    parts = [{"type": "input_text", "text": f"part {number}."} for number in range(150)]
    add_items("s", {"role": "user", "content": parts})
    item = reverse("sessions:item", args=[record_of("s").pk, item_ids("s")[0]])

    def first(part: str) -> int:
        shown_parts = operator.get(item, {"part": part}).text.partition('id="as-stored"')[0]
        return min(map(int, re.findall(r"part (\d+)\.", shown_parts)))

    assert [first(part) for part in ("", "100", "x", "-1", "9" * 30)] == [0, 100, 0, 0, 0]


def test_a_row_with_line_breaks_stays_one_line_of_the_download(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    run_sql("""UPDATE agent_messages SET message_data = E'{"role": "user",\\r\\n "content": "Hello"}'""")
    body = b"".join(operator.get(reverse("sessions:export-jsonl", args=[record_of("s").pk]))).decode()
    assert [json.loads(line) for line in body.splitlines()] == [{"role": "user", "content": "Hello"}]


def test_the_markdown_download_reads_like_the_page(store: SessionStore, operator: Client) -> None:
    write_long_session("s", 2)
    text = b"".join(operator.get(reverse("sessions:export-markdown", args=[record_of("s").pk]))).decode()
    assert text.index("Question 0") < text.index("Answer 0") < text.index("Question 1")


def test_the_markdown_of_a_long_session_has_every_text_once_and_tears_no_pair_apart(
    store: SessionStore, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.views.downloads.MARKDOWN_BATCH", 3)
    call = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "found it"}
    for number in range(4):
        add_items("s", f"Question {number}", call | {"call_id": f"c{number}"}, output | {"call_id": f"c{number}"})
    text = b"".join(operator.get(reverse("sessions:export-markdown", args=[record_of("s").pk]))).decode()
    assert [text.count(f"Question {number}") for number in range(4)] == [1, 1, 1, 1]
    assert text.count("found it") == 4
    assert "not on this page" not in text


HOSTILE = {
    "nonsense": "not json at all",
    "cut off": '{"role": "user", "content": "cut of',
    "escapes": '{"role": "user", "content": "\\u0000 \\ud800 \\u202e"}',
    "open brackets": "[" * 50_000,
    "deep": "[" * 20_000 + "]" * 20_000,
    "long word": json.dumps({"role": "user", "content": "word" * 100_000}),
    "script": json.dumps({"role": "user", "content": "<script>alert(1)</script>" * 1_000}),
    "two megabytes": json.dumps({"type": "function_call_output", "call_id": "c", "output": "x" * 2_000_000}),
    "wrong type": json.dumps({"type": "message", "role": "assistant", "content": 5}),
    "long number": "9" * 10_000,
    "empty": "",
}


def test_whatever_is_stored_is_shown_safely(store: SessionStore, operator: Client) -> None:
    add_items("s", "Before", "Hostile", "After")
    record, item_id = record_of("s"), item_ids("s")[1]
    for what, stored in HOSTILE.items():
        with connection.cursor() as cursor:
            cursor.execute("UPDATE agent_messages SET message_data = %s WHERE id = %s", [stored, item_id])

        page = operator.get(address("s"))

        assert page.status_code == 200, what
        assert page.content.index(b"Before") < page.content.index(b"After"), what
        assert b"<script>alert" not in page.content, what
        assert len(page.content) < 400_000, what

        item = operator.get(reverse("sessions:item", args=[record.pk, item_id]))
        assert item.status_code == 200, what
        assert b"<script>alert" not in item.content, what
        whole = operator.get(reverse("sessions:item", args=[record.pk, item_id], query={"download": ""}))
        assert whole.content.decode() == stored, what
        assert b"".join(operator.get(reverse("sessions:export-markdown", args=[record.pk]))), what
        inspect_session(record)


def test_a_store_without_its_tables_is_away_and_says_so(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    url, live = address("s"), operator.get(address("s")).context["live_url"]
    run_sql("DROP TABLE agent_messages")

    page = operator.get(url)

    assert page.status_code == 503
    assert b"main cannot be read" in page.content
    assert operator.get(live).status_code == 204
    for name in ("export-jsonl", "export-markdown"):
        download = operator.get(reverse(f"sessions:{name}", args=[record_of("s").pk]))
        assert download.status_code == 503, "not the beginning of a file that breaks off"


def test_a_cleared_session_says_that_it_is_empty(store: SessionStore, operator: Client) -> None:
    add_items("s", "Hello")
    in_sdk(lambda tables: tables.session("s").clear_session())
    page = operator.get(address("s"))
    assert page.status_code == 200
    assert b"No items in this session" in page.content


def test_any_session_id_opens(store: SessionStore, operator: Client) -> None:
    session_ids = ["a/b%20c?d#e", "😀 ключ", "x" * 10_000, "Case", "case"]
    # Each with one that differs in its letters' case alone.
    for session_id in {case for each in session_ids for case in (each, each.swapcase())}:
        add_items(session_id, f"I am {session_id[:20]!r}.")
    for session_id in session_ids:
        page = operator.get(address(session_id))
        assert page.status_code == 200, session_id
        said = html.unescape(page.text)
        assert f"I am {session_id[:20]!r}." in said, session_id
        assert f"I am {session_id.swapcase()[:20]!r}." not in said, session_id
