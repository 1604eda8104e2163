"""Passwords, PINs, codes and keys said in plain words of English, German, French, Spanish and Japanese.

"My password is X", "X is my password", "PIN für die Karte lautet X", "パスワードは X です".
A link (a verb, a colon) connects a name of a secret to a value. What looks like a secret, with digits or symbols,
counts after any link; ordinary words count only for passwords, and unless they describe one ("is wrong", "is too
long"). A bounded part of the text around each name is read, so the time grows with the length of the text. The words
are in said_secrets.toml.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

from memadmin.values.rewriting import RewrittenText

Kind: TypeAlias = Literal["code", "phrase", "password"]
Place: TypeAlias = tuple[int, int]

SHORTEST = 4
SHORTEST_CODE = 3
LONGEST_NAME = 40
LONG_NUMBER = 6
LONG_KEY = 16
"""Number of characters from which a key has no digits."""

MOST_WORDS: dict[Kind, int] = {"password": 5, "phrase": 24, "code": 0}
"""Maximum of ordinary words in a secret."""

FEWEST_OF_PHRASE = 4
"""Number of words from which they are a passphrase, also if the first could describe one: "correct horse ..."."""

BEFORE = 120
"""Characters before a name that may contain its value, or the verb of a change."""

GAP_WORDS = 8
NEAR_WORDS = 5
BACK_WORDS = 4
"""Words between a name and its link, and how many of them may precede an ordinary word."""

_LISTS = tomllib.loads((Path(__file__).parent / "said_secrets.toml").read_text(encoding="utf-8"))
WORDS = {name: frozenset(words.split()) for name, words in _LISTS["words"].items()}
NO_VALUES = WORDS["function"] | WORDS["states"]
DETERMINERS = WORDS["possessive"] | WORDS["article"]
FOR = frozenset(("for", "fur", "pour", "para"))
AS = frozenset(("as", "als", "comme", "como")) | FOR

QUOTES = dict.fromkeys("“”„«»「」『』", '"') | dict.fromkeys("\u2018\u2019\u2039\u203a\u00b4`", "'")
DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
SIGNS = {ord(sign): ord(plain) for sign, plain in (QUOTES | DASHES).items()}
ACCENTS = re.compile("[\u0300-\u036f]+")


NO_LETTER = re.compile(r"[\W_]+")


class SecretName(NamedTuple):
    """A name of a secret in a text."""

    start: int
    end: int
    kind: Kind
    is_latin: bool


class _Folding(dict[int, int]):
    """The small letter without accents for each character, and plain signs for typographic and full-width ones."""

    def __missing__(self, code: int) -> int:
        sign = unicodedata.normalize("NFKC", chr(code))
        parts = unicodedata.normalize("NFKD", sign)
        if parts[0].isascii() and all(map(unicodedata.combining, parts[1:])):
            sign = parts[0]
        sign = sign.lower()
        # One character each, so that positions stay.
        self[code] = SIGNS.get(code) or (ord(sign) if len(sign) == 1 else code)
        return self[code]


FOLDED = _Folding()

# --- Names ------------------------------------------------------------------------------------------------------------


NAMES: dict[str, Kind] = {
    name: kind
    for kind, listed in _LISTS["names"].items()
    for name in map(str.strip, re.split(r"[|\n]", listed.strip()))
}
LAST_WORDS = {name.rpartition(" ")[2] for name in NAMES}
STEMS = {
    stem: [(word, word.find(stem)) for word in sorted(LAST_WORDS, key=len, reverse=True) if stem in word]
    for stem in sorted(LAST_WORDS)
    if not any(other in stem for other in LAST_WORDS if other != stem)
}
"""Strings of which each name contains one in its last word: with these words, and the place of the string in them."""

LONG_WORD = 8
"""Length from which a name is also the end of a compound: Kundenpasswort."""


def _ending_in(word: str) -> re.Pattern[str] | None:
    """The names of several words with this last one, in a group for each kind; they may be written as one word."""
    names: dict[Kind, list[str]] = {}
    for name, kind in NAMES.items():
        if name.endswith(f" {word}"):
            names.setdefault(kind, []).append(name.replace(" ", r"s?[\s_'-]{0,2}"))
    groups = [f"(?P<{kind}>{'|'.join(forms)})" for kind, forms in names.items()]
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(groups)})\Z") if groups else None


ENDING_IN = {word: _ending_in(word) for word in LAST_WORDS}

OF_SOMETHING_ELSE = re.compile(
    r"[\s-]{0,2}(?:manage|reset|polic|field|generat|protect|hash|length|change|hint|link|page|box|strength|requirement"
    r"|expir|histor|vault|pad\b|entry|prompt|rule|feld|regel|richtlinie|lange|schutz|anderung|verwaltung|管理|の?再設定)"
)
"""Nouns after a name that make it the name of something else: a password manager, the PIN pad."""


MEMBERS = tuple(
    joined for name in NAMES if len(joined := name.replace(" ", "")) >= LONG_WORD - 1 or not joined.isascii()
)
"""Endings of names of members. Shorter ones also have other meanings: "clave" is a key, too."""


def is_name(name: str) -> bool:
    """Whether a member is named like a secret: `accessCode`, `recovery_codes`, `Passwort`."""
    return NO_LETTER.sub("", ACCENTS.sub("", name).translate(FOLDED)).removesuffix("s").endswith(MEMBERS)


# --- Links ------------------------------------------------------------------------------------------------------------

_MORE = (
    r"(?:(?:now|currently|still|just|simply|always|also|jetzt|nun|aktuell|einfach|immer|maintenant|toujours|simplement"
    r"|ahora|siempre|actualmente|simplemente|the|el|le|la|der|die|das)\s{1,5})?"
)
_VERB = (
    r"(?:is|are|was|were|would be|will be|equals|reads|remains|ist|sind|war|ware|soll|lautet|lauten|heisst|heißt|est"
    r"|sont|etait|sera|serait|es|son|era|seria)"
)
LINK = re.compile(
    r",?[^\S\n]{0,3}(?:"
    r"(?P<colon>[\"'\]*_]{0,3}\s{0,10}(?::=?|={1,2}|[-=]>|→|\|)\s{0,10})"
    r"|\s(?P<change>(?:(?:(?:has been|was|is|a ete|fue|ha sido)\s\w{3,15}|wurde)\s)?(?:to|into|auf|en|por|pour|a)"
    r"\s{1,5})"
    rf"|(?P<verb>'s\s{{1,5}}|\s{_VERB}(?:\s?[:=]\s{{0,5}}|[.…]{{1,3}}\s{{0,5}}|\s{{1,5}}){_MORE})"
    r"|[.?!;-]{0,2}\s{0,3}(?:(?:it|that|ce?)'(?:s|est)|(?:it|that|es|sie|das|ce) (?:is|ist|lautet|est))"
    rf"\s{{1,5}}{_MORE}"
    r"|\s(?:(?:verwende|benutze|nutze|nehme|habe|hat|hatte) (?:ich|wir|er|sie)|(?:i|we) use|j'utilise|uso|utilizo)"
    r"\s{1,5}"
    r"|(?P<bare>\s(?:-\s)?))"
)
LINK_JA = re.compile(
    r"\s{0,3}(?:(?P<change>を)|[はがも]、?|(?P<colon>[\"'\]*_]{0,3}\s{0,10}[:=])|(?P<bare>\s|))\s{0,5}"
)
AFTER_JA = re.compile(r"\"?\s{0,3}(?:です|だ|である|でし|で[、。]|に|と|なので|[、。,.!]|\n|\Z)")
BEFORE_JA = re.compile(
    r"([!-~]{3,60})\"?\s{0,3}(?:が|は|というのが)\s{0,3}(?:[\u3040-\u30ff\u4e00-\u9fff]{1,8}の)?\s{0,3}\Z"
)
AFTER_NAME = re.compile(r"(?:es|en|s|n)?(?![a-z0-9])(?:\s{0,2}\([^()\n]{1,40}\))?")
GAP_WORD = re.compile(r",?[ \t]{1,3}([^\s!?;:=(),|]{1,60}(?<!\.))")
CHANGES = re.compile(r"\b(?:chang|set\b|updat|made\b|switch|modifi|cambi|puse\b|mis\b|remplac)")

# --- Values -----------------------------------------------------------------------------------------------------------

QUOTED = re.compile(r"[\"'*]{1,2}\s?([^\n\"'*]{1,200})(?<!\s)\s?[\"'*]")
WORD = re.compile(r"[^\s\u3001\u3002\u3040-\u30ff\u4e00-\u9fff]{1,300}")
BLANK = re.compile(r"[ \t]{1,3}")
ENDS_CLAUSE = re.compile(r"[ \t]{0,3}(?:[^\w\s]|\n|\Z|(?:and|but|so|und|aber|et|mais|y|pero)\b)")
GROUPS = re.compile(r"\d{1,6}(?:[ -]\d{1,6}){1,8}(?![^\s.,;!?)\"'])")
FURTHER = re.compile(r"[ \t]{0,2}(?:[,;/、]|\b(?:and|or|und|oder|et|ou|y|o)\b|と)?[ \t]{0,2}")
COUNTED = re.compile(
    r"[\s-]{0,2}(?:char|digit|letter|symbol|sign|word|day|week|month|year|hour|minute|second|time|attempt|percent|%|zeichen"
    r"|ziffer|stell|buchstab|tag|woche|monat|jahr|stunde|sekunde|mal\b|versuch|caract|chiffre|lettre|jour|semaine|mois|ans?\b"
    r"|heure|fois|digito|letra|cifra|dias?\b|mes|hora|vez|veces|intent|文字|桁|日|回|分|時間|か月|ヶ月|年|月)"
)
NUMBER = re.compile(
    r"\d{1,3}(?:[\W_]\d{0,3})?(?:-[a-z]+)?\Z|\d{1,3}(?:st|nd|rd|th|er|e|a|o)\Z|\d{1,2}:\d\d\Z|\d{1,5}(?:[ckm]?m|px|k?g|min|h|eur|usd|[kmg]b)\Z"
)
SYMBOL = re.compile(r"[^\W_].{0,98}[@#$%^&*_+=~<>\\!].{0,98}[^\W_]|[@#$%^&*+=~!][^\W_]{3}")
PLACEHOLDER = re.compile(r"[<{\[].{0,98}[>}\]]\Z|\$\{?[a-z_]{1,60}\}?\Z|[x*•.…_-]{1,300}\Z")
ADDRESS = re.compile(r"https?:|www\.|[^@\s]{1,64}@[\w-]{1,60}\.")
DESCRIBES = (
    "ing",
    "ed",
    "able",
    "ible",
    "less",
    "ful",
    "ally",
    "ably",
    "tely",
    "ado",
    "ada",
    "ido",
    "ida",
    "ee",
    "ees",
)
SHORTEST_DESCRIPTION = 6
BEFORE_WORD = "([{\"'*_~¿¡|"
AFTER_WORD = ".,;:?)]}\"'*_~…|"


def find(text: str) -> Iterator[Place]:
    """Positions of secrets in a text."""
    if not text.isascii() and ACCENTS.search(text):
        whole = RewrittenText(text, ACCENTS, lambda accents: "")
        yield from (whole.in_original(start, end) for start, end in _find(whole.text.translate(FOLDED)))
    else:
        yield from _find(text.translate(FOLDED))


def _find(text: str) -> Iterator[Place]:
    for name in _names_in(text):
        if not OF_SOMETHING_ELSE.match(text, name.end):
            for find_value in (_after, _before):
                if (place := find_value(text, name)) is not None:
                    yield place


def _names_in(text: str) -> Iterator[SecretName]:
    for stem, words in STEMS.items():
        place = text.find(stem)
        while place >= 0:
            for word, offset in words:
                if text.startswith(word, place - offset) and (name := _name_of(text, word, place - offset)):
                    yield name
                    break
            place = text.find(stem, place + len(stem))


def _name_of(text: str, word: str, start: int) -> SecretName | None:
    """The name that ends in this word, which begins at `start`."""
    end = start + len(word)
    if word.isascii() and not AFTER_NAME.match(text, end):
        return None
    form = ENDING_IN[word]
    if form and (match := form.search(text, max(end - LONGEST_NAME, 0), end)):
        return SecretName(match.start(), end, cast(Kind, match.lastgroup), word.isascii())
    is_whole = not word.isascii() or len(word) >= LONG_WORD or not text[max(start - 1, 0) : start].isalnum()
    return SecretName(start, end, NAMES[word], word.isascii()) if word in NAMES and is_whole else None


def _after(text: str, name: SecretName) -> Place | None:
    """The value that a link connects to the name before it."""
    if not (name.is_latin and text[name.end : name.end + 4].isascii()) and (place := _after_japanese(text, name)):
        return place
    follows = AFTER_NAME.match(text, name.end)
    at, is_near = follows.end() if follows else 0, True
    for count in range(GAP_WORDS if follows else 0):
        if link := LINK.match(text, at):
            is_certain = bool(link["colon"] or link["verb"])
            is_change = link["change"] and CHANGES.search(text, max(name.start - BEFORE // 2, 0), name.start)
            # "The password is the name of ..." describes it; "le code est le 4711" has digits.
            is_described = bool(link["verb"]) and not WORDS["article"].isdisjoint(link[0].split()[-1:])
            is_plain, is_bare = bool(is_near and (is_certain or is_change) and not is_described), bool(link["bare"])
            place = (
                None if count and is_bare else _value(text, link.end(), name.kind, is_plain=is_plain, is_bare=is_bare)
            )
            if place and is_change and not _is_secret(text[slice(*place)], name.kind, is_bare=False):
                place = place if ENDS_CLAUSE.match(text, place[1]) else None
            if place or is_certain:
                return place
        word = GAP_WORD.match(text, at)
        if word is None or (count == 0 and word[1] not in WORDS["near"] and word[1] not in WORDS["relative"]):
            break
        is_near &= count + 1 < NEAR_WORDS and (count > 0 or word[1] in WORDS["near"])
        at = word.end()
    return None


def _after_japanese(text: str, name: SecretName) -> Place | None:
    link = LINK_JA.match(text, name.end)
    if link is None or (name.is_latin and link[0] == ""):
        return None
    is_bare = link["bare"] is not None
    place = _value(text, link.end(), name.kind, is_plain=not (link["change"] or is_bare), is_bare=is_bare)
    return place if place and (link["colon"] or AFTER_JA.match(text, place[1])) else None


def _before(text: str, name: SecretName) -> Place | None:
    """The value that a link connects to the name after it: "X is my password", "I use X as my password"."""
    begin = max(name.start - BEFORE, 0)
    if AFTER_JA.match(text, name.end) and (value := BEFORE_JA.search(text, begin, name.start)):
        return _value(text, value.start(1), name.kind, is_plain=True, is_bare=False)
    latest = text[begin : name.start].split()[-BACK_WORDS:]
    back = next((back for back in range(1, len(latest) + 1) if latest[-back] in WORDS["link"]), 0)
    following = latest[len(latest) - back + 1 :]
    if not back or (following[0] not in DETERMINERS if following else latest[-back] not in AS):
        return None
    words = [word for word in WORD.finditer(text, begin, name.start) if any(map(str.isalnum, word[0]))][:-back]
    is_used = latest[-back] in AS
    if not words or (latest[-back] in FOR and not any(word[0] in WORDS["use"] for word in words)):
        return None
    place = _value(text, words[-1].start(), name.kind, is_plain=False, is_bare=False)
    if place or not MOST_WORDS[name.kind] or (following and following[0] in WORDS["article"]):
        return place
    return _words_before(words, MOST_WORDS[name.kind], is_used=is_used)


def _words_before(words: Sequence[re.Match[str]], most: int, *, is_used: bool) -> Place | None:
    """Ordinary words from the beginning of their sentence, or from "I use", to the last one."""
    first = len(words)
    while first > 0:
        word = words[first - 1]
        if first < len(words) and (word[0] in WORDS["use"] if is_used else word[0][-1] in AFTER_WORD):
            break
        if not _is_ordinary(word[0].strip(BEFORE_WORD + AFTER_WORD)) or len(words) - first >= most:
            return None
        first -= 1
    if is_used and not first:
        return None
    start, end = words[first].start(), words[-1].end()
    return (start, end) if end - start >= SHORTEST else None


def _value(text: str, at: int, kind: Kind, *, is_plain: bool, is_bare: bool) -> Place | None:
    """The secret that begins here. Ordinary words are one only with `is_plain`; with `is_bare` no link precedes."""
    if quoted := QUOTED.match(text, at):
        if PLACEHOLDER.match(quoted[1]):
            return None
        is_secret = _is_secret(quoted[1], kind, is_bare=is_bare)
        is_words = is_plain and kind != "code" and quoted[1] not in NO_VALUES and any(map(str.isalnum, quoted[1]))
        return quoted.span(1) if is_secret or is_words else None
    if kind == "code" and (groups := GROUPS.match(text, at)) and sum(map(str.isdigit, groups[0])) >= SHORTEST:
        return None if COUNTED.match(text, groups.end()) else (groups.start(), _end_of_list(text, groups.end(), kind))
    word = WORD.match(text, at)
    if word is None:
        return None
    start, end = _trimmed(word)
    if _is_secret(text[start:end], kind, is_bare=is_bare):
        if text[start:end].isdecimal() and COUNTED.match(text, end):
            return None
        return start, _end_of_list(text, end, kind)
    return _ordinary_words(text, start, kind) if is_plain and MOST_WORDS[kind] else None


def _trimmed(word: re.Match[str]) -> Place:
    """Position of a word without the punctuation around it."""
    start = word.end() - len(word[0].lstrip(BEFORE_WORD))
    return start, max(start, word.start() + len(word[0].rstrip(AFTER_WORD)))


def _is_secret(value: str, kind: Kind, *, is_bare: bool) -> bool:
    """Whether a value looks like a secret."""
    count = sum(map(str.isalnum, value))
    if PLACEHOLDER.match(value) or ADDRESS.match(value) or value in WORDS["no_secret"]:
        return False
    if value.isdecimal():
        shortest = {True: SHORTEST, False: SHORTEST_CODE} if kind == "code" else {True: LONG_NUMBER, False: SHORTEST}
        return count >= shortest[is_bare]
    if NUMBER.match(value):
        return kind == "code" and count >= SHORTEST and value.replace("-", "").isdecimal()
    if any(map(str.isdigit, value)):
        return count >= SHORTEST
    if is_bare:
        return False
    return count >= LONG_KEY if kind == "code" else bool(count >= SHORTEST and SYMBOL.search(value))


def _end_of_list(text: str, end: int, kind: Kind) -> int:
    """The end of further secrets after one: several codes, or words of letters and digits."""
    while (between := FURTHER.match(text, end)) and between.end() > end and (word := WORD.match(text, between.end())):
        start, following = _trimmed(word)
        value = text[start:following]
        is_mixed = any(map(str.isdigit, value)) and (kind == "code" or not value.isdecimal())
        if not is_mixed or not _is_secret(value, "code", is_bare=True) or COUNTED.match(text, following):
            break
        end = following
    return end


def _ordinary_words(text: str, start: int, kind: Kind) -> Place | None:
    """A secret of ordinary words, to the end of the clause; None where they describe a secret."""
    words: list[str] = []
    end = at = start
    while len(words) < MOST_WORDS[kind] and (word := WORD.match(text, at)):
        begin, stop = _trimmed(word)
        if (
            not any(map(str.isalnum, word[0]))
            or text[begin:stop] in WORDS["function"]
            or PLACEHOLDER.match(text[begin:stop])
        ):
            break
        words.append(text[begin:stop])
        end = stop
        blank = BLANK.match(text, stop)
        if stop < word.end() or blank is None:
            break
        at = blank.end()
    if end - start < SHORTEST or ADDRESS.match(words[0]) or NUMBER.match(words[0]):
        return None
    return (start, end) if _is_ordinary(words[0]) or len(words) >= FEWEST_OF_PHRASE else None


def _is_ordinary(word: str) -> bool:
    """Whether a word neither describes a secret nor connects other words."""
    parts = word.split("-")
    is_listed = bool({word, parts[0]} & NO_VALUES) and len(parts) < FEWEST_OF_PHRASE
    return bool(word) and not is_listed and not (len(word) >= SHORTEST_DESCRIPTION and word.endswith(DESCRIBES))
