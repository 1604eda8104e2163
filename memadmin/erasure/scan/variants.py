"""Forms in which an id, a name or an address occurs in stored text, and the search for all of them at once.

A text is looked for as it is, in any case, composed and decomposed (NFC, NFD), escaped as JSON however often, as part
of an address (percent-encoding), and within base64 at each of its three alignments. Letters and digits of ASCII, and
`-._~`, are taken as they are: no JSON encoder and no address escapes them. Pure: texts in, answers out.
"""

from __future__ import annotations

import base64
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from urllib.parse import quote_plus

from ahocorasick_rs import BytesAhoCorasick, MatchKind

SHORT = 8
"""Shorter texts, and numbers of any length, occur within others: they count only without a letter or digit beside."""

SEGMENT = 3
"""Shortest part of a text that is worth to be looked for by itself."""

FEW = 64
"""Most parts of one automaton that uses SIMD instructions, gigabytes a second; with more it has a tenth of that."""

NEIGHBOURS = 16
"""Characters of base64 that are decoded on each side of a short text."""

NEVER_ESCAPED = re.compile(r"[A-Za-z0-9._~-]+")
LETTERS_AND_DIGITS = re.compile(r"[A-Za-z0-9]+")

# The last one is a zero byte, as PostgreSQL escapes it: pickled texts have one before them.
ESCAPED_BEFORE = re.compile(r"(?:\\+u([0-9a-f]{4})|(\\+[nrtbf])|(%(?:25)*[0-9a-f]{2})|(\\000))\Z", re.IGNORECASE)
ESCAPED_AFTER = re.compile(r"\\+u([0-9a-f]{4})", re.IGNORECASE)

IN_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*")
BEFORE_IN_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*\Z")

JSON_LETTERS = {"\n": "n", "\t": "t", "\r": "r"}


class Finder:
    """Search for several texts in one pass over whatever is searched."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = sorted({composed(text) for text in texts})
        searches = [FormSearch(text) for text in self.texts]
        # Searches by the parts that are rare: of each group of parts one.
        self._searches: dict[bytes, list[FormSearch]] = {}
        for search in searches:
            for part in {group[0] for group in search.needles}:
                self._searches.setdefault(part, []).append(search)
        self._always = self._searches.pop(b"", [])
        self._parts = sorted(self._searches)
        count = math.ceil(len(self._parts) / FEW) if len(self._parts) <= 4 * FEW else 1
        # Only whether there is any match counts, and this kind of match is the quick one.
        self._automata = [
            BytesAhoCorasick(self._parts[n::count], matchkind=MatchKind.LeftmostFirst) for n in range(count)
        ]

    def __bool__(self) -> bool:
        return bool(self.texts)

    @cached_property
    def _which(self) -> BytesAhoCorasick:
        """Automaton that finds which parts are in a text; slower than those that find whether any is."""
        return BytesAhoCorasick(self._parts)

    def may_find(self, text: bytes) -> bool:
        """Whether one of the texts may be in this one, which is UTF-8: quick, and never False where one is."""
        return any(self._candidates(text.lower()))

    def finds(self, text: str) -> list[str]:
        """The texts that are in this one, in any form; composed, as in `texts`."""
        lowered = text.encode(errors="surrogatepass").lower()
        return [search.text for search in self._candidates(lowered) if search.finds(text)]

    def _candidates(self, lowered: bytes) -> Iterator[FormSearch]:
        candidates = dict.fromkeys(self._always)
        if any(each.find_matches_as_indexes(lowered) for each in self._automata):
            matches = self._which.find_matches_as_indexes(lowered, overlapping=True)
            for part in {index for index, _, _ in matches}:
                candidates |= dict.fromkeys(self._searches[self._parts[part]])
        yield from (search for search in candidates if search.may_find(lowered))


class FormSearch:
    """Search for one text, which is in the form NFC."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.stands_alone = len(text) < SHORT or text.isdigit()
        self.needles = self._needles()

    # Made when they are needed: of thousands of texts, few are found.

    @cached_property
    def _plain(self) -> re.Pattern[str]:
        # As a look ahead: also what overlaps with something else that looks like it.
        return re.compile(f"(?=({''.join(map(character_pattern, self.text))}))", re.IGNORECASE)

    @cached_property
    def _encoded(self) -> list[tuple[re.Pattern[str], int, int, bytes]]:
        return [
            (re.compile(f"(?=({base64_pattern(inner)}))"), inner_start, before, content)
            for content in base64_contents(self.text)
            for before, (inner_start, inner) in enumerate(inner_base64(content))
        ]

    def may_find(self, lowered: bytes) -> bool:
        return any(all(part in lowered for part in group) for group in self.needles)

    def finds(self, text: str) -> bool:
        return any(
            not self.stands_alone or is_alone(text, *match.span(1)) for match in self._plain.finditer(text)
        ) or any(
            not self.stands_alone or is_alone_in_base64(text, match, inner_start, before, content)
            for pattern, inner_start, before, content in self._encoded
            for match in pattern.finditer(text)
        )

    def _needles(self) -> list[list[bytes]]:
        """Groups of parts: every text in which this one is found contains all parts of one group, once both are in
        lower case, which is that of ASCII alone. The first part of a group is one that is rare."""
        parts = segments(self.text)
        groups = [parts] if parts else plain_parts(self.text)
        # What differs between the alphabets of base64, + and /, is left out.
        groups += [
            segments(inner, LETTERS_AND_DIGITS, shortest=1)
            for content in base64_contents(self.text)
            for _, inner in inner_base64(content)
        ]
        # Without any part each text gets the closer look. Of long parts the first: the ends of addresses are common.
        lowered = [[part.encode(errors="surrogatepass").lower() for part in group or [""]] for group in groups]
        return [sorted(group, key=lambda part: len(part) <= SEGMENT) for group in lowered]


def composed(text: str) -> str:
    """The form in which texts are looked for."""
    return unicodedata.normalize("NFC", text)


def segments(text: str, pattern: re.Pattern[str] = NEVER_ESCAPED, *, shortest: int = SEGMENT) -> list[str]:
    """Parts that are the same in every form."""
    return [part for part in pattern.findall(text) if len(part) >= shortest]


def plain_parts(text: str) -> list[list[str]]:
    """Parts of every form but base64, for a text without long parts that no form escapes."""
    groups = []
    for cased in sorted({text, text.lower(), text.upper(), text.title()}):
        for normal in ("NFC", "NFD"):
            form = unicodedata.normalize(normal, cased)
            groups.append(re.split(r"[\s\\/\"'+]+", form))
            # However often it is escaped.
            groups.append(re.split(r"[\s\\/\"'+]+", json.dumps(form)[1:-1]))
            groups.append(re.split(r"\+|%(?:25)*", quote_plus(form)))
    return [[part for part in group if part] for group in groups]


# --- plain and escaped ------------------------------------------------------------------------------------------------


def character_pattern(character: str) -> str:
    """Regular expression for one character in every form."""
    if NEVER_ESCAPED.fullmatch(character):
        return re.escape(character)
    decomposed = unicodedata.normalize("NFD", character)
    forms = [escaped_pattern(character)]
    if len(decomposed) > 1:
        forms.append("".join(f"(?:{escaped_pattern(part)})" for part in decomposed))
    return f"(?:{'|'.join(forms)})"


def escaped_pattern(character: str) -> str:
    if NEVER_ESCAPED.fullmatch(character):
        return re.escape(character)
    forms = []
    for cased in {character, character.lower(), character.upper()}:
        units = cased.encode("utf-16-be", errors="surrogatepass")
        forms.append("".join(rf"\\+u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)))
        forms.append("".join(f"%(?:25)*{byte:02x}" for byte in cased.encode(errors="surrogatepass")))
    if character in JSON_LETTERS:
        forms.append(rf"\\+{JSON_LETTERS[character]}")
    # The plain form last: a percent sign begins its own escape.
    if character == "\\":
        forms.append(r"\\+")
    elif character in "\"'/":
        forms.append(rf"\\*{character}")
    elif character == " ":
        forms += [" ", r"\+", "\u00a0", r"\\+u00a0"]
    else:
        forms.append(re.escape(character))
    return "|".join(forms)


def is_alone(text: str, start: int, end: int) -> bool:
    """Whether neither a letter nor a digit is directly beside this part of a text; escaped ones count as such."""
    if escape := ESCAPED_BEFORE.search(text, max(start - 16, 0), start):
        if escape[1] and is_letter(chr(int(escape[1], 16))):
            return False
        if escape[3] and is_letter(chr(int(escape[3][-2:], 16))):
            return False
    elif start and is_letter(text[start - 1]):
        return False
    if escape := ESCAPED_AFTER.match(text, end):
        return not is_letter(chr(int(escape[1], 16)))
    return not (end < len(text) and is_letter(text[end]))


def is_letter(character: str) -> bool:
    return character.isalnum() or bool(unicodedata.combining(character))


# --- base64 -----------------------------------------------------------------------------------------------------------


def base64_contents(text: str) -> list[bytes]:
    """Forms of a text that may have been encoded: composed, decomposed, and as JSON; an address also in lower case.

    There are no others, because each costs three searches.
    """
    contents = {form.encode(errors="surrogatepass") for form in (text, unicodedata.normalize("NFD", text))}
    contents.add(json.dumps(text)[1:-1].encode())
    if "@" in text:
        contents.add(text.lower().encode(errors="surrogatepass"))
    return sorted(contents)


def inner_base64(content: bytes) -> list[tuple[int, str]]:
    """For each alignment the characters that depend on this content alone, and where they begin in their group.

    The alignment is the number of bytes before the content in the first group of three bytes.
    """
    found = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode().rstrip("=")
        start = (before * 8 + 5) // 6
        found.append((start, encoded[start : (before + len(content)) * 8 // 6]))
    return found


def base64_pattern(inner: str) -> str:
    """Both alphabets; JSON encoders of some languages escape the slash."""
    return "".join({"+": r"[+-]", "/": r"(?:\\*/|_)"}.get(character, character) for character in inner)


def is_alone_in_base64(text: str, match: re.Match[str], inner_start: int, before: int, content: bytes) -> bool:
    """Whether the text stands alone in what is encoded around it, and that is text, not a key or an image.

    A few characters of base64 occur by chance wherever there is much of it.
    """
    run = BEFORE_IN_BASE64.search(text, max(match.start(1) - inner_start - NEIGHBOURS, 0), match.start(1))
    earlier = run[0] if run else ""
    if len(earlier) < inner_start:
        return False
    earlier = earlier[(len(earlier) - inner_start) % 4 :]
    later = IN_BASE64.match(text, match.end(1), match.end(1) + NEIGHBOURS + 4)
    encoded = earlier + match[1].replace("\\", "") + (later[0] if later else "")
    encoded = encoded.replace("-", "+").replace("_", "/")
    if len(encoded) % 4 == 1:
        encoded = encoded[:-1]
    decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    start = (len(earlier) - inner_start) // 4 * 3 + before
    if decoded[start : start + len(content)] != content:
        return False
    # A character may be cut at both ends.
    around = [decoded[:start].decode(errors="replace"), decoded[start + len(content) :].decode(errors="replace")]
    around = [around[0].lstrip("\ufffd"), around[1].rstrip("\ufffd")]
    if any(not is_text(part) for part in around):
        return False
    whole = around[0] + content.decode(errors="replace") + around[1]
    return is_alone(whole, len(around[0]), len(whole) - len(around[1]))


def is_text(text: str) -> bool:
    return all(character.isprintable() or character in "\n\r\t" for character in text) and "\ufffd" not in text


def overlap(finder: Finder) -> int:
    """Bytes by which pieces of a long text must overlap, so that no form is cut: an escape takes twelve."""
    return max((len(text) for text in finder.texts), default=0) * 12 + 2 * NEIGHBOURS
