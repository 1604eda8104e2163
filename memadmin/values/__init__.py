"""Detection of secrets, card and account numbers in text, by libraries, without Django and without a query.

The console masks shown text with it, agents mask stored text. The time grows with the length of the text, whatever it
contains: `tests/web/test_masking_growth.py` holds that for each expression.
"""

from __future__ import annotations

from collections.abc import Iterator

WINDOW = 4_000
"""Texts are searched in windows of so many characters, to bound the time of each expression."""

OVERLAP = 1_000
"""Overlap of neighbouring windows: longer than any value that is not a single long word."""


def windows(text: str) -> Iterator[tuple[int, str]]:
    """Windows of a text, each with its offset."""
    for start in range(0, max(len(text) - OVERLAP, 1), WINDOW - OVERLAP):
        yield start, text if len(text) <= WINDOW else text[start : start + WINDOW]
