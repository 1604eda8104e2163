"""Secrets said in plain words: found in messages, arguments of tools and memories, and texts about them left alone."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memadmin.client.secret_text import MASKED, mask_item
from memories_app.learning.risk_detection import risks_of
from tests.cases import for_each

TABLE = tomllib.loads((Path(__file__).parents[1] / "data" / "said-secrets.toml").read_text(encoding="utf-8"))


def texts(label: str) -> Iterator[str]:
    for language in TABLE.values():
        yield from (line.replace("\\n", "\n") for line in language[label].splitlines() if line)


@for_each("line", texts("secret"))
def test_a_secret_in_plain_words_is_masked_and_flagged(line: str) -> None:
    before, secret, after = line.split("|")
    text = before + secret + after
    for item in (
        {"role": "user", "content": text},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": before}, {"type": "input_text", "text": secret + after}],
        },
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": json.dumps({"note": text})},
    ):
        masked, _ = mask_item(item)
        stored = json.dumps(masked, ensure_ascii=False)
        assert MASKED in stored
        assert not any(word in stored.replace(json.dumps(before)[1:-1], "") for word in secret.split() if len(word) > 3)
        assert mask_item(masked) == (masked, 0)
    assert "secret" in {risk.flag for risk in risks_of(text)}


@for_each("text", texts("harmless"))
def test_a_text_about_secrets_is_left_alone(text: str) -> None:
    item = {"role": "user", "content": text}
    assert mask_item(item) == (item, 0)
    assert "secret" not in {risk.flag for risk in risks_of(text)}


@for_each(
    "member",
    [
        {"passwort": "Regenbogen"},
        {"mot_de_passe": "pluie"},
        {"パスワード": "niji"},
        {"accessCode": "8812"},
        {"door-code": 8812},
        {"pin": 8812},
        {"recovery_codes": ["AB12-CD34", 88121234]},
    ],
)
def test_a_member_named_like_a_secret_is_masked(member: dict[str, Any]) -> None:
    """Also numbers, and each value of a list."""
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": json.dumps({"in": member})}
    [[masked]] = [json.loads(mask_item(call)[0]["arguments"])["in"].values()]
    assert masked in (MASKED, [MASKED, MASKED])


@for_each(
    "member", [{"clave": "color"}, {"pin_board": "8812"}, {"is_pin": True}, {"zip_code": 94103}, {"max_tokens": 4096}]
)
def test_a_member_named_otherwise_stays(member: dict[str, Any]) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": json.dumps(member)}
    assert mask_item(call) == (call, 0)
