"""A text to redact, with the patterns that match all of its spellings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

LEAST_CHARACTERS = 3
"""A shorter text is part of too many words."""

MOST_CHARACTERS = 10_000
"""A private key has about three thousand."""

LEAST_PART_BYTES = 3
"""Size of the shortest part of a text that still says something, in UTF-8: three Latin letters, or one Chinese sign."""

_WORD = re.compile(r"[^\W_]+")
_ESCAPED_UNITS = re.compile(r"(?:(?<!\\)\\++u[0-9a-fA-F]{4})+")
_ESCAPED_CODE = re.compile(r"(?<!\\)\\++(?:x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8}))")
_ESCAPED_BREAK = re.compile(r"(?<!\\)\\++[bfnrt]")

_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


class InvalidText(ValueError):
    """The text cannot be searched for; the message is a sentence."""


@dataclass(frozen=True)
class TextToRedact:
    """A text, with matchers that also find it spelled with escapes, one or many levels deep, and in both Unicode forms.

    It has no printable form: a text to redact is in no log.
    """

    text: str = field(repr=False)
    _plain: re.Pattern[str] = field(repr=False)
    _spelled: re.Pattern[str] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> TextToRedact:
        """Raises InvalidText. Spaces around the text do not count."""
        text = text.strip()
        if "\0" in text:
            raise InvalidText("The text contains a NUL character, which stored texts cannot contain.")
        if len(text) < LEAST_CHARACTERS:
            raise InvalidText(f"Give at least {LEAST_CHARACTERS} characters; a shorter text is too common.")
        if len(text) > MOST_CHARACTERS:
            raise InvalidText(f"This text has {len(text):,} characters; at most {MOST_CHARACTERS:,} can be looked for.")
        # Forms send lines with CRLF; the stored text has the agent's line breaks.
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        forms = dict.fromkeys(
            (lines, unicodedata.normalize("NFC", lines), unicodedata.normalize("NFD", lines)),
        )
        return cls(
            text,
            re.compile("|".join(_plainly(form) for form in forms)),
            re.compile("|".join(_in_any_spelling(form) for form in forms)),
        )

    def is_in(self, text: str) -> bool:
        return self._pattern_for(text).search(text) is not None

    def count_in(self, text: str) -> int:
        return sum(1 for _ in self._pattern_for(text).finditer(text))

    def spans_in(self, text: str) -> Iterator[tuple[int, int]]:
        """Beginning and end of each occurrence in a text, in order."""
        return (found.span() for found in self._pattern_for(text).finditer(text))

    def replaced(self, text: str, marker: str) -> tuple[str, int]:
        return self._pattern_for(text).subn(lambda found: marker, text)

    def has_part_in(self, text: str) -> bool:
        """True if a short text, such as a search, contains this one, one of its words, or only a part of it.

        Case, punctuation, spaces and escapes do not count. Some texts match that share no more than a common word.
        """
        return self.is_in(text) or any(
            _share_part(own, other) for own in _forms_of(self.text) for other in _forms_of(text)
        )

    def _pattern_for(self, text: str) -> re.Pattern[str]:
        # A text without a backslash has no escape, and most have none.
        return self._spelled if "\\" in text else self._plain


def _forms_of(text: str) -> set[str]:
    """A text as it is, and with its escapes undone: a backslash may also belong to the text."""
    return {text, _ESCAPED_BREAK.sub(" ", _ESCAPED_CODE.sub(_decoded_code, _ESCAPED_UNITS.sub(_decoded_units, text)))}


def _decoded_units(escapes: re.Match[str]) -> str:
    units = bytes.fromhex("".join(re.findall(r"u([0-9a-fA-F]{4})", escapes[0])))
    return units.decode("utf-16-be", "replace")


def _decoded_code(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2], 16)
    return chr(code) if code <= 0x10FFFF else " "


def _share_part(text: str, other: str) -> bool:
    words, others = _words_of(text), _words_of(other)
    whole, other_whole = "".join(words), "".join(others)
    return any(part in whole for part in _large([*others, other_whole])) or any(
        part in other_whole for part in _large([*words, whole])
    )


def _words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _large(parts: list[str]) -> list[str]:
    return [part for part in parts if len(part.encode(errors="surrogatepass")) >= LEAST_PART_BYTES]


def _plainly(text: str) -> str:
    # Atomic: CRLF is one line break, and many of them are not tried as two each.
    return r"(?>\r\n|\r|\n)".join(re.escape(line) for line in text.split("\n"))


def _in_any_spelling(text: str) -> str:
    """Each character as it is, or as any language with backslashes writes it.

    With any number of backslashes: JSON in a string of JSON doubles them. A run of them is always matched as a whole,
    from its beginning, because trying each of its backslashes would take time that grows with the square of the run.
    """
    pieces = [r"(?<!\\)" if text[0] == "\\" else ""]
    backslashes = 0
    for character, run in groupby(text):
        count = len(list(run))
        if character == "\\":
            backslashes = count
            continue
        begins = not any(pieces) and not backslashes
        pieces.append(_first_spellings(character, backslashes, begins=begins))
        pieces.append(_spellings(character) * (count - 1))
        backslashes = 0
    if backslashes:
        pieces.append(_backslashes(backslashes))
    return "".join(pieces)


def _backslashes(least: int) -> str:
    return rf"\\{{{least},}}+"


def _spellings(character: str) -> str:
    return f"(?>{'|'.join([*_literal_ways(character), *(_backslashes(1) + way for way in _escaped_ways(character))])})"


def _first_spellings(character: str, backslashes: int, *, begins: bool) -> str:
    """Spellings of a character behind some backslashes of the text, whose own are in the same run."""
    if not backslashes and not begins:
        return _spellings(character)
    before = r"(?<!\\)" if begins else ""
    ways = [(_backslashes(backslashes) if backslashes else "") + way for way in _literal_ways(character)]
    ways += [before + _backslashes(backslashes + 1) + way for way in _escaped_ways(character)]
    return f"(?:{'|'.join(ways)})"


def _literal_ways(character: str) -> list[str]:
    return [r"\r\n", r"\r", r"\n"] if character == "\n" else [re.escape(character)]


def _escaped_ways(character: str) -> list[str]:
    """Expressions for what follows the backslashes of an escape."""
    code = ord(character)
    units = character.encode("utf-16-be", "surrogatepass")
    pairs = [units[place : place + 2].hex() for place in range(0, len(units), 2)]
    ways = [r"\\++".join(rf"u(?i:{unit})" for unit in pairs)]
    if code < 0x100:
        ways.append(rf"x(?i:{code:02x})")
    if code > 0xFFFF:
        ways.append(rf"U(?i:{code:08x})")
    if character == "\n":
        ways = [r"r\\++n", "r", *ways]
    if character in _SHORT_ESCAPES:
        ways.append(_SHORT_ESCAPES[character])
    if character in "\"'/":
        ways.append(re.escape(character))
    return ways
