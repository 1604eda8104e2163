"""Detection of risks in a text before agents read it. Pure: strings in, risks out.

Detection uses word lists: a risk requires two approvers and states the reason. Risks that are not on a list are not
detected, and pages do not claim their absence.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memadmin.web.masking import SensitiveKind, find_values
from memadmin.web.safe_text import INVISIBLE


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

# Special categories of GDPR, article 9, by words that often indicate them.
SENSITIVE: Mapping[str, tuple[str, Collection[str]]] = {
    "health": (
        "May reveal health information",
        (
            *("health", "ill", "illness", "disease", "diagnosis", "diagnosed", "surgery", "hospital", "medication"),
            *("pregnant", "pregnancy", "disabled", "disability", "wheelchair", "allergy", "allergic", "allergies"),
            *("diabetes", "diabetic", "cancer", "depression", "anxiety", "therapy", "therapist", "insulin", "hiv"),
        ),
    ),
    "belief": (
        "May reveal a belief",
        (
            *("religion", "religious", "muslim", "islam", "christian", "catholic", "jewish", "hindu", "buddhist"),
            *("halal", "kosher", "church", "mosque", "synagogue", "atheist", "vegetarian", "vegan", "ramadan"),
        ),
    ),
    "politics": (
        "May reveal a political opinion or union membership",
        ("votes", "voted", "voter", "republican", "democrat", "conservative", "socialist", "union", "strike"),
    ),
    "origin": ("May reveal origin", ("ethnic", "ethnicity", "race", "nationality", "immigrant", "refugee", "asylum")),
    "sexuality": (
        "May reveal sex life or orientation",
        ("gay", "lesbian", "bisexual", "transgender", "sexual", "orientation", "queer"),
    ),
    "offence": ("May reveal an offence", ("convicted", "conviction", "prison", "arrested", "criminal", "probation")),
}

INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|rules?|instructions?|polic(?:y|ies)"
    r"|prompt|guidelines?|restrictions?|everything)\b"
    r"|\b(?:system|developer)\s+(?:prompt|message)\b"
    r"|\byou\s+(?:are\s+now|must|should|shall|will\s+now|have\s+to)\b"
    r"|\b(?:do\s+not|don.?t|never)\s+(?:tell|ask|verify|check|mention|reveal|refuse|log|follow)\b"
    r"|\b(?:always|never)\s+(?:approve|grant|allow|give|offer|send|pay|refund|call|use|answer|reply|respond)\b"
    r"|</?\s*(?:system|assistant|user|memories|instructions?)\b|\bjailbreak\b",
    re.IGNORECASE | re.DOTALL,
)
# The same in other languages and alphabets: to ignore previous messages, or rules.
INSTRUCTION_ELSEWHERE = re.compile(
    r"\b(?:ignorier\w*|vergiss|vergesst|vergessen\s+sie|missachte\w*|umgeh\w*)\b.{0,40}"
    r"\b(?:anweisung\w*|regeln?|vorgaben?|richtlinien?)\b"
    r"|\b(?:oubli\w*|ignor\w*|contourn\w*)\b.{0,40}\b(?:consignes?|instructions?|règles?)\b"
    r"|\b(?:ignor\w*|olvid\w*|esque[cç]\w*|dimentic\w*)\b.{0,40}"
    r"\b(?:instruccion\w*|instruç\w*|istruzion\w*|reglas?|regras?|regole)\b"
    r"|\b(?:игнорир\w*|забудь\w*)\b.{0,40}\b(?:инструкци\w*|правил\w*|указани\w*)"
    r"|(?:忽略|无视|無視|忘记|忘記).{0,20}(?:指令|指示|规则|規則|提示)|(?:指示|命令|ルール|規則).{0,10}(?:無視|忘れ)"
    r"|(?:تجاهل|انس).{0,40}(?:تعليمات|قواعد|أوامر)",
    re.IGNORECASE | re.DOTALL,
)
AUTHORITY = re.compile(
    r"\b(?:treat|regard|handle|trust)\s+(?:them|him|her|me|us|this|the)\b.{0,40}\b(?:as|like)\b"
    r"|\b(?:is|are|am|be|as|call\s+(?:me|him|her|them))\s+(?:also\s+)?(?:an?\s+|the\s+|our\s+|your\s+)?(?:\w+\s+)?"
    r"(?:admins?|administrators?|superusers?|super\s+users?|root)\b"
    r"|\b(?:is|are|am)\s+(?:an?\s+|the\s+)?(?:\w+\s+)?(?:owner|employee|manager|supervisor|member|developer|operator|staff)s?"
    r"\s+(?:of|at|for|in)\s+(?:this|the|our|your)\s+(?:shop|store|company|service|platform|system|team|site)\b"
    r"|\b(?:admin|administrator|root|elevated|special|full|unlimited)\s+(?:rights?|access|privileges?|permissions?)\b"
    r"|\b(?:is|are|am)\s+(?:authori[sz]ed|allowed|permitted|entitled)\s+to\b"
    r"|\bwithout\s+(?:any\s+|further\s+)?(?:verification|verifying|authentication|authori[sz]ation|approval)\b"
    r"|\b(?:ist|bin|sind)\s+(?:ein\w*\s+|der\s+|die\s+)?admin\w*|\bbehand\w+\s+(?:ihn|sie|mich)\s+(?:als|wie)\b"
    r"|\b(?:est|suis)\s+(?:une?\s+|l.)?administrat\w+|\btraite\w*[- ](?:le|la|les|moi)\s+comme\b"
    r"|\b(?:es|soy)\s+(?:una?\s+|el\s+|la\s+)?administrador\w*|\btr[aá]t\w+\s+como\b",
    re.IGNORECASE | re.DOTALL,
)
"""A role or rights that the text claims for its subject: an agent would act on it."""
LOOKALIKES = str.maketrans("асеіјорѕухАСЕІЈОРЅХοαε_", "aceijopsyxACEIJOPSXoae ")
"""Letters of other alphabets that look Latin, and substitutes for spaces."""

LINK = re.compile(r"\b(?:https?|ftp|file|data|javascript)\s*:\s*\S|\bwww\.\w|\]\(", re.IGNORECASE)
WORDS = re.compile(r"[^\W\d_]+")

CATEGORY_OF = {word: flag for flag, (_, words) in SENSITIVE.items() for word in words}


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
    for word in WORDS.finditer(text):
        if flag := CATEGORY_OF.get(word[0].lower(), ""):
            yield Risk(flag, SENSITIVE[flag][0], *word.span())
    if match := INSTRUCTION.search(_as_read(text)) or INSTRUCTION_ELSEWHERE.search(text):
        yield Risk("instruction", "Possible instruction to the agent", *match.span())
    if match := AUTHORITY.search(_as_read(text)):
        yield Risk("authority", "Claims a role or special rights", *match.span())
    if match := LINK.search(text):
        yield Risk("link", "Contains a link", *match.span())
    if match := INVISIBLE.search(text):
        yield Risk("invisible", "Contains invisible characters", *match.span())


def _as_read(text: str) -> str:
    """The text with equal length, with full-width and look-alike letters as Latin ones."""
    if text.isascii():
        return text.replace("_", " ")
    plain = (unicodedata.normalize("NFKC", sign) for sign in text)
    return "".join(one if len(one) == 1 else sign for one, sign in zip(plain, text, strict=True)).translate(LOOKALIKES)
