"""Readers of decoded JSON of unknown types: each function returns a usable value, whatever was stored."""

from __future__ import annotations

import json
from collections.abc import Mapping

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
