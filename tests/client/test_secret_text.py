"""Where secrets stand in items of the SDK, and what is no secret although it looks like one."""

from __future__ import annotations

import json
from typing import Any

from memadmin.client.secret_text import MASKED, mask_item
from tests.cases import for_each

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
CARD = "4111-1111-1111-1111"
NAMED = json.dumps({"password": "correct-horse", "order": "SO-20417"})


def output(value: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "call_1", "output": value}


def said(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


@for_each(
    "item",
    [
        {"role": "user", "content": f"Keys: {TOKEN}, {CARD}."},
        said(f"My key is {TOKEN}"),
        said("Keys: ", TOKEN[:9], TOKEN[9:30], TOKEN[30:] + " and " + CARD[:7], CARD[7:]),
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": json.dumps({"body": NAMED})},
        output(NAMED),
        output(f"  {NAMED}"),
        output(str(json.loads(NAMED))),
        output([{"type": "input_text", "text": NAMED}]),
        output(json.dumps({"answer": json.dumps([NAMED])})),
        output("[" * 100_000 + TOKEN),
        output("password: correct-horse\nuser: ada"),
        {"type": "mcp_call", "id": "m", "name": "x", "server_label": "s", "arguments": "{}", "output": NAMED},
        output(CARD.replace("-", "\t") + " and npm_" + "a1" * 18),
        output(f"{CARD}{'a1B2' * 600}"),
        output(f"{TOKEN[:9]}\u200b{TOKEN[9:]}"),
        {"type": "shell_call", "call_id": "call_1", "action": {"commands": [f"export TOKEN={TOKEN}"]}},
    ],
)
def test_secret_is_masked_wherever_it_stands(item: dict[str, Any]) -> None:
    masked, count = mask_item(item)
    text = json.dumps(masked, ensure_ascii=False)
    assert count
    assert MASKED in text
    for secret in (TOKEN, TOKEN[30:], CARD, CARD[:7], "correct-horse"):
        assert secret not in text
    assert masked.keys() == item.keys()


@for_each(
    "item",
    [
        {"type": "function_call", "call_id": "call_4111111111111111", "id": "fc_4111111111111111", "arguments": "{}"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"{TOKEN}4111111111111111"},
        {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{TOKEN}"}]},
        {"role": "user", "content": [{"type": "input_file", "file_id": TOKEN}]},
        output("a1B2" * 600),
        said("nothing ", "secret ", "here"),
    ],
)
def test_what_must_stay_stays(item: dict[str, Any]) -> None:
    """An id that was masked would part a call from its output, and a file would be none."""
    masked, count = mask_item(item)
    assert (masked, count) == (item, 0)
    assert masked is item
