"""Taking text out of a stored item, so that what is left is still the same item. Pure: no query, no request.

Types, ids, names and what pairs a call with its output stay; all that people, models and tools said can go.
"""

from sessions_app.redacting.items import Redacted, without_all_text, without_text
from sessions_app.redacting.wanted import LEAST_CHARACTERS, MOST_CHARACTERS, Unwanted, Wanted
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
