"""Stored texts as no SDK writes them: items with other types, nulls, lists for texts, too many levels, half characters,
numbers without end, and members that occur twice.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.sessions.timeline.items import EXAMPLES

LEVELS = 2_000
"""More than a decoder takes; the members below have fewer, and are still too many for a recursive function."""

WRITTEN = {
    '"(deep)"': "[" * LEVELS + "]" * LEVELS,
    '"(deep object)"': '{"a":' * LEVELS + "1" + "}" * LEVELS,
    '"(decodable)"': "[" * 600 + '"x"' + "]" * 600,
    '"(levels)"': "[" * 150 + '"x"' + "]" * 150,
    '"(digits)"': "9" * 5_000,
    '"(fewer digits)"': "9" * 4_000,
    '"(infinite)"': "1e999",
    '"(no number)"': "NaN",
    '"(half)"': '"\\ud800 \\udc00\\ud83d"',
    '"(nul)"': '"\\u0000"',
}
"""Values that Python's encoder does not write, by their placeholders."""


def json_in_json(depth: int, levels: int = 190) -> str:
    """Text of JSON with many levels, in the innermost of which is a text of JSON, and so on."""
    text = "x"
    for _ in range(depth):
        text = "[" * levels + json.dumps(text) + "]" * levels
    return text


KNOWN = [
    '{"role":"user","content":[{"type":["input_text"],"text":"x"}]}',
    '{"role":["user"],"type":{"a":1},"content":[{"type":{},"text":[]}]}',
    '{"type":["compaction"],"content":"x"}',
    '{"role":"user","content":"x","content":""}',
    json.dumps({"role": "user", "content": json_in_json(6)}),
    json.dumps({"type": "function_call", "call_id": "c", "name": "f", "arguments": json_in_json(6)}),
    *('{"role":"user","content":' + "[" * levels + '"x"' + "]" * levels + "}" for levels in (450, 850)),
    '{"role":"user","content":' + "[" * LEVELS + '"x"' + "]" * LEVELS + "}",
    '{"role":"user","created_at":' + "[" * 850 + "]" * 850 + ',"content":"x"}',
    '{"results":[' * 400 + "]}" * 400,
    "9" * 4_000,
    '{"__enc__":1,"v":[],"kid":{},"payload":["gAAAAA"]}',
    '"x"',
    "[]",
    "1",
    "",
    "\ud800",
]

ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**20, "", "x", "{}", '[{"type":["text"]}]', "input_text", "message"),
    *([], {}, [[]], [None], ["input_text"], {"type": ["text"]}, [{"type": {"a": 1}}], {"": ""}, {"type": None}),
    *(placeholder[1:-1] for placeholder in WRITTEN),
]


@st.composite
def odd_items(draw: st.DrawFn) -> str:
    """Text of an item that the SDK can store, with up to four values in it replaced, at any depth."""
    item = json.loads(json.dumps(draw(st.sampled_from(EXAMPLES))["item"]))
    for _ in range(draw(st.integers(1, 4))):
        spot = item
        while isinstance(spot, dict | list) and spot:
            key = draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else list(range(len(spot)))))
            if not isinstance(spot[key], dict | list) or not draw(st.integers(0, 2)):
                # A copy: the next value may go into it.
                spot[key] = deepcopy(draw(st.sampled_from(ODD)))
                break
            spot = spot[key]
    return draw(spelled(json.dumps(item, separators=(",", ":"))))


@st.composite
def spelled(draw: st.DrawFn, text: str) -> str:
    """The text with the values that an encoder does not write, perhaps with a member twice, or cut off."""
    for placeholder, written in WRITTEN.items():
        text = text.replace(placeholder, written)
    match draw(st.integers(0, 9)):
        case 0:
            return text[: draw(st.integers(0, min(len(text), 400)))]
        case 1:
            return text.replace('{"', '{"content":["twice"],"type":["twice"],"', 1)
    return text
