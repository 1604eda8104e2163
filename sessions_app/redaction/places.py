"""Places in items that a redaction replaces, with their surroundings, as a page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from sessions_app.masking import HIDDEN, Masker
from sessions_app.redaction.items import RedactionPlace
from sessions_app.timeline.decode import printable

CONTEXT_CHARACTERS = 80
"""Characters shown before and after a place."""

WHOLE_CHARACTERS = 300
"""Characters shown of a text that is replaced as a whole."""

MASKED = "••••"


@dataclass(frozen=True, slots=True)
class PlaceContext:
    """Text before, at and after a place, with its values masked. Plain text: a page has to escape it."""

    where: str
    before: str
    found: str
    after: str
    is_whole: bool


def contexts_of(places: Iterable[RedactionPlace], masker: Masker) -> list[PlaceContext]:
    """The places of one item with their surroundings. What a person typed is shown as it is stored; everything else is
    masked.

    Values are looked for in the whole text: in a part of it half a value would not be recognised. Never raises.
    """
    contexts: list[PlaceContext] = []
    for _, in_text in groupby(places, key=lambda place: (place.path, id(place.text))):
        of_one = list(in_text)
        spans = masker.spans(of_one[0].text, of_one[0].path[-1] if of_one[0].path else "")
        where = masker.text(" / ".join(of_one[0].path))
        contexts += [_context_of(place, where, spans) for place in of_one]
    return contexts


def _context_of(place: RedactionPlace, where: str, spans: Sequence[tuple[int, int]] | None) -> PlaceContext:
    if spans is None:
        found = HIDDEN if place.is_whole else _cut(place.text[place.start : place.end], WHOLE_CHARACTERS)
        hidden = "" if place.is_whole else HIDDEN
        return PlaceContext(where, hidden, found, hidden, place.is_whole)
    if place.is_whole:
        # Longer than what is shown, as a mask is shorter than most values.
        shown = _masked(place.text, 0, min(len(place.text), 2 * WHOLE_CHARACTERS), spans)
        return PlaceContext(where, "", _cut(shown, WHOLE_CHARACTERS), "", True)
    first, last = max(place.start - CONTEXT_CHARACTERS, 0), min(place.end + CONTEXT_CHARACTERS, len(place.text))
    before = _masked(place.text, first, place.start, spans)
    after = _masked(place.text, place.end, last, spans)
    return PlaceContext(
        where,
        ("…" if first else "") + before,
        _cut(printable(place.text[place.start : place.end]), WHOLE_CHARACTERS),
        after + ("…" if last < len(place.text) else ""),
        False,
    )


def _masked(text: str, start: int, end: int, spans: Sequence[tuple[int, int]]) -> str:
    """A part of a text, in which every value is masked, also one that reaches beyond the part."""
    pieces, done = [], start
    for first, last in spans:
        if last <= done or first >= end:
            continue
        pieces += [text[done : max(first, done)], MASKED]
        done = min(last, end)
    return printable("".join(pieces) + text[done:end])


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "…"
