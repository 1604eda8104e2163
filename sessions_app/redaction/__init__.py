"""Redaction: text is permanently removed from stored items, and each item stays valid.

Types, ids, names and the keys that pair a call with its output stay; all text of people, models and tools can be
removed. `items`, `replay` and `text_to_redact` are pure; `services` requests a redaction, and `sessions` redacts one
session at a time for its run.
"""

from sessions_app.redaction.items import NestedTooDeep, Redacted, without_all_text, without_text
from sessions_app.redaction.text_to_redact import LEAST_CHARACTERS, MOST_CHARACTERS, InvalidText, TextToRedact
from sessions_app.timeline.markers import MARKER

__all__ = [
    "LEAST_CHARACTERS",
    "MARKER",
    "MOST_CHARACTERS",
    "InvalidText",
    "NestedTooDeep",
    "Redacted",
    "TextToRedact",
    "without_all_text",
    "without_text",
]
