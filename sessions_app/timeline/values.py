"""Readers of decoded JSON of unknown types: each function returns a usable value, whatever was stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

Fields = Mapping[str, object]
"""A JSON object whose members may have any type."""

LINE_CHARACTERS = 200

AS_JSON = json.JSONEncoder(ensure_ascii=False)


def text_in(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def list_in(fields: Fields, key: str) -> list[object]:
    value = fields.get(key)
    return value if isinstance(value, list) else []


def fields_in(fields: Fields, key: str) -> Fields:
    return as_fields(fields.get(key))


def as_fields(value: object) -> Fields:
    return value if isinstance(value, dict) else {}


def one_line(value: object, limit: int = LINE_CHARACTERS) -> str:
    """Any value as one line for a title; a long one is truncated with an ellipsis, and never read to its end."""
    text = value if isinstance(value, str) else compact_json(value, limit)
    words = " ".join(text[: 4 * limit].split())
    return words if len(words) <= limit and len(text) <= 4 * limit else f"{words[: limit - 1]}…"


def joined(values: list[object], limit: int = LINE_CHARACTERS) -> str:
    return one_line(", ".join(one_line(value, limit) for value in values[:20]), limit)


def compact_json(value: object, limit: int) -> str:
    """The beginning of a value as JSON, a little more than `limit` characters if it is longer."""
    if not isinstance(value, dict | list):
        return AS_JSON.encode(value)
    pieces: list[str] = []
    length = 0
    for piece in AS_JSON.iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            break
    return "".join(pieces)


def pretty_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def length(time: timedelta) -> str:
    """A positive length of time in words: "412 ms", "1.2 s", "30 s", "5 min", "2.5 h"."""
    seconds = time.total_seconds()
    if seconds < 1:
        return f"{max(1, round(seconds * 1000))} ms"
    size, unit = (1, "s") if seconds < 60 else (60, "min") if seconds < 3600 else (3600, "h")
    number = f"{seconds / size:,.1f}".removesuffix(".0")
    return f"{number} {unit}"
