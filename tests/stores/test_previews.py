"""The first user text, from beginnings of items that may be anything."""

from __future__ import annotations

import json

from sessions_app.stores.base import PREVIEW_CHARACTERS, READ_AHEAD
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, preview_from
from tests.cases import for_each

LONG = "So many words. " * 500


def head_of(item: object) -> str:
    return json.dumps(item, separators=(",", ":"))[:PREVIEW_HEAD_CHARACTERS]


@for_each(
    ("item", "text"),
    [
        ({"role": "user", "content": "Where is my order?"}, "Where is my order?"),
        ({"content": "Where is my order?", "role": "user"}, "Where is my order?"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, "Hi"),
        (
            {"role": "user", "content": [{"type": "input_image"}, {"type": "input_text", "text": "see\n\t this"}]},
            "see this",
        ),
        ({"role": "user", "content": "Zoë 😀 " * 3}, "Zoë 😀 Zoë 😀 Zoë 😀"),
        ({"role": "user", "content": ""}, ""),
        ({"role": "user", "content": None}, ""),
        ({"role": "user", "content": {"text": "x"}}, ""),
        ({"role": "user", "content": [None, 1, {"type": "input_text", "text": 5}]}, ""),
        ({"role": "system", "content": "You are a bot"}, ""),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}, ""),
        ({"type": "function_call", "name": "look", "arguments": "{}"}, ""),
        (["user", "hello"], ""),
        ("hello", ""),
        (None, ""),
    ],
)
def test_only_what_a_user_said_is_shown(item: object, text: str) -> None:
    assert preview_from([head_of(item)], 1).first_user_text == text


def test_the_first_item_with_a_user_text_counts() -> None:
    heads = [head_of(item) for item in ({"role": "developer", "content": "Be kind"}, {"role": "user", "content": "Hi"})]
    assert preview_from(heads, 2).first_user_text == "Hi"


@for_each("item", [{"role": "user", "content": LONG}, {"content": LONG, "role": "user"}])
def test_of_a_long_text_a_little_more_is_read_than_is_shown(item: object) -> None:
    read = preview_from([head_of(item)], 1).first_user_text
    assert len(read) == PREVIEW_CHARACTERS + READ_AHEAD
    assert read.startswith("So many words. So many")


@for_each("cut", range(14))
def test_a_cut_inside_an_escape_is_no_harm(cut: int) -> None:
    text = "a" * (PREVIEW_HEAD_CHARACTERS - 17 - cut) + "\\ud83d\\ude00" + "b" * 50
    head = ('{"role":"user","content":"' + text)[:PREVIEW_HEAD_CHARACTERS]
    preview_from([head], 1).first_user_text.encode()


@for_each(
    "raw",
    [
        "",
        "{",
        "nonsense",
        '{"role":"user","content":"broken',
        "[" * 2000,
        '{"a":' * 400,
        '{"role":"user","content":"\\x"}',
    ],
)
def test_corrupt_items_are_passed_over(raw: str) -> None:
    assert preview_from([raw, head_of({"role": "user", "content": "Hi"})], 2).first_user_text == "Hi"


@for_each(
    "envelope",
    [
        '{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":"gAAAA' + "x" * 5000,
        '{"v": 1, "kid": "hkdf-v1", "__enc__": 1, "payload": "gAAAA"}',
    ],
)
def test_an_encrypted_session_is_recognised(envelope: str) -> None:
    preview = preview_from([envelope[:PREVIEW_HEAD_CHARACTERS]], 1)
    assert preview.is_encrypted
    assert preview.first_user_text == ""


def test_what_only_looks_like_an_envelope_encrypts_nothing() -> None:
    assert not preview_from([head_of({"__enc__": 1, "role": "user", "content": "Hi"})], 1).is_encrypted
