"""Detection of secrets before an agent stores a text: passwords, keys, tokens, card numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

from memadmin.values import keys, numbers, windows
from memadmin.values.rewriting import without_invisible

MASKED = "[secret \N{BULLET}\N{BULLET}\N{BULLET}\N{BULLET}]"

IDS = ("id", "type", "role", "status", "encrypted_content")

FILE = re.compile(r"\Adata:[^,]{0,200},")
OPAQUE = re.compile(r"\A[A-Za-z0-9+/_=-]{2000,}+\Z")
"""Long runs of binary data: keys are shorter, and in other positions a key is a coincidence. A card number is not."""


class SecretRefused(Exception):
    """The text to store contains a secret. The message does not."""

    def __init__(self, count: int) -> None:
        super().__init__(f"The text contains {count} secret{'s' if count > 1 else ''} and is refused.")
        self.count = count


def mask_item(item: Any) -> tuple[Any, int]:
    """The item with its secrets masked, and their number; the same object when there are none.

    Ids that pair calls with outputs stay, and so do files and encrypted parts of a provider. Texts of one
    item are read together: a key may begin in one of its parts and end in the next.
    """
    whole, split_count = _without_split(item)
    masked, count = _masked_member(whole, "")
    return (masked, count + split_count) if count + split_count else (item, 0)


def mask_text(text: str) -> tuple[str, int]:
    return _with_masks(text, _places(text))


def _with_masks(text: str, places: Iterable[tuple[int, int]]) -> tuple[str, int]:
    found = _apart(places)
    pieces, place = [], 0
    for start, end in found:
        pieces += [text[place:start], MASKED]
        place = end
    return "".join(pieces) + text[place:] if found else text, len(found)


def _apart(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The positions in order, overlapping ones merged."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def _places(text: str) -> Iterator[tuple[int, int]]:
    yield from _places_in(text)
    if visible := without_invisible(text):
        yield from (visible.in_original(start, end) for start, end in _places_in(visible.text))


def _places_in(text: str) -> Iterator[tuple[int, int]]:
    key_places: list[tuple[int, int]] = []
    for begin, window in windows(text):
        key_places += ((begin + start, begin + end) for start, end in keys.find(window))
    yield from keys.whole_words(text, key_places)
    yield from _cards_in(text)


def _cards_in(text: str) -> Iterator[tuple[int, int]]:
    for begin, window in windows(text):
        for start, end in numbers.find_cards(window, numbers.runs_of_digits(window)):
            yield begin + start, begin + end
        for start, end in numbers.find_grouped_cards(window):
            yield begin + start, begin + end


def _masked_member(value: Any, name: str) -> tuple[Any, int]:
    """Texts of the item itself, whose names are the SDK's."""
    match value:
        case str() if name in IDS or name.endswith("_id") or FILE.match(value):
            return value, 0
        case str() if OPAQUE.match(value):
            return _with_masks(value, _cards_in(value))
        case list() | dict():
            return _masked_within(value, name, _masked_member)
    return _masked_value(value, name)


def _masked_value(value: Any, name: str) -> tuple[Any, int]:
    """Texts of an agent or its tools, where a name may reveal a secret."""
    match value:
        case str() if keys.is_secret_member(name, value):
            return MASKED, 1
        case str() if value.lstrip()[:1] in ("{", "["):
            return _masked_json(value)
        case str():
            return mask_text(value)
        case int() if not isinstance(value, bool) and keys.is_secret_member(name, str(value)):
            return MASKED, 1
        case list() | dict():
            return _masked_within(value, name, _masked_value)
    return value, 0


def _masked_within(value: Any, name: str, masked: Callable[[Any, str], tuple[Any, int]]) -> tuple[Any, int]:
    if isinstance(value, list):
        members = [masked(member, name) for member in value]
        return [member for member, _ in members], sum(count for _, count in members)
    pairs = {key: masked(member, str(key)) for key, member in value.items()}
    return {key: member for key, (member, _) in pairs.items()}, sum(count for _, count in pairs.values())


def _without_split(item: Any) -> tuple[Any, int]:
    """The item with secrets masked that extend over several of its parts; the mask is in the first of them."""
    name = next((name for name in ("content", "output") if isinstance(item, dict) and _are_parts(item.get(name))), "")
    if not name:
        return item, 0
    count = 0
    texts = [part["text"] for part in item[name]]
    borders = list(accumulate(map(len, texts), initial=0))
    # A name may end one part, and its value be the next. What a part alone contains is masked there, as JSON if it is.
    alone = {
        (begin + start, begin + end)
        for text, begin in zip(texts, borders, strict=False)
        for start, end in _apart(_places(text))
    }
    for start, end in reversed(_apart(_places("".join(texts)))):
        within = [index for index in range(len(texts)) if borders[index] < end and start < borders[index + 1]]
        if len(within) < 2 and (start, end) in alone:
            continue
        count += 1
        for index in within:
            begin, stop = max(start - borders[index], 0), max(end - borders[index], 0)
            mask = MASKED if index == within[0] else ""
            texts[index] = texts[index][:begin] + mask + texts[index][stop:]
    return {**item, name: [{**part, "text": text} for part, text in zip(item[name], texts, strict=True)]}, count


def _are_parts(content: Any) -> bool:
    return (
        isinstance(content, list)
        and len(content) > 1
        and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content)
    )


def _masked_json(text: str) -> tuple[str, int]:
    """Masked in its values, so that it stays JSON."""
    try:
        masked, count = _masked_value(json.loads(text), "")
    except (ValueError, RecursionError):
        return mask_text(text)
    return (json.dumps(masked, ensure_ascii=False), count) if count else (text, 0)
