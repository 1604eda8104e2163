"""Decoder of stored items: the result is safe to show.

The text may be corrupt, endless, nested ten thousand deep, or contain characters that no page can show (NULs, lone
surrogates). It always becomes a `DecodedItem`; if it cannot be read, with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import jiter

from memadmin.values.shortened import ShortText, length_of
from sessions_app.items import StoredItem
from sessions_app.timeline.encryption import is_envelope
from sessions_app.timeline.values import Fields, as_fields, text_in

IDENTIFYING = frozenset({"type", "role", "call_id", "id", "name", "namespace", "approval_request_id", "status"})
"""Members that determine the type of an item and what it answers: half of one is worse than none."""


class NotJson(ValueError):
    """The text cannot be read as JSON; the message is the reason, in words that fit after a colon."""


@dataclass(frozen=True)
class DecodedItem:
    """A stored item with its decoded text."""

    stored: StoredItem
    value: object
    """The decoded text; the recoverable part of an item that was read in part."""
    problem: str = ""
    """Reason why the text cannot be read; empty if it can."""

    @property
    def fields(self) -> Fields:
        """Members of the item; none if it is not a JSON object."""
        return as_fields(self.value)

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def is_envelope(self) -> bool:
        return is_envelope(self.fields)

    def size_of(self, member: str) -> int:
        """Characters of a text member; of an item read in part, the size of the whole item."""
        size = length_of(text_in(self.fields, member))
        return size if self.stored.is_whole else self.stored.byte_count

    @cached_property
    def type(self) -> str:
        """Type of the item, also where the SDK lets it be left out; empty if it cannot be determined."""
        if self.problem or self.is_envelope:
            return ""
        given = self.fields.get("type")
        if given is not None:
            return given if isinstance(given, str) else ""
        if text_in(self.fields, "role"):
            return "message"
        if text_in(self.fields, "id") and self.fields.keys() <= {"id", "type"}:
            return "item_reference"
        return ""


def decode(stored: StoredItem) -> DecodedItem:
    """Decoded item; of a shortened one the part that is shown. Never raises."""
    if stored.shown:
        return DecodedItem(stored, stored.shown.value, stored.shown.problem)
    try:
        if stored.is_whole:
            return DecodedItem(stored, parse_json(stored.raw))
        return DecodedItem(stored, _parse_ends(stored.raw, stored.raw_tail))
    except NotJson as problem:
        return DecodedItem(stored, None, problem=str(problem))


def parse_json(text: str, *, is_beginning: bool = False) -> object:
    """Value of a JSON text, its strings free of lone surrogates and control characters. Raises NotJson.

    With `is_beginning` the text may be truncated anywhere; the part before is returned.
    """
    try:
        return jiter.from_json(
            _mended(text).encode("utf-8", "replace"), partial_mode="trailing-strings" if is_beginning else "off"
        )
    except ValueError as error:
        raise NotJson(_reason(str(error))) from None


def printable(text: str) -> str:
    """Text that was not decoded, without characters that a page cannot show."""
    plain = text.translate(_CONTROL_PICTURES).encode("utf-8", "replace").decode()
    return ShortText(plain, text.left_out, text.shown) if isinstance(text, ShortText) else plain


# In escaped form, as the SDK writes them: pairs are kept, lone halves replaced, control characters made visible.
_SUSPECT = re.compile(r"\\(?:u(?:00[01]|[dD][89a-fA-F])|[bf])")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?P<code>[0-9a-fA-F]{4})|\\.", re.DOTALL
)
_LINE_CONTROLS = frozenset({0x09, 0x0A, 0x0D})
_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in _LINE_CONTROLS}


def _mended(text: str) -> str:
    return _ESCAPE.sub(_mended_escape, text) if _SUSPECT.search(text) else text


def _mended_escape(match: re.Match[str]) -> str:
    escape = match[0]
    if escape in (r"\b", r"\f"):
        return r"\u2408" if escape == r"\b" else r"\u240c"
    if match["code"] is None:
        return escape
    code = int(match["code"], 16)
    if 0xD800 <= code <= 0xDFFF:
        return r"\ufffd"
    return rf"\u{0x2400 + code:04x}" if code in _CONTROL_PICTURES else escape


def _reason(message: str) -> str:
    if message.startswith("recursion limit"):
        return "nested more than 200 levels deep"
    if message.startswith("number out of range"):
        return "a number with thousands of digits"
    return message


def _parse_ends(head: str, tail: str) -> object:
    """Value of an item of which only the beginning and the end were read. Raises NotJson."""
    value = parse_json(head, is_beginning=True)
    if not isinstance(value, dict):
        return value
    # The beginning breaks off inside its last member.
    last = next(reversed(value), None)
    if last in IDENTIFYING:
        del value[last]
    return {**value, **_members_at_end(tail)}


def _members_at_end(tail: str) -> dict[str, object]:
    """Last members of the object that the text ends with, as many as are certain.

    A rest that begins at a quote after a comma and closes exactly one object can only be members of the outermost:
    nested deeper it would close more, and begun at a closing quote its quotes would not be paired.
    """
    for comma in re.finditer(r',\s*(?=")', tail):
        try:
            members = parse_json("{" + tail[comma.end() :])
        except NotJson:
            continue
        return dict(as_fields(members))
    return {}
