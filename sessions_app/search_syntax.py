"""Parser of search input, with matchers for PostgreSQL and for displayed text.

The syntax is that of web searches: words that must all occur, "words in this order", -without, one OR another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


class Unsearchable(Exception):
    """The input has nothing to search for; the message is a sentence with the reason."""


WORD = re.compile(r"[^\W_]+")
_PARSED_ALONE = re.compile(r"[^\s!-/:-@\[-`{-~]+")

# The parts below do what the SQL function memadmin_item_words does to a stored item (`item_words` does all of it).
_PARTED = re.compile(r'[-+/.@~&<\\"\u0080-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u206f]')
_WIDE_PARTED = re.compile(r"[\u3000-\u3004\u3008-\u3020\u3030\uff00-\uff0f]")
_WORD_ITSELF = re.compile(r"([\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])")

_MEMBER_NAME = re.compile(r'"[A-Za-z_]+" ?: ?')
_OWN_VALUES = re.compile(
    '"user"|"assistant"|"message"|"completed"|"output_text"|"input_text"|"summary_text"'
    '|"function_call"|"function_call_output"|"reasoning"'
)
# Only from the beginning of a run, whose end decides: from each of its characters it would be the square of its length.
_NO_WORD = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{200,}+")
_ESCAPED_BREAK = re.compile(r"(?<!\\)\\++[bfnrt]")
_ESCAPED = re.compile(r"(?<!\\)(?:\\++u[0-9A-Fa-f]{4})+")

LONGEST_PLAIN = 100

_TYPED = re.compile(r'(?P<minus>-?)"(?P<quoted>[^"]*)"|(?P<bare>\S+)')

# Characters between two words in stored text: any others, also in escaped form. Generous outside of ASCII, where
# PostgreSQL and Python do not quite agree on letters.
_BETWEEN = r"(?:[^A-Za-z0-9]|\\+(?:[bfnrt]|u[0-9a-f]{4}))*"


@dataclass(frozen=True, slots=True)
class Term:
    """Adjacent words: a quoted phrase, or input without a space ("T-90420" is two words)."""

    text: str
    is_excluded: bool = False

    @property
    def words(self) -> list[str]:
        return WORD.findall(self.text)

    def __str__(self) -> str:
        return f'{"-" * self.is_excluded}"{self.text}"'


@dataclass(frozen=True, slots=True)
class ParsedSearch:
    """Parsed search input."""

    alternatives: tuple[tuple[Term, ...], ...]
    """Alternatives, one of which must match, by all of its terms. At least one term of each is not excluded."""
    note: str = ""
    """A sentence for the user about how the input was read; empty if it was read as typed."""

    @classmethod
    def parse(cls, text: str) -> ParsedSearch:
        """Parsed input. Raises Unsearchable."""
        note = ""
        if text.count('"') % 2:
            text = text.replace('"', " ")
            note = "A quotation mark is not closed, so the words are searched separately."
        groups: list[list[Term]] = [[]]
        for typed in _TYPED.finditer(text):
            if (typed["bare"] or "").lower() == "or":
                groups.append([])
            elif (term := _term(typed)).words:
                groups[-1].append(term)
        alternatives = tuple(tuple(group) for group in groups if group)
        if not alternatives:
            if not WORD.search(text):
                raise Unsearchable("Enter at least one letter or digit to search for.")
            alternatives = ((Term(plain(text)),),)  # nothing but "or"
        if not all(any(not term.is_excluded for term in group) for group in alternatives):
            raise Unsearchable("This search has only excluded words. Add a word to search for.")
        return cls(alternatives, note)

    def __str__(self) -> str:
        """Query for `websearch_to_tsquery`. Everything is quoted, so a word of the text is never an operator."""
        return " or ".join(" ".join(map(str, group)) for group in self.alternatives)

    @property
    def unordered_words(self) -> str:
        """The same without order and excluded words, which is as much as an index decides without reading the items."""
        return " or ".join(
            " ".join(f'"{word}"' for term in group if not term.is_excluded for word in _PARSED_ALONE.findall(term.text))
            for group in self.alternatives
        )

    @property
    def has_only_unordered_words(self) -> bool:
        return str(self) == self.unordered_words

    def stored_patterns(self) -> list[list[str]]:
        """For each alternative the regular expressions (of PostgreSQL, without case) that all match the stored text.

        They exclude most items at a twentieth of the cost of reading their words, and are not sufficient.
        """
        return [
            [_BETWEEN.join(map(_stored_form, term.words)) for term in group if not term.is_excluded]
            for group in self.alternatives
        ]

    def plain_patterns(self) -> list[list[str]]:
        """For each alternative regular expressions: a stored text that matches all of them matches the search. No
        expressions for an alternative that needs its words read.

        Their matches are between the signs of ordinary text, so they are not affected by parts that are removed before
        an item's words are read, such as names of members.
        """
        return [
            [rf'[ "(]{" ".join(term.words)}[ ,.;!?]' for term in group]
            if all(not term.is_excluded and _is_plain(term.words) for term in group)
            else []
            for group in self.alternatives
        ]

    def matches_stored(self, raw: str) -> bool:
        """Whether a stored item matches, for stores that PostgreSQL cannot search."""
        said = f" {' '.join(item_words(raw))} "
        return any(
            all((f" {' '.join(term.words).lower()} " in said) != term.is_excluded for term in group)
            for group in self.alternatives
        )

    def visible_pattern(self) -> re.Pattern[str]:
        """Regular expression of the searched words in displayed text."""
        terms = {tuple(term.words) for group in self.alternatives for term in group if not term.is_excluded}
        return re.compile("|".join(map(_visible_form, sorted(terms, key=len, reverse=True))), re.IGNORECASE)

    def matches_text(self, text: str) -> bool:
        """Whether a displayed text matches; excluded words are not checked."""
        return any(
            all(re.search(_visible_form(term.words), text, re.IGNORECASE) for term in group if not term.is_excluded)
            for group in self.alternatives
        )

    def refuse_exclusions(self) -> None:
        """Raises Unsearchable if words are excluded: else users of masked text could infer masked values."""
        if any(term.is_excluded for group in self.alternatives for term in group):
            raise Unsearchable("Your role cannot exclude words: the results could reveal masked values.")


def plain(text: str) -> str:
    """A text without the characters that PostgreSQL's parser gives a meaning beyond words and spaces."""
    parted = _WIDE_PARTED.sub(" ", _PARTED.sub(" ", text))
    return " ".join(_WORD_ITSELF.sub(r" \1 ", parted).split())


def item_words(raw: str) -> list[str]:
    """Searchable words of a stored item in lower case, in stored order.

    Does not parse JSON, like the SQL function and for its reasons: stored text may be cut off or broken.
    """
    if '"__enc__"' in raw[:100]:
        return []
    text = _OWN_VALUES.sub(" ", _MEMBER_NAME.sub(" ", raw))
    text = _ESCAPED_BREAK.sub(" ", _NO_WORD.sub(" ", text))
    text = _ESCAPED.sub(_unescaped, text)
    return [word.lower() for word in WORD.findall(plain(text))]


def _unescaped(escapes: re.Match[str]) -> str:
    units = (int(escape[-4:], 16) for escape in re.findall(r"u[0-9A-Fa-f]{4}", escapes[0]))
    encoded = b"".join(unit.to_bytes(2, "big") for unit in units)
    return encoded.decode("utf-16-be", "replace").replace("\ufffd", " ").replace("\0", " ")


def _term(typed: re.Match[str]) -> Term:
    if typed["bare"] is None:
        return Term(plain(typed["quoted"]), is_excluded=bool(typed["minus"]))
    return Term(plain(typed["bare"]), is_excluded=typed["bare"].startswith("-"))


def _is_plain(words: Sequence[str]) -> bool:
    return all(word.isascii() and len(word) < LONGEST_PLAIN for word in words)


def _visible_form(words: Sequence[str]) -> str:
    form = r"[\W_]*".join(map(re.escape, words))
    # Between signs that are words by themselves there is no boundary.
    before = "" if _WORD_ITSELF.match(form[0]) else r"(?<![^\W_])"
    after = "" if _WORD_ITSELF.match(form[-1]) else r"(?![^\W_])"
    return before + form + after


def _stored_form(word: str) -> str:
    return "".join(_stored_character(character) for character in word)


def _stored_character(character: str) -> str:
    """A letter as JSON may contain it: itself, or escaped once or, in JSON within JSON, more often."""
    if character.isascii():
        return character
    cases = dict.fromkeys(case for case in (character, character.lower(), character.upper()) if len(case) == 1)
    return "(?:" + "|".join(form for case in cases for form in (case, _escaped(case))) + ")"


def _escaped(character: str) -> str:
    return "".join(rf"\\+u{unit:04x}" for unit in _utf16_units(character))


def _utf16_units(character: str) -> Iterator[int]:
    encoded = character.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(encoded[place : place + 2]) for place in range(0, len(encoded), 2))
