"""Cutting items out of a stored document: its messages, and what it keeps beside them that no message says."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

from sessions_app.stores.documents.database import instant
from sessions_app.stores.documents.json_text import (
    STRUCTURAL,
    NotReadable,
    Part,
    elements,
    members,
    value_of,
    with_replaced,
    without,
    words_in,
)
from sessions_app.stores.documents.shelf import Piece

MESSAGES = "messages"

BESIDE = 2**31
"""From this number on pieces are no messages; each has the same one as long as its member has its name."""


LONG = 64 * 1024
"""A document of so many characters takes long to go through, and is read again for each page."""

REMEMBERED = 32
"""Of how many long documents it is remembered where their pieces are: by what they hash to, and nothing they say."""

_remembered: OrderedDict[tuple[bytes, datetime | None], list[Piece]] = OrderedDict()
_lock = threading.Lock()


def pieces_of_conversation(text: str, written_at: datetime | None) -> Iterator[Piece]:
    """Of an object with messages. A message that the library itself calls a copy of an earlier one is none."""
    if len(text) < LONG:
        yield from _pieces(text, written_at)
        return
    key = hash_of(text), written_at
    with _lock:
        pieces = _remembered.pop(key, None)
    if pieces is None:
        pieces = _pieces(text, written_at)
    with _lock:
        _remembered[key] = pieces
        while len(_remembered) > REMEMBERED:
            _remembered.popitem(last=False)
    yield from pieces


def hash_of(text: str) -> bytes:
    """A stretch at a time: of a long document one more copy would be as long."""
    hashed = blake2b(digest_size=32)
    for start in range(0, len(text), LONG):
        hashed.update(text[start : start + LONG].encode(errors="surrogatepass"))
    return hashed.digest()


def _pieces(text: str, written_at: datetime | None) -> list[Piece]:
    try:
        top = members(text)
        messages = elements(text, top[MESSAGES].start) if MESSAGES in top else []
        beside = {name: part for name, part in top.items() if name != MESSAGES and name not in STRUCTURAL}
        # Of a long history that is half of what it takes to look through it.
        is_compared = any(text.find('"', *part) >= 0 for part in beside.values())
        said: list[str] = []
        shown: list[Piece] = []
        for number, part in enumerate(messages):
            message = value_of(text[part.start : part.end])
            if isinstance(message, dict):
                if message.get("from_history") is True:
                    continue
                time = instant(message["created_at"]) if message.get("created_at") else None
            else:
                time = None
            if is_compared:
                said += words_in(message)
            shown.append(Piece(number, part, time or written_at, is_said=True))
        return [*shown, *_beside(text, beside, said, written_at)]
    except NotReadable:
        return [Piece(0, Part(0, len(text)), written_at, is_said=False)]


def piece_of_document(text: str, written_at: datetime | None) -> Iterator[Piece]:
    """All of it, if anybody said anything in it."""
    try:
        has_words = any(word.strip() for word in words_in(value_of(text)))
    except NotReadable:
        has_words = True
    if has_words:
        yield Piece(0, Part(0, len(text)), written_at, is_said=False)


def conversation_without(text: str, gone: Sequence[Piece]) -> str | None:
    """The object without some of its pieces; None where nothing that anybody said is left in it."""
    numbers = {piece.number for piece in gone if piece.number < BESIDE}
    for piece in sorted(gone, key=lambda piece: -piece.part.start):
        if piece.number >= BESIDE:
            text = with_replaced(text, piece.part, "null")
    top = members(text)
    if numbers and MESSAGES in top:
        text = without(text, top[MESSAGES], numbers)
    return text if any(pieces_of_conversation(text, None)) else None


def said_by_users(documents: Iterable[str]) -> Iterator[str]:
    """What the messages of users say in some documents with messages."""
    for text in documents:
        for piece in pieces_of_conversation(text, None):
            message = value_of(text[piece.part.start : piece.part.end]) if piece.is_said else None
            if isinstance(message, dict) and message.get("role") == "user":
                yield from words_in(message)


def _beside(text: str, beside: dict[str, Part], said: Sequence[str], written_at: datetime | None) -> list[Piece]:
    whole_texts = set(said)

    @cache
    def known() -> str:
        return "\0".join(said)

    def is_new(word: str) -> bool:
        """Most words are all of a text that was said; to look whether they are a part of one takes long."""
        return word not in whole_texts and bool(word.strip()) and word not in known()

    found = []
    for name, whole in beside.items():
        for place, part in enumerate(elements(text, whole.start) or [whole]):
            value: Any = value_of(text[part.start : part.end])
            if any(map(is_new, words_in(value))):
                number = BESIDE + (crc32(name.encode(errors="surrogatepass")) % 2**20) * 2**20 + place
                found.append(Piece(number, part, written_at, is_said=False))
    return sorted(found, key=lambda piece: piece.number)
