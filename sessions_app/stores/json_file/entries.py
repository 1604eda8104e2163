"""Byte offsets of the entries in a file of JSON Lines or a JSON array, without decoding them.

Broken parts are entries, too: the last line that is still being written, and the rest of an array from its first fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from memadmin.json_spans import Part, array_entries, line_entries

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"


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

    def spans(self) -> Iterator[Part]:
        """Part of each entry, in order."""
        return (array_entries if self.is_array else line_entries)(self.content, self.start)

    def text(self, span: Part) -> str:
        """Text of an entry. Bytes that are not UTF-8 are kept as surrogates, and written back unchanged."""
        return self.content[slice(*span)].decode(errors="surrogateescape")

    def at(self, place: int) -> Part | None:
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

    def with_replaced(self, span: Part, text: bytes) -> bytes:
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

    def _without_lines(self, spans: list[Part]) -> bytes:
        pieces, place = [], 0
        for start, end in spans:
            start = self.content.rfind(b"\n", 0, start) + 1 or self.start
            end = self.content.find(b"\n", end) + 1 or len(self.content)
            pieces.append(self.content[place:start])
            place = end
        return b"".join([*pieces, self.content[place:]])
