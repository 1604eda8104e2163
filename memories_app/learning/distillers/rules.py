"""Distiller that uses rules: sentences in which users state lasting wishes, preferences and facts. No model, no cost.

A rule matches only the beginning of a sentence, and the rest has to make sense without the conversation: what points at
something said before, or belongs to one order or one day, is not proposed. Statements are in the third person, and a
sentence that cannot be put so is left out. The rules find little, so that most of what they propose is worth a
reviewer's time; docs/distilling.md has the figures.

Notes of operators on answers, and ratings with a comment, are proposed in their own words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memadmin.client.secret_text import MASKED
from memories_app.learning.distillers.types import (
    OPERATOR,
    RATING,
    Before,
    DistillationResult,
    DistilledMemory,
    SessionMessage,
)
from memories_app.learning.risk_detection import risks_of

LONGEST_SENTENCE = 300
LONGEST_OBJECT = 120
LONGEST_NOTE = 400

LISTS = tomllib.loads((Path(__file__).parent / "rule_words.toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(LISTS[name].split())


def _any_of(name: str) -> str:
    """A pattern of any word of a list, the longest first."""
    return "(?:" + "|".join(re.escape(word) for word in sorted(_words(name), key=len, reverse=True)) + ")"


PASSING, POINTING, VAGUE, FIGURES = map(_words, ("passing", "pointing", "vague", "figures"))
KNOWN, REMARKS, TRAILING, CONTACT = map(_words, ("known", "remarks", "trailing", "contact"))
JUDGEMENTS, AMOUNTS, ARTICLES = map(_words, ("judgements", "amounts", "articles"))
LOOSE_ENDS, NO_SUBJECTS = map(_words, ("loose_ends", "no_subjects"))

SENTENCES = re.compile(r"[^\n.!?。]+(?:[.!?。](?![\s\n]|$)[^\n.!?。]*)*[.!?。]*")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
LEAD = (
    r"^\W*(?:(?:and|but|so|also|well|ok|okay|yes|yeah|yep|no|hi|hello|hey|oh|actually|honestly|personally|haha|lol|plus"
    r"|thanks|thank you|sorry|by the way|btw|please note|just so you know|for the record|cool|nice)\b[\s,:!-]*)*"
)
# Where another clause begins; "and" begins one only before a subject or an auxiliary verb. Conditions ("when", "if",
# "unless") stay: without them a sentence says something else.
CLAUSE_ENDS = re.compile(
    r"\s*(?:[;()~*\"]|:\)|\s--?\s"
    r"|,?\s+(?:but|because|cause|cuz|since|so|which|although|even\s+though)\b"
    r"|,\s*(?:please|can|could|would|is|am|do|does|they|its?|it.s|i|i.?m|me|we|you|s?he|there|that.?s|this|mostly|as|while"
    r"|hate|love|like|though)\b"
    r"|,?\s+and\s+(?:i|i.?m|we|you|its?|it.s|they|s?he|that|that.?s|my|then|there|this|also|am|was|have|had|could|can|just)\b"
    r").*$",
    re.IGNORECASE | re.DOTALL,
)
FIRST_OR_SECOND = re.compile(
    r"\b(?:i|im|ive|me|my|mine|myself|we|us|our|ours|ourselves|you|your|yours|yourself|u|ur)\b", re.IGNORECASE
)
# The same in the other languages of which there are rules.
OTHER_FIRST_OR_SECOND = re.compile(
    r"\b(?:ich|mich|mir|mein\w*|wir|uns|unser\w*|ihr|ihnen|sie|du|dich|dein\w*|je|j|moi|mon|mes|ma|nous|notre|vous|votre"
    r"|yo|mi|mis|me|tu|usted|eu|meu|minha|você|io|mio|mia|lei)\b",
    re.IGNORECASE,
)
IDENTIFIER = re.compile(r"\d{4}|@|\w_\w|\b(?=[^\W\d_]*\d)(?=\d*[^\W\d_])\w{4,}\b")
UNSAID_RISKS = frozenset(
    (
        *("secret", "card_number", "account_number", "contact", "national_id", "passport", "birth_date", "address"),
        *("authority", "price", "link", "invisible"),
    )
)
"""Statements with these risks are not even proposed: identifiers, and rights that somebody claims."""

HEDGES = re.compile(
    r"^(?:(?:probably|definitely|actually|totally|quite|possibly|easily|certainly|gotta\s+be|ha(?:s|ve)\s+to\s+be)\s+)+",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"\s+(?:(?:so|very|pretty|this|too)\s+(?:\w+\s+)?much|a\s+lot|at\s+all|as\s+well|in\s+general|for\s+sure|by\s+far)$",
    re.IGNORECASE,
)
HOURS = re.compile(r"\b\d{1,2}(?:[:.]\d\d)?(?:\s*[ap]\.?m\b|\s+o.clock\b)", re.IGNORECASE)
NAME = re.compile(r"[^\W\d_a-zß-ÿ][\w.'’-]*(?:\s+[^\W\d_a-zß-ÿ][\w.'’-]*){0,2}")  # noqa: RUF001


# --- What the object of a sentence has to be ---------------------------------------------------------------------


def _words_in(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


def _is_lasting(text: str, *, allowed: frozenset[str] = frozenset()) -> bool:
    """Whether a text makes sense without the conversation and on another day."""
    words = _words_in(text)
    return (
        bool(words)
        and len(text) <= LONGEST_OBJECT
        and not (set(words) - allowed) & (PASSING | POINTING | REMARKS)
        and words[-1] not in LOOSE_ENDS
    )


def _is_general(text: str, *, allowed: frozenset[str] = frozenset()) -> bool:
    """Whether it names something that one can like at any time."""
    words = _words_in(text)
    if not _is_lasting(text, allowed=allowed) or words[0] in VAGUE or len(text) < 3:
        return False
    if words[0] == "the":
        return len(words) == 2 and words[1] in KNOWN
    if words[0] in ("a", "an"):
        return len(words) > 1 and words[1] not in AMOUNTS
    return words[0] != "to" or (len(words) > 1 and words[1] not in FIGURES | VAGUE)


def _is_standing(text: str) -> bool:
    """Whether it can be preferred always: nothing singled out, no number."""
    general = _is_general(text, allowed=CONTACT | {"flights", "delivery", "luggage"})
    return general and _words_in(text)[0] not in ARTICLES and not re.search(r"\d", HOURS.sub("", text))


def _is_contact(text: str) -> bool:
    """Whether it says how to reach somebody."""
    with_whom = re.search(r"\b(?:speak|talk)\w*\s+(?:to|with)\b", text)
    return bool(CONTACT & set(_words_in(text))) and _is_standing(text) and not with_whom


def _is_wish(text: str) -> bool:
    return 0 < len(text) <= LONGEST_OBJECT and not set(_words_in(text)) & (POINTING | REMARKS)


def _is_name(text: str) -> bool:
    return bool(NAME.fullmatch(text)) and not set(_words_in(text)) & (POINTING | {"i"})


def _is_place(text: str) -> bool:
    words = _words_in(text)
    if words[:1] == ["the"]:
        return words[1:] in (["us"], ["usa"], ["uk"], ["netherlands"], ["philippines"], ["countryside"], ["suburbs"])
    return _is_lasting(text) and len(words) <= 5 and words[0] not in ARTICLES | VAGUE | NO_SUBJECTS


def _is_workplace(text: str) -> bool:
    words = _words_in(text)
    return _is_lasting(text) and 2 <= len(words) <= 9 and words[1] not in VAGUE and not re.search(r"\d", text)


def _is_subject(text: str) -> bool:
    words = _words_in(text)
    return _is_lasting(text) and len(words) <= 5 and words[0] not in ARTICLES | VAGUE | NO_SUBJECTS


def _is_favourite(text: str) -> bool:
    words = _words_in(text)
    return _is_lasting(text) and 3 <= len(text) <= 60 and words[0] not in VAGUE - {"being"}


def _is_unjudged(text: str) -> bool:
    return _is_lasting(text) and not set(_words_in(text)) & JUDGEMENTS


def _is_complete(text: str) -> bool:
    """For rules whose pattern says all of the object."""
    return True


# --- The rules ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentenceRule:
    """The beginning of a sentence, and the memory derived from it.

    In `says` and `key`, `{}` is the object and `{name}` a group of `begins`. The rule applies if the object `fits`.
    """

    begins: re.Pattern[str]
    kind: str
    says: str
    fits: Callable[[str], bool]
    confidence: float
    key: str
    is_explicit: bool


def _rule(
    begins: str,
    says: str,
    fits: Callable[[str], bool],
    *,
    kind: str = "fact",
    confidence: float = 0.8,
    key: str = "",
    is_explicit: bool = True,
) -> SentenceRule:
    return SentenceRule(re.compile(LEAD + begins, re.IGNORECASE), kind, says, fits, confidence, key, is_explicit)


def _wish(begins: str, says: str, fits: Callable[[str], bool], confidence: float = 0.85, key: str = "") -> SentenceRule:
    return _rule(begins, says, fits, kind="preference", confidence=confidence, key=key)


def _taste(begins: str, says: str) -> SentenceRule:
    return _rule(begins, says, _is_general, kind="preference", confidence=0.6, is_explicit=False)


REST = r"\s+(?P<object>\S.*)"
AM = r"i(?:.?m|\s+am)"
DO_NOT = r"(?:do\s+not|don.?t|never)"
CANNOT = r"(?:can.?t|cannot|can\s+not)"
NOW = r"(?:(?:currently|also|still|originally|actually)\s+)?"
MORE = r"(?:(?:really|also|always|just|absolutely|do|truly|still|especially|personally|very|super|most)\s+){0,3}"
ENDS = (
    r"(?=\s*(?:$|[,.!;:()-])"
    r"|\s+(?:and|but|so|since|because|who|at|for|in|with|from|named|called|by|working|living)\b)"
)
OCCUPATION = rf"an?\s+(?:[\w-]+\s+){{0,3}}{_any_of('occupations')}(?:\s+of\s+(?:two|three|four|five|\d))?"
RELATION = rf"my\s+(?P<who>(?:(?:older|younger|little|big|eldest|oldest|youngest)\s+)?{_any_of('relations')})"
KIN = rf"(?:an?|one|two|three|four|five|six|seven|\d)\s+(?:[\w-]+\s+){{0,2}}?{_any_of('kin')}"


def _list_of(one: str) -> str:
    return rf"{one}\b(?:(?:\s*,\s*|\s*,?\s+(?:and|or)\s+){one}\b)*"


LANGUAGES = _list_of(rf"(?:(?:fluent|some|basic|a\s+little|only|both)\s+)?{_any_of('languages')}")
PLAYED = _list_of(rf"(?:the\s+)?{_any_of('played')}")
FAVOURITE = (
    r"my\s+(?P<what>(?:all[ -]time\s+)?(?:favou?rite|preferred|usual)"
    r"\s+(?!(?:thing|part|one|way|word|number|to|right)s?\b)[a-z][\w-]*(?:\s+[\w-]+){0,2}?)"
)

MAJOR = r"[\w-]+(?:\s+[\w-]+){0,3}?"

RULES = (
    # Wishes.
    _wish(rf"i\s+{MORE}prefer{REST}", "Prefers {}.", _is_standing, 0.9),
    _wish(rf"i(?:.?d|\s+would)\s+(?:much\s+)?{MORE}prefer{REST}", "Prefers {}.", _is_contact),
    _wish(rf"(?:please|pls)\s+always{REST}", "Asks to always {}.", _is_wish, 0.9),
    _wish(rf"(?:please|pls)\s+never{REST}", "Asks to never {}.", _is_wish, 0.9),
    _wish(rf"always{REST},?\s+please", "Asks to always {}.", _is_wish),
    _wish(rf"(?:from\s+now\s+on|in\s+(?:the\s+)?future)[,:]?\s+please{REST}", "From now on: {}.", _is_wish),
    _wish(rf"(?:please\s+)?(?:call|address)\s+me(?:\s+as)?{REST}", "Wants to be called {}.", _is_name, key="name"),
    _wish(rf"i\s+go\s+by{REST}", "Wants to be called {}.", _is_name, key="name"),
    _wish(rf"i\s+{DO_NOT}\s+(?P<does>eat|drink|wear){REST}", "Does not {does} {}.", _is_general, 0.75),
    _wish(
        rf"i\s+(?P<how>always|usually|normally|generally|typically|never|only|rarely)\s+(?P<verb>{_any_of('habits')}){REST}",
        "{how} {verb} {}.",
        _is_standing,
        0.75,
    ),
    # What has to be considered.
    _rule(rf"{AM}\s+(?:\w+ly\s+)?allergic\s+to{REST}", "Is allergic to {}.", _is_lasting, confidence=0.95),
    _rule(rf"{AM}\s+(?:an?\s+)?(?P<object>{_any_of('diets')}|{_any_of('conditions')}){ENDS}", "Is {}.", _is_complete),
    _rule(rf"{AM}\s+(?P<object>(?:lactose|gluten)\s+intolerant)\b", "Is {}.", _is_complete),
    _rule(r"i(?:\s+use|\s+need|.?m\s+in|\s+am\s+in)\s+(?P<object>a\s+wheelchair)\b", "Uses {}.", _is_complete),
    _rule(rf"i\s+{CANNOT}\s+(?P<does>eat|drink|wear){REST}", "Cannot {does} {}.", _is_general),
    _rule(rf"i\s+{DO_NOT}\s+(?P<object>smoke|drive|drink|swim)\s*[.!]*$", "Does not {}.", _is_complete),
    _rule(
        r"my\s+pronouns\s+are\s+(?P<object>(?:s?he|they|xe|ze)(?:/\w{2,6}){1,2})",
        "Their pronouns are {}.",
        _is_complete,
    ),
    # Places, work, studies, languages.
    _rule(rf"i\s+{NOW}live\s+in{REST}", "Lives in {}.", _is_place, key="home"),
    _rule(rf"{AM}\s+{NOW}from{REST}", "Is from {}.", _is_place),
    _rule(rf"i\s+grew\s+up\s+in{REST}", "Grew up in {}.", _is_place),
    _rule(rf"i\s+used\s+to\s+live\s+in{REST}", "Used to live in {}.", _is_place),
    _rule(rf"i\s+{NOW}work\s+(?P<object>(?:as|for|at|in)\s+\S.*)", "Works {}.", _is_workplace, key="work"),
    _rule(rf"{AM}\s+{NOW}(?P<object>{OCCUPATION}){ENDS}", "Is {}.", _is_unjudged, key="work"),
    _rule(rf"i\s+{MORE}want\s+to\s+be(?:come)?\s+(?P<object>{OCCUPATION}){ENDS}", "Wants to become {}.", _is_unjudged),
    _rule(rf"{AM}\s+{NOW}(?:studying|majoring\s+in){REST}", "Studies {}.", _is_subject, key="studies"),
    _rule(rf"i\s+{NOW}study{REST}", "Studies {}.", _is_subject, key="studies"),
    _rule(rf"my\s+major\s+is{REST}", "Studies {}.", _is_subject, key="studies"),
    _rule(
        rf"{AM}\s+(?:an?\s+)?(?P<object>{MAJOR})\s+major\b",
        "Studies {}.",
        _is_subject,
        key="studies",
    ),
    _rule(rf"i\s+(?:can\s+|also\s+)*speak\s+(?P<object>{LANGUAGES})", "Speaks {}.", _is_complete),
    _rule(
        rf"my\s+(?:native|first)\s+language\s+is\s+(?P<object>{LANGUAGES})",
        "Their native language is {}.",
        _is_complete,
    ),
    _rule(rf"{AM}\s+{NOW}learning\s+(?P<object>{LANGUAGES}|{PLAYED})", "Is learning {}.", _is_complete),
    # Family and animals.
    _rule(rf"{RELATION}\s+is\s+(?:called|named){REST}", "Their {who} is called {}.", _is_name, key="{who}"),
    _rule(rf"{RELATION}.?s\s+name\s+is{REST}", "Their {who} is called {}.", _is_name, key="{who}"),
    _rule(rf"{RELATION}\s+is\s+(?:also\s+)?(?P<object>{OCCUPATION}){ENDS}", "Their {who} is {}.", _is_unjudged),
    _rule(rf"{RELATION}\s+is\s+allergic\s+to{REST}", "Their {who} is allergic to {}.", _is_lasting),
    _rule(rf"i(?:\s+have|.?ve\s+got|\s+have\s+got)\s+(?P<object>{KIN}){ENDS}", "Has {}.", _is_lasting),
    _rule(rf"(?:{AM}|i.?ve\s+been|i\s+have\s+been)\s+(?P<object>married){ENDS}", "Is {}.", _is_complete),
    # Tastes.
    _wish(rf"{FAVOURITE}\s+(?P<be>is|are){REST}", "Their {what} {be} {}.", _is_favourite, 0.75, key="{what}"),
    _rule(rf"my\s+hobbies\s+are{REST}", "Their hobbies are {}.", _is_general),
    _rule(rf"i\s+(?:also\s+|still\s+|can\s+)*play\s+(?P<object>{PLAYED})", "Plays {}.", _is_complete),
    _taste(rf"i\s+{MORE}(?:like|love|enjoy|adore){REST}", "Likes {}."),
    _taste(rf"{AM}\s+an?\s+(?:(?:big|huge|massive)\s+)?fan\s+of{REST}", "Likes {}."),
    _taste(rf"{AM}\s+{MORE}(?:passionate\s+about|interested\s+in){REST}", "Is interested in {}."),
    _taste(rf"i\s+{MORE}(?:hate|dislike|detest|{CANNOT}\s+stand){REST}", "Dislikes {}."),
    _taste(rf"i\s+{MORE}(?:do\s+not|don.?t)\s+{MORE}(?:like|enjoy){REST}", "Does not like {}."),
)
"""In this order; the first rule that matches, and whose object fits, applies."""

ELSEWHERE = [
    (re.compile(rf"^\W*{re.escape(begins)}(?P<object>.*)", re.IGNORECASE | re.DOTALL), says)
    for begins, says in LISTS["elsewhere"].items()
]
"""Beginnings of sentences in other languages, and the same in the third person."""


# --- The distiller -----------------------------------------------------------------------------------------------


class RulesDistiller:
    name = "rules/2"

    def read(self, said: Sequence[SessionMessage], *, before: Before) -> DistillationResult:
        """The matches of the rules in messages of users, and notes on answers; no summaries."""
        return DistillationResult([found for one in said if not one.is_context for found in found_in(one)])


def found_in(said: SessionMessage) -> Iterator[DistilledMemory]:
    if said.speaker in (OPERATOR, RATING):
        yield from _noted(said)
    elif said.speaker == "user":
        for sentence in sentences_of(said.text):
            if found := _learned(sentence, said):
                yield found


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a message, without code, quoted lines and questions."""
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
        if match and rule.fits(about := _object(match)):
            named = {name: text.lower() for name, text in match.groupdict().items() if name != "object"}
            if "verb" in named:
                named = {"how": named["how"].capitalize(), "verb": _third_person(named["verb"])}
            statement, key = (
                rule.says.format(_in_third_person(about), **named),
                re.sub(r"\W+", "_", rule.key.format(**named)),
            )
            if not _may_be_said(statement):
                return None
            return DistilledMemory(rule.kind, statement, sentence, said, key[:80], rule.is_explicit, rule.confidence)
    for begins, says in ELSEWHERE:
        if match := begins.match(sentence):
            rest = match["object"].rstrip(" .,;:!。")
            if rest and not OTHER_FIRST_OR_SECOND.search(rest) and _may_be_said(rest):
                return DistilledMemory("preference", f"{says}{rest}.", sentence, said, confidence=0.7)
    return None


def _object(match: re.Match[str]) -> str:
    """The object of a sentence, without following clauses and fillers."""
    found = HEDGES.sub("", CLAUSE_ENDS.sub("", match["object"]).strip(" \t.,;:!。"))
    while (shorter := _without_filler(found)) != found:
        found = shorter
    return found


def _in_third_person(text: str) -> str:
    for mine, theirs in (("me", "them"), ("my", "their"), ("myself", "themselves")):
        text = re.sub(rf"\b{mine}\b", theirs, text)
    return text


def _without_filler(text: str) -> str:
    text = TAIL.sub("", text).rstrip(" ,.!:")
    head, _, last = text.rpartition(" ")
    return head if head and last.lower() in TRAILING else text


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb[-1] == "y" and verb[-2] not in "aeiou" else f"{verb}s"


def _may_be_said(statement: str) -> bool:
    """Whether a statement is in the third person, without identifiers and claimed rights."""
    if FIRST_OR_SECOND.search(statement) or IDENTIFIER.search(statement):
        return False
    return not UNSAID_RISKS & {risk.flag for risk in risks_of(statement)}


def _noted(said: SessionMessage) -> Iterator[DistilledMemory]:
    """A note in its own words. Praise is left out: it says that nothing has to change."""
    note = " ".join(said.text.split())
    if note and said.verdict <= 0:
        words = note if len(note) <= LONGEST_NOTE else note[:LONGEST_NOTE].rsplit(" ", 1)[0] + " …"
        about = "An answer was rated down" if said.verdict < 0 else "Note on an answer"
        confidence = 0.8 if said.speaker == OPERATOR else 0.5
        yield DistilledMemory("note", f"{about}: {words}", said.text, said, confidence=confidence)
