"""Previews of sessions for lists, from the beginnings of their first items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessions_app.stores.base import PREVIEW_CHARACTERS, READ_AHEAD, SessionPreview
from sessions_app.timeline.decode import NotJson, parse_json
from sessions_app.timeline.encryption import ENVELOPE_MEMBER, is_envelope
from sessions_app.timeline.values import text_in

PREVIEW_ITEMS = 5
"""Number of first items in which the first user text is searched: other texts may precede it."""

PREVIEW_HEAD_CHARACTERS = 3_300
"""Characters read of each item: enough emoji, escaped as `\\ud83d\\ude00`, and the members around them."""

USER_TEXT_PARTS = {"input_text", "text"}


def preview_from(heads: Sequence[str], item_count: int | None) -> SessionPreview:
    """Preview from the beginnings of items. Never raises: unreadable items are skipped; the timeline shows them."""
    # Most are read no further than to the first.
    sealed = [head for head in heads if ENVELOPE_MEMBER in head]
    words = next(filter(None, map(user_text, _objects_in(heads))), "")
    return SessionPreview(
        item_count=item_count,
        first_user_text=words,
        is_encrypted=any(map(is_envelope, _objects_in(sealed))),
        # An empty beginning is of an item too long to be read for a list.
        is_readable=bool(words) or not any(heads) or next(_objects_in(heads), None) is not None,
    )


def user_text(entry: dict[str, object]) -> str:
    """User text of an item, on one line, a little more than is displayed; empty for any other item.

    The SDK writes `{"content": ..., "role": "user"}`: the role of a long one is cut off, and is taken to be the user's.
    """
    if entry.get("role", "user") != "user" or entry.get("type", "message") != "message":
        return ""
    words = " ".join(_texts_in(entry.get("content"))).split()
    return " ".join(words)[: PREVIEW_CHARACTERS + READ_AHEAD]


def _objects_in(heads: Sequence[str]) -> Iterator[dict[str, object]]:
    for head in heads:
        try:
            value = parse_json(head, is_beginning=len(head) == PREVIEW_HEAD_CHARACTERS)
        except NotJson:
            continue
        if isinstance(value, dict):
            yield value


def _texts_in(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            # What a parser returns as a type may be a list, which no set contains.
            if isinstance(part, dict) and text_in(part, "type") in USER_TEXT_PARTS:
                yield text_in(part, "text")
