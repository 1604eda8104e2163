"""Redaction: text is taken out of stored items for good, and each item stays valid.

Types, ids, names and what pairs a call with its output stay; all that people, models and tools said can go. `items`,
`replay` and `wanted` are pure; `services` requests a redaction, whose run `sessions` carries out session by session.
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
