"""Stored text is hostile: nothing of it may raise, hide, or stop a page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.timeline import Event, build_timeline, to_markdown
from sessions_app.timeline.blocks import SHOWN_CHARACTERS, TextBlock
from sessions_app.timeline.decode import NotJson, parse_json
from sessions_app.timeline.events import Message, ToolCall, UnreadableItem
from tests.cases import for_each
from tests.sessions.timeline.items import EXAMPLES, Raw, call, output, session, stored, user


def told(value: Any) -> Event:
    timeline = build_timeline([stored(value)], starts_session=True, ends_session=True)
    (event,) = timeline.events
    to_markdown(timeline).encode()
    return event


@for_each(
    ("raw", "problem"),
    [
        ("", "EOF"),
        ("{broken", "key must be a string"),
        ("[" * 10_000 + "]" * 10_000, "nested more than 200 levels deep"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "nested more than 200 levels deep"),
        ('{"type":"x","n":' + "9" * 10_000 + "}", "a number with thousands of digits"),
        ('{"role":"user","content":"half', "EOF"),
    ],
    ids=["empty", "broken", "deep lists", "deep objects", "long number", "cut off"],
)
def test_what_cannot_be_decoded_is_shown_raw_with_the_reason(raw: str, problem: str) -> None:
    event = told(Raw(raw))
    assert isinstance(event, UnreadableItem)
    assert problem in event.problem
    assert event.raw.full == raw


def test_deep_but_readable_nesting_is_shown() -> None:
    depth = 190
    assert told(Raw('{"type":"deep","x":' + "[" * depth + "]" * depth + "}")).kind == "note"


def test_lone_surrogates_and_control_characters_become_visible() -> None:
    event = told(Raw(r'{"role":"user","content":"a\ud800b\u0000c\ud83d\ude00d\\ud800e\bf\udc00"}'))
    assert isinstance(event, Message)
    assert event.body == (TextBlock("a\ufffdb\u2400c\U0001f600d\\ud800e\u2408f\ufffd"),)


def test_surrogates_in_front_of_a_pair_do_not_eat_it() -> None:
    assert parse_json(r'"\ud83d\ud83d\ude00"') == "\ufffd\U0001f600"
    assert parse_json(r'"\u0041\ud83d\ude00"') == "A\U0001f600"


def test_store_that_hands_out_lone_surrogates() -> None:
    assert told(Raw('{"role":"user","content":"\ud800"}')).kind == "message"
    assert told(Raw("\ud800\x00")).kind == "unreadable"


def test_json_inside_a_string_is_mended_too() -> None:
    (_, event) = build_timeline(
        session([user("go")], [call("a", arguments=r'{"x":"\ud800\u0000"}'), output("a")]),
        starts_session=True,
        ends_session=True,
    ).events
    assert event.detail == '(x: "\ufffd\u2400")'


def test_last_of_duplicate_keys_counts_as_for_the_agent() -> None:
    assert told(Raw('{"role":"user","content":"first","content":"last"}')).body == (TextBlock("last"),)


def test_numbers_that_json_does_not_have() -> None:
    assert told(Raw('{"type":"odd","a":NaN,"b":-Infinity,"c":1e999}')).kind == "note"


def test_long_text_is_whole_but_only_its_beginning_is_shown() -> None:
    event = told(user("x" * 1_000_000))
    (text,) = event.body
    assert isinstance(text, TextBlock)
    assert len(text.shown) == SHOWN_CHARACTERS
    assert text.left_out == 1_000_000 - SHOWN_CHARACTERS


def test_titles_stay_short_whatever_the_name() -> None:
    _, event = build_timeline(
        session(
            [user("go")], [call("a" * 1_000_000, "tool\n" * 1_000_000, json.dumps({"k" * 99_999: ["v"] * 99_999}))]
        ),
        starts_session=True,
        ends_session=True,
    ).events
    assert len(event.title) <= 200
    assert len(event.detail) <= 400
    assert "\n" not in event.title
    assert all(len(note) < 200 for note in event.notes)
    assert all(len(finding.sentence) < 400 for finding in event.findings)


WRONG_VALUES: list[Any] = [None, 5, 1.5, True, "x", "", [], {}, [None], [5, "x", {}], {"a": []}, [["x"]], {"type": 5}]


@for_each(
    "item",
    [example["item"] for example in EXAMPLES if isinstance(example["item"], dict)],
    ids=lambda item: item.get("type", "without a type"),
)
def test_members_of_a_wrong_type_never_raise(item: dict[str, Any]) -> None:
    for key in item:
        for wrong in WRONG_VALUES:
            told({**item, key: wrong})
        told({other: value for other, value in item.items() if other != key})


def test_ten_megabytes_in_one_item() -> None:
    event = told({**call("a"), "type": "function_call_output", "output": "y" * 10_000_000})
    assert isinstance(event, ToolCall)


def test_not_json_tells_why() -> None:
    with pytest.raises(NotJson, match="nested"):
        parse_json("[" * 300 + "]" * 300)
