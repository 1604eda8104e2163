"""Shortened items: eight times the item is the same work, and masks the same values as the whole item."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from memadmin.values.shortened import ShortText, left_out_of
from memadmin.web.masking import find_values
from sessions_app import masking
from sessions_app.items import StoredItem
from sessions_app.masking import ItemView, Masker
from sessions_app.redaction import TextToRedact, without_text
from sessions_app.timeline import build_timeline, shortening
from sessions_app.timeline.blocks import SHOWN_CHARACTERS, SHOWN_PARTS, TextBlock
from sessions_app.timeline.events import Event, Reasoning, ToolCall, ToolState, UnreadableItem
from sessions_app.timeline.shortening import ITEM_CHARACTERS, shortened
from tests.cases import for_each
from tests.sessions.timeline.items import output, stored, user

pytestmark = pytest.mark.slow

FILLER = "Where is my order? "
ASKED: dict[str, Any] = {"function": {"name": "pay", "arguments": json.dumps({f"key {i:06}": "v" for i in range(300)})}}
CITED = {"type": "url_citation", "url": "https://a.example/one", "title": "one"}
RAN: dict[str, Any] = {"stdout": "done", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}

LONG: dict[str, tuple[int, Callable[[int], Any]]] = {
    "parts": (3_000, lambda n: user([{"type": "input_text", "text": f"p {i:06}"} for i in range(n)])),
    "strings as parts": (12_000, lambda n: user([f"p {i:06}" for i in range(n)])),
    "long parts": (20, lambda n: user([{"type": "input_text", "text": FILLER * 500} for _ in range(n * 4)])),
    "one line": (200_000, lambda n: output("c", "tea " * (n // 4))),
    "lines": (60_000, lambda n: output("c", "x\n" * n)),
    "members": (8_000, lambda n: {"type": "unheard_of"} | {f"key {i:06}": "v" for i in range(n)}),
    "members inside": (8_000, lambda n: {"type": "unheard_of", "k": {f"key {i:06}": "v" for i in range(n)}}),
    "JSON in a text": (6_000, lambda n: output("c", json.dumps({f"key {i:06}": "v" for i in range(n)}))),
    "short JSON in texts": (200, lambda n: {"role": "assistant", "tool_calls": [ASKED] * n}),
    "numbers": (50_000, lambda n: {"type": "unheard_of", "k": [1_000_000 + i for i in range(n)]}),
    "annotations": (
        2_500,
        lambda n: {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "tea", "annotations": [CITED] * n}],
        },
    ),
    "summaries": (
        3_000,
        lambda n: {"type": "reasoning", "summary": [{"type": "summary_text", "text": f"s {i:06}"} for i in range(n)]},
    ),
    "e-mails": (6_000, lambda n: user(" ".join(f"anna{i:06}@example.com" for i in range(n)))),
    "e-mails in parts": (6_000, lambda n: user([f"anna{i:06}@example.com" for i in range(n)])),
    "phones": (10_000, lambda n: user(" ".join(f"+49 30 {1_000_000 + i}" for i in range(n)))),
    "tools": (6_000, lambda n: {"type": "mcp_list_tools", "tools": [{"name": f"tool {i:06}"} for i in range(n)]}),
    "commands": (2_000, lambda n: {"type": "shell_call_output", "call_id": "c", "output": [RAN] * n}),
    "searches": (8_000, lambda n: {"type": "file_search_call", "queries": ["tea"], "results": [{"text": "tea"}] * n}),
    "sources": (4_000, lambda n: {"type": "web_search_call", "action": {"type": "search", "sources": [CITED] * n}}),
    "levels": (60_000, lambda n: f'{{"role": "user", "content": {"[" * n}{"]" * n}}}'),
    "no JSON": (120_000, lambda n: "tea " * n),
}
"""A number just above what a page shows, and an item of so many parts."""


def item_of(value: Any) -> StoredItem:
    if not isinstance(value, str):
        return stored(value)
    return replace(stored({}), raw=value, byte_count=len(value))


def event_of(item: StoredItem) -> Event:
    (event,) = build_timeline([item], starts_session=False, ends_session=False).events
    return event


def values_in(value: object) -> Iterator[object]:
    yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values_in(member)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of characters of each text that is searched for values to mask."""
    lengths: list[int] = []

    def counted(text: str, **options: Any) -> Any:
        lengths.append(len(text))
        return find_values(text, **options)

    monkeypatch.setattr(masking, "find_values", counted)
    return lengths


def work_for(item: StoredItem, searched: list[int]) -> dict[str, int]:
    """Numbers of searches, masks, blocks, values and characters for the page of an item."""
    searched.clear()
    view = ItemView.masked(item)
    event = event_of(view.item)
    blocks = (*event.body, *(event.output if isinstance(event, ToolCall) else ()))
    return {
        "characters searched for values": sum(searched),
        "searches": len(searched),
        "masks": view.item.masked_count,
        "blocks": len(blocks),
        "JSON values": sum(1 for _ in values_in(view.item.shown and view.item.shown.value)),
        "characters of the part": len(view.item.raw),
        "characters as stored": len(view.raw),
    }


@for_each("what", LONG)
def test_eight_times_an_item_is_the_same_work(what: str, searched: list[int]) -> None:
    number, build = LONG[what]
    once, often = (work_for(item_of(build(times * number)), searched) for times in (1, 8))
    assert once == often
    assert once["characters searched for values"] <= 2 * ITEM_CHARACTERS


@for_each("what", LONG)
def test_a_session_page_does_the_same_work_for_eight_times_an_item(what: str, searched: list[int]) -> None:
    number, build = LONG[what]
    done = []
    for times in (1, 8):
        searched.clear()
        item = Masker().shown_item(item_of(build(times * number)))
        done.append((sum(searched), len(item.raw), len(event_of(item).body)))
    assert done[0] == done[1]


def test_without_shortening_the_work_grows(searched: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "shortened", lambda stored, first_part=0: stored)
    number, build = LONG["parts"]
    once, often = (work_for(item_of(build(times * number)), searched) for times in (1, 8))
    assert often["blocks"] == 8 * once["blocks"]


# --- what is masked stays masked --------------------------------------------------------------------------------------

SECRETS = (
    *("4242 4242 4242 4242", "anna.with.a.long.name@mail.example.com", "+49 30 901820", "DE89 3704 0044 0532 0130 00"),
    *("ghp_" + "a1B2" * 9, "my password is correct horse battery staple", 'password = "Tr0ub4dor and 3"'),
    "eyJ" + "hbGci" * 100 + "." + "eyJzd" * 60 + "." + "c2ln" * 10,
    "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIB\n" * 120 + "-----END RSA PRIVATE KEY-----",
    "Authorization: Bearer " + "a1B2c3D4" * 8,
)

LABELS = ("password", "Authorization:")


def around_the_cut(secret: str) -> Iterator[str]:
    """Texts in which the secret is around the end of what a page shows of a text."""
    for before in range(-len(secret) - 2, 3, max(len(secret) // 12, 1)):
        padding = FILLER * 1_000
        yield f"{padding[: SHOWN_CHARACTERS + before]} {secret} {FILLER * 2_000}"


def assert_begins_like_the_whole(text: str) -> None:
    """The shown beginning of a text is the beginning of the whole text, masked."""
    item = Masker.of_one_item().shown_item(stored(user(text)))
    (block,) = event_of(item).body
    assert isinstance(block, TextBlock)
    whole = json.loads(Masker.of_one_item().item(stored(user(text))).raw)["content"]
    assert whole.startswith(block.full)
    assert whole.startswith(block.shown)


@for_each("secret", SECRETS)
def test_no_cut_shows_a_part_of_a_value_that_the_whole_text_masks(secret: str) -> None:
    for text in around_the_cut(secret):
        assert_begins_like_the_whole(text)


def test_a_cut_without_a_margin_would_show_such_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortening, "MARGIN", 0)
    shown = 0
    for secret in SECRETS:
        for text in around_the_cut(secret):
            try:
                assert_begins_like_the_whole(text)
            except AssertionError:
                shown += 1
    assert shown > len(SECRETS)


def test_masks_that_shorten_a_text_do_not_bring_its_margin_into_view() -> None:
    secret = SECRETS[7]
    text = f"{secret} " * (SHOWN_CHARACTERS // len(secret) + 1)
    for before in range(0, len(secret), 40):
        assert_begins_like_the_whole(f"{'x' * before} {text}{FILLER * 2_000}")


def test_no_cut_of_the_stored_text_shows_a_part_of_a_value() -> None:
    for secret in SECRETS:
        words = [word for word in secret.split() if len(word) > 8 and word not in LABELS]
        for before in range(-len(secret) - 2, 3, max(len(secret) // 6, 1)):
            padding = (FILLER * 10_000)[: masking.RAW_CHARACTERS + before]
            view = ItemView.masked(stored(user(f"{padding} {secret} {FILLER * 2_000}")))
            assert view.is_cut
            for word in words:
                assert word[:8] not in view.raw, (secret[:20], before)


def test_members_of_json_in_a_text_are_masked_by_their_names_also_in_a_part() -> None:
    inside = {f"key {i:06}": {"pin": f"{i:06}", "note": "tea"} for i in range(3_000)}
    for value in (output("c", json.dumps(inside)), output("c", [{"type": "input_text", "text": json.dumps(inside)}])):
        view = ItemView.masked(stored(value))
        assert view.item.shown
        assert view.item.masked_count > 100
        for text in (view.item.raw, view.raw):
            assert "[key ••••]" in text
            assert '"pin":"0' not in text.replace("\\", "")


def test_a_name_makes_its_whole_text_a_secret_also_in_a_part() -> None:
    item = Masker.of_one_item().shown_item(stored({"type": "unheard_of", "api_key": "a" * 50_000, "k": [1] * 9_000}))
    assert "aaaa" not in item.raw
    assert item.masked_count == 1


# --- nothing vanishes silently ----------------------------------------------------------------------------------------


@for_each("length", [5, 8_000])
def test_all_parts_are_reached_from_part_to_part(length: int) -> None:
    many, first, seen = 3 * SHOWN_PARTS + 5, 0, list[str]()
    item = stored(user([{"type": "input_text", "text": f"{number:03} ".ljust(length, "x")} for number in range(many)]))
    while True:
        part = shortened(item, first)
        body = event_of(part).body
        seen += [block.full[:3] for block in body if isinstance(block, TextBlock)]
        assert part.shown
        assert part.shown.more_parts == many - len(seen)
        if not part.shown.more_parts:
            break
        first = part.shown.next_part
    assert seen == [f"{number:03}" for number in range(many)]


def test_a_part_behind_the_end_shows_the_last_parts() -> None:
    item = shortened(stored(user([f"{number:03}" for number in range(250)])), 9_999)
    assert [block.full for block in event_of(item).body if isinstance(block, TextBlock)][-1] == "249"


def test_counts_are_those_of_the_whole_item() -> None:
    reasoning = event_of(shortened(stored(LONG["summaries"][1](3_000))))
    assert isinstance(reasoning, Reasoning)
    assert reasoning.detail == "3000 summaries"
    found = event_of(shortened(stored({"type": "tool_search_output", "tools": [{"name": "tea"}] * 500})))
    assert isinstance(found, ToolCall)
    assert found.notes == ("500 loaded",)
    text = event_of(shortened(stored(user("tea " * 50_000)))).body[0]
    assert isinstance(text, TextBlock)
    assert (len(text.shown), text.left_out) == (SHOWN_CHARACTERS, 200_000 - SHOWN_CHARACTERS)
    unreadable = event_of(shortened(item_of("tea " * 50_000)))
    assert isinstance(unreadable, UnreadableItem)
    assert unreadable.raw.left_out == 200_000 - SHOWN_CHARACTERS


def test_commands_are_not_called_successful_where_one_that_is_not_shown_may_have_failed() -> None:
    failed = RAN | {"outcome": {"type": "exit", "exit_code": 1}}
    item = stored({"type": "shell_call_output", "call_id": "c", "output": [*[RAN] * 200, failed]})
    states = []
    for first in (0, 100, 200):
        event = event_of(shortened(item, first))
        assert isinstance(event, ToolCall)
        (block, *_) = event.output
        assert isinstance(block, TextBlock)
        states.append((event.badges[0], block.label))
    assert states == [
        (ToolState.PARTLY_SHOWN.value, "Command 1, exit 0, stdout"),
        (ToolState.PARTLY_SHOWN.value, "Command 101, exit 0, stdout"),
        (ToolState.FAILED.value, "Command 201, exit 1, stdout"),
    ]


def test_members_that_identify_an_item_are_kept_wherever_they_are() -> None:
    fields = {f"key {i:06}": "v" * 900 for i in range(5_000)}
    item = shortened(
        stored({"output": ["tea " * 5_000] * 200} | fields | {"call_id": "c", "type": "function_call_output"})
    )
    event = event_of(item)
    assert isinstance(event, ToolCall)
    assert event.detail == "c"


def test_pictures_are_whole_and_large_ones_have_their_size() -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" + "A" * 40_000
    for address, kind in ((f"data:image/png;base64,{png}", "picture"), (f"data:image/png;x=y;base64,{png}", "picture")):
        item = Masker.of_one_item().shown_item(
            stored(user([{"type": "input_image", "image_url": address}, "x" * 9_000]))
        )
        assert event_of(item).body[0].kind == kind
    large = {"type": "input_image", "image_url": f"data:image/png;base64,{'A' * 1_000_000}"}
    (block, *_) = event_of(shortened(stored(user([large])))).body
    assert block.detail == "750,000 bytes, too large to show here"  # type: ignore[union-attr]


def test_an_ordinary_item_is_not_touched() -> None:
    item = stored(user([{"type": "input_text", "text": FILLER * 100} for _ in range(50)]))
    assert shortened(item) is item
    assert Masker().shown_item(item) is item


def test_a_redaction_reaches_what_no_page_shows() -> None:
    item = stored(LONG["parts"][1](20_000))
    assert "p 019999" not in ItemView.masked(item).raw
    redacted = without_text(item.raw, TextToRedact.parse("p 019999"))
    assert redacted.places == 1
    assert "p 019999" not in redacted.raw
    marked = shortened(replace(item, raw=redacted.raw))
    assert any(badge.word == "redacted" for badge in event_of(marked).badges)


def test_short_texts_know_their_rest() -> None:
    assert left_out_of(ShortText("tea", 4, 3)) == 4
    assert left_out_of("tea") == 0
