"""The fragments of the timeline: every kind of event as HTML that stored text cannot break out of."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import settings as effort

from sessions_app.items import StoredItem
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord
from sessions_app.timeline import Timeline, build_timeline
from sessions_app.timeline.blocks import SHOWN_PARTS
from sessions_app.timeline.shortening import shortened
from tests.cases import for_each
from tests.sessions.timeline.items import (
    COMPACTION,
    ENVELOPE,
    EXAMPLES,
    Raw,
    assistant,
    call,
    handoff,
    in_part,
    output,
    session,
    stored,
    user,
)
from tests.sessions.timeline.test_examples import EXPECTED
from tests.sessions.timeline.test_properties import raws, sessions

RECORD = SessionRecord(pk=UUID(int=7), session_id="customer_1")
HOSTILE = (
    """<script>alert(1)</script>"'><img src=x onerror=alert(2)>{{ record.pk }}{% now "Y" %}</pre></li>&lt;\u202e"""
)

VOID = {"img", "use", "br"}
ELEMENTS = {
    "ol", "li", "div", "span", "b", "strong", "bdi", "time", "code", "pre", "details", "summary", "a", "img", "svg",
    "use", "mark",
}  # fmt: skip


class Page(HTMLParser):
    """Reads HTML strictly: every element known, closed, and closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.links: list[tuple[str, list[str]]] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, f"<{tag}> is none of ours"
        attributes = dict(attrs)
        assert len(attributes) == len(attrs), f"an attribute twice on <{tag}>"
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        if tag == "img":
            assert re.match(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$", attributes["src"] or "")
        if tag == "a":
            address = attributes["href"] or ""
            assert address.startswith("/sessions/") or attributes["rel"] == "noopener noreferrer nofollow"
            assert re.match("(/sessions/|https?://)", address)
            self.links.append((address, list(self.open)))
        if attributes.get("id"):
            self.ids.append(attributes["id"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> closes itself"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def page(timeline: Timeline, **context: Any) -> Page:
    context = {"timeline": timeline, "record": RECORD, **context}
    source = render_to_string("sessions/events.html", context, using="jinja2")
    source.encode()
    return Page(source)


def shown(items: list[StoredItem], **context: Any) -> Page:
    return page(build_timeline(items, starts_session=True, ends_session=True), **context)


@for_each(
    ("example", "expected"),
    list(zip(EXAMPLES, EXPECTED, strict=True)),
    ids=[f"{example['type']}: {example['variant']}" for example in EXAMPLES],
)
def test_each_example_shows_its_title_and_its_item(example: dict[str, Any], expected: tuple[str, str, str]) -> None:
    timeline = build_timeline([stored(example["item"])], starts_session=False, ends_session=False)
    seen = page(timeline)
    _, title, detail = expected
    assert title in seen.words
    assert detail in seen.words
    assert "item-1" in seen.ids


def spoiled(value: Any) -> Any:
    """The value with hostile text in place of each string that is not a word of the SDK's protocol."""
    if isinstance(value, dict):
        return {key: item if key in ("type", "role", "status") else spoiled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [spoiled(item) for item in value]
    return HOSTILE + value if isinstance(value, str) else value


@for_each("example", EXAMPLES, ids=lambda example: f"{example['type']}: {example['variant']}")
def test_hostile_text_stays_text(example: dict[str, Any]) -> None:
    shown([stored(spoiled(example["item"]))])
    if isinstance(example["item"], dict):
        shown([stored({**example["item"], "type": HOSTILE})])
        shown([stored({**example["item"], "role": HOSTILE})])


def test_hostile_names_and_addresses_stay_text() -> None:
    """The places that no example reaches, because the SDK would not write such a value there."""
    second = call("i", "transfer_to_" + HOSTILE)
    address = """https://e.example/"><script>alert(1)</script>'x='"""
    seen = shown(
        session(
            [user("go")],
            handoff("h", HOSTILE),
            [second, output("i", json.dumps({"assistant": "next " + HOSTILE}))],
            [call("j", "transfer_to_" + HOSTILE)],
            [
                {"type": "mcp_list_tools", "server_label": "x", "tools": [{"name": HOSTILE}], "error": "gone"},
                {"type": "shell_call_output", "call_id": "k", "output": [{"outcome": {"exit_code": HOSTILE}}]},
                {"type": "web_search_call", "action": {"type": "open_page", "url": address}},
            ],
        )
    )
    assert seen.words.count("onerror=alert(2)") > 5


def test_a_link_out_of_the_console_appears_after_a_click_that_shows_its_host() -> None:
    address = "https://evil.example:8443/login?next=https://bank.example"
    citation = {"type": "url_citation", "url": address, "title": "https://bank.example"}
    odd = [citation | {"url": url} for url in ("javascript:alert(1)", "data:text/html,x", "ftp://evil.example/")]
    text = {"type": "output_text", "text": f"See {address}", "annotations": [citation, *odd]}
    seen = shown([stored({"role": "assistant", "content": [text]})])
    outside = [(url, around) for url, around in seen.links if not url.startswith("/sessions/")]
    assert [url for url, _ in outside] == [address]
    assert "details" in outside[0][1], "a closed element that a click on its summary opens"
    assert "summary" not in outside[0][1]
    assert f"Opens evil.example:8443, outside of this console: {address}" in seen.words


def test_parts_beyond_a_page_are_on_the_page_of_the_item() -> None:
    many = SHOWN_PARTS * 2 + 5
    item = stored(user([{"type": "input_text", "text": f"part {number}."} for number in range(many)]))
    for first, before, after in (
        (0, None, SHOWN_PARTS),
        (SHOWN_PARTS, 0, 2 * SHOWN_PARTS),
        (2 * SHOWN_PARTS, 100, None),
    ):
        seen = shown([shortened(item, first)])
        numbers = [int(number) for number in re.findall(r"part (\d+)\.", seen.text)]
        assert numbers == list(range(many))[first : first + SHOWN_PARTS]
        onward = [url.partition("?part=")[2] for url, _ in seen.links if "?part=" in url]
        assert onward == [f"{place}#as-shown" for place in (before, after) if place is not None]


def test_a_hidden_item_is_offered_on_its_own() -> None:
    item = Masker(steps=5).item(stored(user("tea")))
    seen = shown([item])
    assert f"Load item {item.id}" in seen.words
    assert any(url.endswith(f"/items/{item.id}/") for url, _ in seen.links)
    assert "masked" not in seen.words
    alone = shown([item], is_alone=True)
    assert "Load item" not in alone.words
    assert "too long to check" in alone.words


def test_template_syntax_in_stored_text_is_not_run() -> None:
    assert "{{ record.pk }}{% now" in shown(session([user(HOSTILE)])).text


def test_unreadable_and_large_items_are_shown_safely() -> None:
    items = session([Raw(HOSTILE)], [user(HOSTILE * 9_000)])
    items[1] = in_part(items[1])
    seen = shown(items)
    assert "Not readable as JSON" in seen.words
    assert "Large item of" in seen.words


@given(sessions(raws))
@effort(max_examples=60, deadline=None)
def test_any_session_is_well_formed_and_has_each_item_once(items: list[StoredItem]) -> None:
    seen = shown(items)
    anchors = [anchor for anchor in seen.ids if anchor.startswith("item-")]
    assert sorted(anchors) == sorted(f"item-{item.id}" for item in items)


def test_conversation_as_a_reader_sees_it() -> None:
    to_billing, took_over = handoff("h", "Billing agent")
    seen = shown(
        session(
            [user("weather?")],
            [call("a", arguments='{"city":"Riga"}'), output("a", "18 C")],
            [to_billing, took_over],
            [assistant("It is 18 C.")],
        )
    )
    assert "Run 1" in seen.words
    assert "6 items, 3 turns" in seen.words
    assert 'get_weather (city: "Riga") ok' in seen.words
    assert "Output, item 3 18 C" in seen.words
    assert "Handoff to Billing agent" in seen.words
    assert "Billing agent 14:05:00" in seen.words


def test_runs_are_named_by_their_time_when_they_cannot_be_counted() -> None:
    seen = page(build_timeline(session([user("hi")]), starts_session=False, ends_session=True))
    assert seen.words.startswith("Tue 17 Nov 2026, 14:02 1 item")


def test_item_that_the_address_points_at_is_open_and_marked() -> None:
    items = session([user("hi")], [call("a"), output("a")])
    timeline = build_timeline(items, starts_session=True, ends_session=True)
    context = {"timeline": timeline, "record": RECORD}
    source = render_to_string("sessions/events.html", {**context, "target": "3"}, using="jinja2")
    assert 'class="tl-item found"' in source
    assert re.search(r'<details class="disc tool *" open>', source)
    assert "found" not in render_to_string("sessions/events.html", context, using="jinja2")


def test_searched_words_are_marked() -> None:
    items = session([user("no <b>voucher</b>")])
    timeline = build_timeline(items, starts_session=True, ends_session=True)
    source = render_to_string(
        "sessions/events.html",
        {"timeline": timeline, "record": RECORD, "highlight": re.compile("voucher|<b>")},
        using="jinja2",
    )
    assert "no <mark>&lt;b&gt;</mark><mark>voucher</mark>&lt;/b&gt;" in source


def test_compaction_encryption_and_findings_say_what_they_mean() -> None:
    seen = shown(session([user("hi"), COMPACTION], [ENVELOPE], [user("plain")]))
    assert "an opaque block of 11 bytes" in seen.words
    assert "The block may contain text from before this point" in seen.words
    assert "1 encrypted item" in seen.words
    assert "Only times and sizes are visible." in seen.words
    assert "Finding: plain text among encrypted items." in seen.words


def test_long_text_says_how_much_is_left_out_and_where_it_is() -> None:
    seen = shown(session([user("x" * 1_008_000)]))
    assert "1,000,000 more characters. Item 1 in full" in seen.words


def test_every_symbol_is_in_the_sprite() -> None:
    sprite = (Path(settings.ASSETS_DIR) / "static" / "icons.svg").read_text(encoding="utf-8")
    names = set(re.findall(r'id="([\w-]+)"', sprite))
    items = [item for example in EXAMPLES for item in session([example["item"]])]
    used: set[str] = set()
    for item in items:
        timeline = build_timeline([item], starts_session=True, ends_session=True)
        source = render_to_string("sessions/events.html", {"timeline": timeline, "record": RECORD}, using="jinja2")
        used |= set(re.findall(r'href="[^"]*icons[^"#]*#([\w-]+)"', html.unescape(source)))
    assert used
    assert used <= names


def test_the_same_words_in_json_and_in_html() -> None:
    value = {"note": HOSTILE}
    seen = shown(session([user("hi")], [call("a", arguments=json.dumps(value)), output("a")]))
    assert "onerror=alert(2)" in seen.text
