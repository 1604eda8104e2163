"""Distiller that uses rules: sentences in which users state wishes, preferences and facts. Without a model and cost.

A rule matches only the beginning of a sentence, so it finds little, but each result is explainable. Questions, quotes,
code and conditional sentences are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memadmin.client.secret_text import MASKED
from memories_app.learning.distillers.types import Before, DistillationResult, DistilledMemory, SessionMessage

LONGEST_SENTENCE = 300
LONGEST_OBJECT = 160

SENTENCES = re.compile(r"[^\n.!?。]+(?:[.!?。](?![\s\n]|$)[^\n.!?。]*)*[.!?。]*")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
LEAD = (
    r"^\W*(?:(?:and|but|so|also|well|ok|okay|yes|no|hi|hello|hey|oh|actually|thanks|thank you|sorry|by the way|btw"
    r"|please note|just so you know|for the record)\b[\s,:!-]*)*"
)
CLAUSE_ENDS = re.compile(
    r"\s*(?:[,;]\s+(?:but|so|because|since|and|which|please|can|could|is|do)\b|\s+(?:because|but)\b).*$"
)
POINTING = re.compile(
    r"^(?:it|this|that|these|those|them|him|her|your|you|to\s+(?:know|ask|see|hear)|how|what)\b", re.I
)

# Temporary objects ("my order"); statements about them are not worth remembering.
PASSING = frozenset(
    {
        *("question", "problem", "issue", "order", "booking", "point", "guess", "concern", "request", "idea", "plan"),
        *("package", "parcel", "flight", "ticket", "case", "message", "reply", "answer", "mistake", "bad", "apologies"),
        *("understanding", "refund", "payment", "card", "account", "password", "session", "screen", "app", "fault"),
        *("connection", "internet", "computer", "phone", "turn", "last", "first", "next"),
    }
)
LIKED = re.compile(r"^(?:favou?rite|preferred|usual)\b", re.I)


@dataclass(frozen=True, slots=True)
class SentenceRule:
    """The beginning of a sentence, and the memory derived from it: kind, statement, key and confidence."""

    begins: re.Pattern[str]
    kind: str
    says: Callable[[re.Match[str]], str]
    confidence: float
    key: str = ""
    is_explicit: bool = True


def _rule(
    begins: str, kind: str, says: str, confidence: float, *, key: str = "", is_explicit: bool = True
) -> SentenceRule:
    pattern = re.compile(LEAD + begins, re.IGNORECASE)
    return SentenceRule(pattern, kind, lambda match: says.format(_object(match)), confidence, key, is_explicit)


REST = r"\s+(?P<object>\S.*)"
AM = r"i(?:.m|\s+am)"
NOT = r"(?:do\s+not|don.?t|cannot|can.?t|never)"

RULES = (
    _rule(
        rf"i(?:.d|\s+would)?\s+(?:always\s+|really\s+|much\s+|strongly\s+)?prefer{REST}",
        "preference",
        "Prefers {}.",
        0.9,
    ),
    _rule(rf"i(?:.d|\s+would)\s+(?:much\s+)?rather{REST}", "preference", "Would rather {}.", 0.8),
    _rule(rf"(?:please|pls)\s+always{REST}", "preference", "Asks to always {}.", 0.9),
    _rule(rf"(?:please|pls)\s+never{REST}", "preference", "Asks to never {}.", 0.9),
    _rule(rf"always{REST},?\s+please", "preference", "Asks to always {}.", 0.85),
    _rule(r"(?:from\s+now\s+on|in\s+(?:the\s+)?future)[,:]?" + REST, "preference", "From now on: {}.", 0.85),
    _rule(rf"(?:please\s+)?(?:call|address)\s+me{REST}", "preference", "Wants to be called {}.", 0.85, key="name"),
    _rule(rf"{AM}\s+allergic\s+to{REST}", "fact", "Is allergic to {}.", 0.95),
    _rule(
        rf"{AM}\s+(?:a\s+)?(?P<object>vegetarian|vegan|pescatarian|teetotal|diabetic|left-handed)\b",
        "fact",
        "Is {}.",
        0.9,
    ),
    _rule(
        rf"i\s+{NOT}\s+(?P<object>(?:eat|drink|smoke|drive|fly|use|want|like)\s+\S.*)",
        "preference",
        "Does not {}.",
        0.75,
    ),
    _rule(rf"i\s+live\s+in{REST}", "fact", "Lives in {}.", 0.85, key="home"),
    _rule(r"i\s+work\s+(?P<object>(?:at|for|as|in)\s+\S.*)", "fact", "Works {}.", 0.8, key="work"),
    _rule(rf"i\s+speak{REST}", "fact", "Speaks {}.", 0.75),
    _rule(rf"i\s+(?:really\s+|always\s+)?(?:like|love){REST}", "preference", "Likes {}.", 0.6, is_explicit=False),
    _rule(rf"i\s+(?:actually\s+)?meant{REST}", "fact", "Meant {}, and was misunderstood.", 0.4, is_explicit=False),
)
"""In this order; the first matching rule applies."""

MINE = re.compile(LEAD + r"my\s+(?P<what>[^\W\d]\w*(?:[ -]\w+){0,3}?)\s+(?:is|are)\s+(?P<object>\S.*)", re.IGNORECASE)

# In these languages the sentence itself is kept: rules cannot rephrase it.
OWN_WORDS = re.compile(
    r"^\W*(?:ich\s+(?:bevorzuge|möchte\s+lieber|hätte\s+lieber|mag\s+kein)|ich\s+bin\s+allergisch|bitte\s+(?:immer|nie)"
    r"|je\s+préfère|je\s+suis\s+allergique|prefiero|soy\s+alérgic[oa]|por\s+favor,?\s+siempre|prefiro"
    r"|sou\s+alérgic[oa])\b",
    re.IGNORECASE,
)


class RulesDistiller:
    name = "rules/1"

    def read(self, said: Sequence[SessionMessage], *, before: Before) -> DistillationResult:
        """The matches of the rules, without summaries."""
        new = (one for one in said if one.speaker == "user" and not one.is_context)
        return DistillationResult([found for one in new for found in found_in(one)])


def found_in(said: SessionMessage) -> Iterator[DistilledMemory]:
    for sentence in sentences_of(said.text):
        if found := _learned(sentence, said):
            yield found


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a message, without code and quoted lines."""
    # The mask of a secret may include the end of its sentence.
    text = FENCED.sub("\n", text).replace(MASKED, f"{MASKED}\n")
    for line in text.splitlines():
        if not line.lstrip().startswith((">", "|", "{", "[", "<")):
            for match in SENTENCES.finditer(line):
                sentence = match[0].strip()
                if 0 < len(sentence) <= LONGEST_SENTENCE and not sentence.endswith("?"):
                    yield sentence


def _learned(sentence: str, said: SessionMessage) -> DistilledMemory | None:
    for rule in RULES:
        match = rule.begins.match(sentence)
        if match and (wanted := _object(match)) and not POINTING.match(wanted):
            return DistilledMemory(
                rule.kind, rule.says(match), sentence, said, rule.key, rule.is_explicit, rule.confidence
            )
    if OWN_WORDS.match(sentence):
        return DistilledMemory("preference", f"Said: {sentence}", sentence, said, confidence=0.7)
    if match := MINE.match(sentence):
        return _mine(match, sentence, said)
    return None


def _mine(match: re.Match[str], sentence: str, said: SessionMessage) -> DistilledMemory | None:
    what, value = match["what"].lower(), _object(match)
    if not value or PASSING & set(re.split(r"[ -]", what)) or POINTING.match(value):
        return None
    kind = "preference" if LIKED.match(what) else "fact"
    return DistilledMemory(
        kind, f"Their {what} is {value}.", sentence, said, re.sub(r"\W+", "_", what)[:80], True, 0.75
    )


def _object(match: re.Match[str]) -> str:
    """The object of a sentence, without following clauses. Empty if it is too long."""
    found = CLAUSE_ENDS.sub("", match["object"]).strip(" \t.,;:!。")
    return found if len(found) <= LONGEST_OBJECT else ""
