"""Cutting items out of a stored document: its messages, and what it keeps beside them that no message says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
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


def pieces_of_conversation(text: str, written_at: datetime | None) -> Iterator[Piece]:
    """Of an object with messages. A message that the library itself calls a copy of an earlier one is none."""
    try:
        top = members(text)
        messages = elements(text, top[MESSAGES].start) if MESSAGES in top else []
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
            said += words_in(message)
            shown.append(Piece(number, part, time or written_at, is_said=True))
        shown += _beside(text, top, said, written_at)
    except NotReadable:
        shown = [Piece(0, Part(0, len(text)), written_at, is_said=False)]
    yield from shown


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


def _beside(text: str, top: dict[str, Part], said: Sequence[str], written_at: datetime | None) -> list[Piece]:
    known = "\0".join(said)
    found = []
    for name, whole in top.items():
        if name == MESSAGES or name in STRUCTURAL:
            continue
        for place, part in enumerate(elements(text, whole.start) or [whole]):
            value: Any = value_of(text[part.start : part.end])
            if any(word.strip() and word not in known for word in words_in(value)):
                number = BESIDE + (crc32(name.encode(errors="surrogatepass")) % 2**20) * 2**20 + place
                found.append(Piece(number, part, written_at, is_said=False))
    return sorted(found, key=lambda piece: piece.number)
