"""Detection of secrets, card and account numbers in text, by libraries, without Django and without a query.

The console masks with it what it shows, agents what they store.
"""

from __future__ import annotations

from collections.abc import Iterator

WINDOW = 4_000
"""A text is looked through in pieces of so many characters: no expression gets the chance to take long."""

OVERLAP = 1_000
"""What neighbouring pieces have in common: more than any value has that is not one long word."""


def windows(text: str) -> Iterator[tuple[int, str]]:
    """The pieces of a text, each with the place at which it begins."""
    for start in range(0, max(len(text) - OVERLAP, 1), WINDOW - OVERLAP):
        yield start, text if len(text) <= WINDOW else text[start : start + WINDOW]
