"""Parser of the conversations in a file of JSON or JSON Lines, gzipped or not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from typing import Any

from memadmin.json_files import Array, JsonValue, UnreadableValue, documents

SESSION_KEYS = ("session_id", "session", "conversation_id", "id")
"""Members that may name the session of a conversation; the first that exists is used."""


@dataclass(frozen=True, slots=True)
class Conversation:
    line: int
    """Line of the file at which it begins."""
    session_id: str
    messages: Sequence[object]
    fields: Mapping[str, object] = field(default_factory=dict)
    """Other members beside the messages, for example the customer's id."""


def parse_conversations(file: BufferedReader) -> Iterator[Conversation | UnreadableValue]:
    """All conversations of a file, in its order; unreadable ones are reported and skipped.

    A file is JSON Lines (one conversation a line) or one JSON document (a conversation, or an array of them), by its
    content and not by its name. A conversation is an object with `messages`, or the bare array of them. One without a
    session id gets an id derived from its content, the same every time.
    """
    for document in documents(file):
        if isinstance(document, UnreadableValue):
            yield document
        elif isinstance(document, Array):
            yield from _conversations_of(document)
        else:
            yield from _conversations_in(document)


def _conversations_of(array: Array) -> Iterator[Conversation | UnreadableValue]:
    first = next(array.elements, None)
    if first is None:
        return
    parts = chain([first], array.elements)
    if isinstance(first, JsonValue) and _is_message(first.value):
        # The whole document is one conversation: without its last messages it would be another one.
        read = list(parts)
        problems = [part for part in read if isinstance(part, UnreadableValue)]
        messages = [part.value for part in read if isinstance(part, JsonValue)]
        yield from problems or _conversations_in(JsonValue(array.line, messages))
        return
    for part in parts:
        if isinstance(part, UnreadableValue):
            yield part
        else:
            yield from _conversations_in(part)


def _conversations_in(found: JsonValue) -> Iterator[Conversation | UnreadableValue]:
    value = found.value
    if isinstance(value, list) and not (value and _is_message(value[0])):
        for element in value:
            yield _conversation(element, found.line)
    else:
        yield _conversation(value, found.line)


def _conversation(value: object, line: int) -> Conversation | UnreadableValue:
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    messages = value if isinstance(value, list) else fields.get("messages")
    if not isinstance(messages, list):
        return UnreadableValue(line, "neither a conversation with messages nor an array of messages")
    if not messages:
        return UnreadableValue(line, "the conversation has no messages")
    named = next((fields[key] for key in SESSION_KEYS if fields.get(key) not in (None, "")), None)
    if named is None:
        # Of the whole record, so that the same words from two customers stay two sessions.
        try:
            session_id = f"import:{hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]}"
        except RecursionError:
            return UnreadableValue(line, "nested too deeply")
    elif (session_id := identifier(named)) == "":
        return UnreadableValue(line, "its session id is neither text nor a number")
    if "\0" in session_id or not _is_encodable(session_id):
        return UnreadableValue(line, "its session id has a character that no database can store")
    return Conversation(line, session_id, messages, fields)


def identifier(value: object) -> str:
    """An id as text, whatever its type; empty for other values."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
