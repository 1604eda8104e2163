"""Message texts of the items that the SDK gives a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def text_of(item: Mapping[str, Any]) -> str:
    """The text of a message, without pictures and files."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts: Iterable[Any] = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def is_from_user(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") == "user" and item.get("type", "message") == "message"


def last_said(items: Sequence[Any]) -> tuple[str, int]:
    """The user's last text, and the number of the user's messages."""
    said = [item for item in items if is_from_user(item)]
    return (text_of(said[-1]) if said else ""), len(said)
