"""Fragments of a stored document: its messages, and other content that is in no message."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

from memadmin import times
from memadmin.json_spans import NotReadable, Part, elements, members, value_of, with_replaced, without
from sessions_app.stores.documents.adapter import Fragment
from sessions_app.stores.documents.json_edit import STRUCTURAL, words_in

MESSAGES = "messages"

BESIDE = 2**31
"""The first number of fragments that are not messages; a number stays the same as long as its member keeps its name."""


LONG = 64 * 1024
"""Length from which the fragments of a document are cached, because each page reads it again."""

REMEMBERED = 32
"""Number of long documents whose fragment offsets are cached, by the hash of the document; no text is kept."""

_remembered: OrderedDict[tuple[bytes, datetime | None], list[Fragment]] = OrderedDict()
_lock = threading.Lock()


def fragments_of_conversation(text: str, written_at: datetime | None) -> Iterator[Fragment]:
    """Fragments of an object with messages, without messages marked by the library as copies of earlier ones."""
    if len(text) < LONG:
        yield from _fragments(text, written_at)
        return
    key = hash_of(text), written_at
    with _lock:
        fragments = _remembered.pop(key, None)
    if fragments is None:
        fragments = _fragments(text, written_at)
    with _lock:
        _remembered[key] = fragments
        while len(_remembered) > REMEMBERED:
            _remembered.popitem(last=False)
    yield from fragments


def hash_of(text: str) -> bytes:
    """Hash of a text, computed in parts: encoding a long document at once would copy it."""
    hashed = blake2b(digest_size=32)
    for start in range(0, len(text), LONG):
        hashed.update(text[start : start + LONG].encode(errors="surrogatepass"))
    return hashed.digest()


def _fragments(text: str, written_at: datetime | None) -> list[Fragment]:
    try:
        top = members(text)
        messages = elements(text, top[MESSAGES].start) if MESSAGES in top else []
        beside = {name: part for name, part in top.items() if name != MESSAGES and name not in STRUCTURAL}
        # Saves half of the time of a long history.
        is_compared = any(text.find('"', *part) >= 0 for part in beside.values())
        said: list[str] = []
        shown: list[Fragment] = []
        for number, part in enumerate(messages):
            message = value_of(text[part.start : part.end])
            if isinstance(message, dict):
                if message.get("from_history") is True:
                    continue
                time = times.of_seconds(message["created_at"]) if message.get("created_at") else None
            else:
                time = None
            if is_compared:
                said += words_in(message)
            shown.append(Fragment(number, part, time or written_at, is_message=True))
        return [*shown, *_beside(text, beside, said, written_at)]
    except NotReadable:
        return [Fragment(0, Part(0, len(text)), written_at, is_message=False)]


def fragment_of_document(text: str, written_at: datetime | None) -> Iterator[Fragment]:
    """One fragment with the whole document, if it contains any text."""
    try:
        has_words = any(word.strip() for word in words_in(value_of(text)))
    except NotReadable:
        has_words = True
    if has_words:
        yield Fragment(0, Part(0, len(text)), written_at, is_message=False)


def conversation_without(text: str, gone: Sequence[Fragment]) -> str | None:
    """The object without some of its fragments; None if no message or other text remains in it."""
    numbers = {fragment.number for fragment in gone if fragment.number < BESIDE}
    for fragment in sorted(gone, key=lambda fragment: -fragment.part.start):
        if fragment.number >= BESIDE:
            text = with_replaced(text, fragment.part, "null")
    top = members(text)
    if numbers and MESSAGES in top:
        text = without(text, top[MESSAGES], numbers)
    return text if any(fragments_of_conversation(text, None)) else None


def said_by_users(documents: Iterable[str]) -> Iterator[str]:
    """Texts of user messages in some documents."""
    for text in documents:
        for fragment in fragments_of_conversation(text, None):
            message = value_of(text[fragment.part.start : fragment.part.end]) if fragment.is_message else None
            if isinstance(message, dict) and message.get("role") == "user":
                yield from words_in(message)


def _beside(text: str, beside: dict[str, Part], said: Sequence[str], written_at: datetime | None) -> list[Fragment]:
    whole_texts = set(said)

    @cache
    def known() -> str:
        return "\0".join(said)

    def is_new(word: str) -> bool:
        """Whether a text is in no message. Most are equal to a whole text, which is faster to check than a part."""
        return word not in whole_texts and bool(word.strip()) and word not in known()

    found = []
    for name, whole in beside.items():
        for place, part in enumerate(elements(text, whole.start) or [whole]):
            value: Any = value_of(text[part.start : part.end])
            if any(map(is_new, words_in(value))):
                number = BESIDE + (crc32(name.encode(errors="surrogatepass")) % 2**20) * 2**20 + place
                found.append(Fragment(number, part, written_at, is_message=False))
    return sorted(found, key=lambda fragment: fragment.number)
