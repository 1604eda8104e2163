"""Redaction: text is permanently removed from stored items, and each item stays valid.

Types, ids, names and the keys that pair a call with its output stay; all text of people, models and tools can be
removed. `items`, `replay` and `wanted` are pure; `services` requests a redaction, whose run `sessions` carries out
session by session.
"""

from sessions_app.redaction.items import Redacted, without_all_text, without_text
from sessions_app.redaction.wanted import LEAST_CHARACTERS, MOST_CHARACTERS, Unwanted, Wanted
from sessions_app.timeline.markers import MARKER

__all__ = [
    "LEAST_CHARACTERS",
    "MARKER",
    "MOST_CHARACTERS",
    "Redacted",
    "Unwanted",
    "Wanted",
    "without_all_text",
    "without_text",
]
