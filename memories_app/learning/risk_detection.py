"""Detection of risks in a text before agents read it. Pure: strings in, risks out.

Detection uses word lists: a risk requires two approvers and states the reason. Risks that are not on a list are not
detected, and pages do not claim their absence.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memadmin.web.masking import SensitiveKind, find_values
from memadmin.web.safe_text import INVISIBLE
from memories_app.learning.risk_numbers import ANNOUNCED, addresses, national_ids


@dataclass(frozen=True, slots=True)
class Risk:
    """A stored flag, its sentence for reviewers, and its position in the statement: first and last character."""

    flag: str
    sentence: str
    start: int = 0
    end: int = 0


VALUES = {
    SensitiveKind.KEY: ("secret", "A password, key or token"),
    SensitiveKind.CARD: ("card_number", "A card number"),
    SensitiveKind.ACCOUNT: ("account_number", "An account number"),
    SensitiveKind.EMAIL: ("contact", "An e-mail address"),
    SensitiveKind.PHONE: ("contact", "A phone number"),
}

MARKUP = re.compile(r"</?\s*(?:system|assistant|user|memories|instructions?)\b", re.IGNORECASE)
"""Tags around which agents' instructions are built."""

# Alphabets without a case or without spaces: to ignore previous messages, or rules.
INSTRUCTION_ELSEWHERE = re.compile(
    r"\b(?:игнорир\w*|забудь\w*)\b.{0,40}\b(?:инструкци\w*|правил\w*|указани\w*)"
    r"|(?:忽略|无视|無視|忘记|忘記).{0,20}(?:指令|指示|规则|規則|提示)|(?:指示|命令|ルール|規則).{0,10}(?:無視|忘れ)"
    r"|(?:تجاهل|انس).{0,40}(?:تعليمات|قواعد|أوامر)",
    re.IGNORECASE | re.DOTALL,
)
LOOKALIKES = str.maketrans("асеіјорѕухАСЕІЈОРЅХοαε_", "aceijopsyxACEIJOPSXoae ")
"""Letters of other alphabets that look Latin, and substitutes for spaces."""

LINK = re.compile(r"\b(?:https?|ftp|file|data|javascript)\s*:\s*\S|\bwww\.\w|\]\(", re.IGNORECASE)
WORDS = re.compile(r"[^\W_]+")
LISTS = tomllib.loads((Path(__file__).parent / "risk_words.toml").read_text(encoding="utf-8"))
SENTENCES: Mapping[str, str] = {flag: section["sentence"] for flag, section in LISTS.items()}

# Bounded, so that the time grows with the length of a text and not with its square.
BETWEEN = r"\W{1,3}"
GAP = rf"(?:{BETWEEN}\w{{1,30}}){{0,6}}?"
SHORTEST_BEGINNING = 3


def risks_of(statement: str, data: Mapping[str, Any] | None = None, *, regions: Sequence[str] = ()) -> list[Risk]:
    """Risks in a memory, each kind once, in the order of the statement. `data` is checked as well."""
    beside = json.dumps(data, ensure_ascii=False, default=str) if data else ""
    found = sorted(_in_text(statement, regions), key=lambda risk: risk.start)
    found += [Risk(risk.flag, f"{risk.sentence}, in its data") for risk in _in_text(beside, regions)]
    first: dict[str, Risk] = {}
    for risk in found:
        first.setdefault(risk.flag, risk)
    return list(first.values())


def _in_text(text: str, regions: Sequence[str]) -> Iterator[Risk]:
    for value in find_values(text, regions=regions):
        flag, sentence = VALUES[value.kind]
        yield Risk(flag, sentence, value.start, value.end)
    plain = _plain(text)
    for word in WORDS.finditer(plain):
        for flag, rest in _beginning_with(word[0]):
            match = rest.match(plain, word.end())
            if match and ANNOUNCED.get(flag, _is_alone)(text, word.start(), match.end()):
                yield Risk(flag, SENTENCES[flag], word.start(), match.end())
    for start, end in national_ids(text):
        yield Risk("national_id", SENTENCES["national_id"], start, end)
    for start, end in addresses(text):
        yield Risk("address", SENTENCES["address"], start, end)
    if match := MARKUP.search(plain) or INSTRUCTION_ELSEWHERE.search(text):
        yield Risk("instruction", SENTENCES["instruction"], *match.span())
    if match := LINK.search(text):
        yield Risk("link", "Contains a link", *match.span())
    if match := INVISIBLE.search(text):
        yield Risk("invisible", "Contains invisible characters", *match.span())


def _is_alone(text: str, start: int, end: int) -> bool:
    """For risks whose words need no number near them."""
    return True


def _plain(text: str) -> str:
    """The text with equal length: lower case, no accents, look-alike and full-width letters as Latin ones."""
    if text.isascii():
        return text.lower().replace("_", " ")
    return "".join(map(_plain_sign, text)).translate(LOOKALIKES)


def _plain_sign(sign: str) -> str:
    parts = unicodedata.normalize("NFKD", sign)
    # A ligature or a fraction becomes several letters; it stays as it is.
    plain = parts[0] if all(map(unicodedata.combining, parts[1:])) else sign
    return plain.lower() if len(plain.lower()) == 1 else sign


# --- The lists, by the first word of each phrase ------------------------------------------------------------------


def _listed() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Flags and the rest of a phrase, by its first word. A beginning of words ends in *, any number is #."""
    listed: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for flag, section in LISTS.items():
        for phrase in (*section.get("words", "").split(), *section.get("phrases", "").splitlines()):
            heads, *tokens = _plain(phrase.strip()).split() or [""]
            rest = "".join(map(_between, tokens))
            for head in filter(None, heads.split("|")):
                word, apostrophe, ending = head.partition("'")
                after = rf"\W{ending}\b" if apostrophe else ""
                listed.setdefault(word, []).append((flag, re.compile(after + rest)))
    return listed


def _between(token: str) -> str:
    """The pattern of a word after the first one, with what is before it."""
    if token == "...":
        return GAP
    forms = [
        r"\d{1,12}\b"
        if form == "#"
        else re.escape(form.rstrip("*")).replace("'", r"\W") + (r"\w{0,30}" if form.endswith("*") else r"\b")
        for form in token.split("|")
    ]
    return rf"{BETWEEN}(?:{'|'.join(forms)})"


LISTED = _listed()
LONGEST_BEGINNING = max(map(len, LISTED))


def _beginning_with(word: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Phrases whose first word is this one."""
    yield from LISTED.get(word, ())
    if word.isdigit():
        yield from LISTED.get("#", ())
    for length in range(SHORTEST_BEGINNING, min(len(word), LONGEST_BEGINNING) + 1):
        yield from LISTED.get(f"{word[:length]}*", ())
