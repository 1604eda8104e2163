"""Secrets in what an agent is about to store: passwords, keys, tokens, card numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from memadmin.values import keys, numbers, windows

MASKED = "[secret \N{BULLET}\N{BULLET}\N{BULLET}\N{BULLET}]"

NAMES_OF_OUTPUTS = ("arguments", "output")
"""Members of items whose text is JSON more often than not."""


class SecretRefused(Exception):
    """What was to be stored holds a secret. The message does not."""

    def __init__(self, count: int) -> None:
        super().__init__(f"What was to be stored holds {count} secret{'s' if count > 1 else ''}, and is refused.")
        self.count = count


def mask_item(item: Any) -> tuple[Any, int]:
    """The item with its secrets masked, and how many those were; the same object when there are none."""
    masked, count = _masked_value(item, "")
    return (masked, count) if count else (item, 0)


def mask_text(text: str) -> tuple[str, int]:
    found = sorted(_places(text))
    if not found:
        return text, 0
    pieces, place, count = [], 0, 0
    for start, end in found:
        if start >= place:
            pieces += [text[place:start], MASKED]
            count += 1
        place = max(place, end)
    return "".join(pieces) + text[place:], count


def _places(text: str) -> Iterator[tuple[int, int]]:
    for begin, window in windows(text):
        for start, end in keys.find(window):
            yield keys.whole_word(text, begin + start, begin + end)
        if numbers.may_have_any(window):
            for start, end in numbers.find_cards(window):
                yield begin + start, begin + end


def _masked_value(value: Any, name: str) -> tuple[Any, int]:
    match value:
        case str() if keys.is_secret_member(name, value):
            return MASKED, 1
        case str() if name in NAMES_OF_OUTPUTS and value[:1] in "{[":
            return _masked_json(value)
        case str():
            return mask_text(value)
        case list():
            members = [_masked_value(member, "") for member in value]
            return [member for member, _ in members], sum(count for _, count in members)
        case dict():
            pairs = {key: _masked_value(member, str(key)) for key, member in value.items()}
            return {key: member for key, (member, _) in pairs.items()}, sum(count for _, count in pairs.values())
    return value, 0


def _masked_json(text: str) -> tuple[str, int]:
    """Masked in its values, so that it stays JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        return mask_text(text)
    masked, count = _masked_value(value, "")
    return (json.dumps(masked, ensure_ascii=False), count) if count else (text, 0)
