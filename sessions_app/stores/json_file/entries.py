"""Byte offsets of the entries in a file of JSON Lines or a JSON array, without decoding them.

Broken parts are entries, too: the last line that is still being written, and the rest of an array from its first fault.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"

# Possessive, so that a string without an end costs one look and not many.
TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{},"]', re.DOTALL)

Span = tuple[int, int]


@dataclass(frozen=True)
class Entries:
    """Entries of a file, as spans of its bytes."""

    content: bytes

    @property
    def start(self) -> int:
        return len(BYTE_ORDER_MARK) if self.content.startswith(BYTE_ORDER_MARK) else 0

    @property
    def is_array(self) -> bool:
        return self.content[self.start : self.start + 4_096].lstrip(BLANK).startswith(b"[")

    def spans(self) -> Iterator[Span]:
        """Span of each entry, in order."""
        return self._spans_of_array() if self.is_array else self._spans_of_lines()

    def text(self, span: Span) -> str:
        """Text of an entry. Bytes that are not UTF-8 are kept as surrogates, and written back unchanged."""
        return self.content[slice(*span)].decode(errors="surrogateescape")

    def at(self, place: int) -> Span | None:
        return next(islice(self.spans(), place, None), None) if place >= 0 else None

    def count(self, cap: int) -> int:
        """Number of entries, at most cap + 1."""
        return sum(1 for _ in islice(self.spans(), cap + 1))

    @property
    def is_finished(self) -> bool:
        """Whether the file is complete: an array is closed, and the last line has a line break or is whole."""
        end = self.content.rstrip(BLANK)
        if self.is_array:
            last = deque(self.spans(), maxlen=1)
            return end.endswith(b"]") and not (last and last[0][1] == len(end))
        # A program that rewrites a file empties it first.
        return len(end) > self.start and (self.content.endswith(b"\n") or end.endswith(b"}"))

    # --- changed ------------------------------------------------------------------------------------------------------

    def with_replaced(self, span: Span, text: bytes) -> bytes:
        start, end = span
        if not self.is_array:
            # JSON may contain line breaks between its tokens, but not within a string.
            text = b" ".join(text.splitlines())
        return self.content[:start] + text + self.content[end:]

    def without(self, places: Collection[int]) -> bytes:
        """Content without some entries: each goes with the separator before it, so that the others stay unchanged."""
        spans = list(self.spans())
        if not self.is_array:
            return self._without_lines([spans[place] for place in sorted(places)])
        kept = [place for place in range(len(spans)) if place not in places]
        if not spans:
            return self.content
        pieces = [self.content[: spans[0][0]]]
        for number, place in enumerate(kept):
            start, end = spans[place]
            if number:
                pieces.append(self.content[spans[place - 1][1] : start])
            pieces.append(self.content[start:end])
        return b"".join([*pieces, self.content[spans[-1][1] :]])

    def _without_lines(self, spans: list[Span]) -> bytes:
        pieces, place = [], 0
        for start, end in spans:
            start = self.content.rfind(b"\n", 0, start) + 1 or self.start
            end = self.content.find(b"\n", end) + 1 or len(self.content)
            pieces.append(self.content[place:start])
            place = end
        return b"".join([*pieces, self.content[place:]])

    # --- found --------------------------------------------------------------------------------------------------------

    def _spans_of_lines(self) -> Iterator[Span]:
        place, size = self.start, len(self.content)
        while place < size:
            end = self.content.find(b"\n", place)
            end = size if end < 0 else end
            span = self._trimmed(place, end)
            if span:
                yield span
            place = end + 1

    def _spans_of_array(self) -> Iterator[Span]:
        opening = self.content.index(b"[", self.start)
        place, depth = opening + 1, 1
        for token in TOKEN.finditer(self.content, place):
            match token[0]:
                case b"[" | b"{":
                    depth += 1
                case b"]" | b"}":
                    depth -= 1
                    if depth == 0:
                        yield from filter(None, [self._trimmed(place, token.start())])
                        place = token.end()
                        break
                case b"," if depth == 1:
                    yield from filter(None, [self._trimmed(place, token.start())])
                    place = token.end()
                case b'"':
                    break  # a string that does not end
        yield from filter(None, [self._trimmed(place, len(self.content))])

    def _trimmed(self, start: int, end: int) -> Span | None:
        """Span without surrounding blanks; None if it has only blanks."""
        text = self.content[start:end]
        start += len(text) - len(text.lstrip(BLANK))
        end = start + len(text.strip(BLANK))
        return (start, end) if end > start else None
