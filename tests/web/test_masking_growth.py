"""Masks, screening and search on hostile texts: twice the text takes at most two and a half times the processor time.

This is the only kind of time that a test asserts. A text is built to be tried from many beginnings: separators without
an end, prefixes without a rest, names without a value.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

from memadmin.client import secret_text
from memadmin.values import keys, numbers, rewriting, said_secrets
from memadmin.web import markdown, safe_text
from memadmin.web.masking import emails, finding, mask_text, masks
from memories_app.learning import risk_detection, risk_numbers
from sessions_app import masking, search_syntax
from sessions_app.masking import Masker
from sessions_app.redaction.text_to_redact import TextToRedact
from sessions_app.search import snippets
from sessions_app.search_syntax import ParsedSearch
from sessions_app.timeline import decode, media

pytestmark = pytest.mark.slow

CHARACTERS = 10_000
GROWTH = 2.5
TRIALS = 6
UNMEASURABLE = 0.02
"""Seconds of processor time; an expression whose time grows with the square takes several times as long."""

UNITS = (
    *("eyJa.", "eyJ", "eyJ-", "sk-", "sk-a1", "ghp_", "npm_a1", "glagent-a", "xoxb-1-", "AKIA", "T3BlbkFJ"),
    *("BEGIN RSA PRIVATE KEY ", "-----END ", "//a/:_authToken= ", "://a:", "hooks.slack.com/services/T", "AccountKey="),
    *("secret", "secret ", "secret=", "secret='", "secret`a", "secret`;", "secret == ", "`a`==", "key   ", "aws pw '"),
    *("password:", "pwd[", "key" + " " * 500, "Authorization: ", "Bearer ", "bearer a", "Cookie: a=b; ", "cookie:"),
    *("password is ", "password for a ", "a is my password ", "pin ", "PIN 12 34 ", "my pin is a-", "code d'"),
    *("パスワード", "パスワードは", "aがパスワード", "パスワードを ", "clave: 12, ", "password\u0301 is "),
    *("4", "4 ", "4242 ", "4242\t", "4242/", "4242%20", "4.", "1 (2) ", "+1", "+1234567 ", "00 1"),
    *("DE89", "GB00A1", "AA00 A", "@", "a@", "a@b.", "a@b.c", "%40", "a" * 60 + "@", "\uff20", ".", "a.", "-", "_"),
    *("\\", "\\\\u", "\\\\n ", '\\"', '"', '"a', '"a":', "[", "{", "<"),
    *("[key \u2022\u2022\u2022\u2022 ", "[e-mail \u2022\u2022\u2022\u2022@"),
    *("ignore ", "ignorier", "you ", "do not ", "http ", "www", "system  ", "\u5ffd\u7565", "</ ", "always"),
    *(" ", "\n", "\u200b", "e\u0301", "\u0130", "\u00e9", "a", "A9", "\U000e0100", "tea "),
)  # fmt: skip

# What a text needs for the slow expressions to be tried at all.
BAIT = f" key: pass eyJ sk- :// @ == = %40 {'a1B2' * 10} "

MODULES = (
    *(keys, numbers, rewriting, said_secrets, emails, finding, masks, masking, secret_text, safe_text, markdown),
    *(risk_detection, risk_numbers, search_syntax, snippets, decode, media),
)

NOT_ON_EVERY_TEXT = frozenset(("NAMED_LONG", "STRING", "_TOKEN"))
"""Expressions for texts without long runs of blanks, which `keys.find` tries below, and for valid JSON."""


def compiled(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Each expression of a module, in a variable or a collection, with a name for it."""

    def within(name: str, value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            yield name, value
        elif isinstance(value, dict):
            for key, member in value.items():
                yield from within(f"{name}[{key}]", member)
        elif isinstance(value, tuple | list | frozenset):
            for member in value:
                yield from within(name, member)

    for name, value in vars(module).items():
        if name not in NOT_ON_EVERY_TEXT:
            yield from within(f"{module.__name__}.{name}", value)


FOUND = [(name, form) for module in MODULES for name, form in compiled(module)]
EXPRESSIONS = {(form.pattern, form.flags): (name, form) for name, form in reversed(FOUND)}.values()
"""Each once, under its first name: thousands of listed phrases go on in a few hundred ways."""


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def faults_of(work: Callable[[str], object], unit: str, characters: int = CHARACTERS, name: str = "") -> list[str]:
    """What is said of work whose time grows faster than the text; empty if it does not."""
    short, long = repeated(unit, characters), repeated(unit, 2 * characters)
    one, two = float("inf"), seconds(lambda: work(long))
    for _ in range(TRIALS):
        if two <= UNMEASURABLE:
            return []
        one = min(one, seconds(lambda: work(short)))
        if two <= GROWTH * one:
            return []
        two = min(two, seconds(lambda: work(long)))
    return [f"{name} on {unit[:20]!r}: {two:.3f} s of processor time, and {one:.3f} s for half of it"]


def faults_on(units: Iterable[str], **works: Callable[[str], object]) -> list[str]:
    return [fault for unit in units for name, work in works.items() for fault in faults_of(work, unit, name=name)]


def repeated(unit: str, characters: int) -> str:
    return (unit * characters)[:characters] + BAIT


def consumed(iterator: Iterator[object]) -> None:
    for _ in iterator:
        pass


def test_expressions_are_found() -> None:
    names = {name for name, _ in EXPRESSIONS}
    assert {"memadmin.values.keys.JWT", "sessions_app.search_syntax._ESCAPED"} <= names
    assert len(EXPRESSIONS) - sum(map(is_listed, names)) > 80
    assert sum(map(is_listed, names)) > 300


def is_listed(name: str) -> bool:
    """Whether an expression is tried only where its first word is: hundreds of phrases that give an order to agents."""
    return ".LISTED[" in name


of_each_kind = pytest.mark.parametrize(
    "units", [UNITS[::4], pytest.param(UNITS, marks=pytest.mark.release)], ids=["every fourth unit", "all units"]
)


@of_each_kind
@pytest.mark.parametrize("listed", [False, pytest.param(True, marks=pytest.mark.release)])
def test_each_expression_is_linear(listed: bool, units: Sequence[str]) -> None:
    faults = [
        fault
        for unit in units
        for name, form in EXPRESSIONS
        if is_listed(name) == listed
        for fault in faults_of(lambda text, form=form: consumed(form.finditer(text)), unit, 4_000, name)  # type: ignore[misc]
    ]
    assert faults == []


SEARCH = ParsedSearch.parse('tea "a b" secret')


def in_one_window(text: str) -> None:
    """The finders, without windows to bound their time."""
    consumed(keys.whole_words(text, keys.find(text)))
    runs = numbers.runs_of_digits(text)
    consumed(numbers.find_cards(text, runs))
    consumed(numbers.find_grouped_cards(text))
    consumed(emails.find(text))


@of_each_kind
def test_the_work_is_linear(units: Sequence[str]) -> None:
    faults = faults_on(
        units,
        in_one_window=in_one_window,
        mask_text=mask_text,
        matches_stored=SEARCH.matches_stored,
        matches_text=SEARCH.matches_text,
        readable_texts=lambda text: consumed(snippets.readable_texts(text)),
        mark_matches=lambda text: safe_text.mark_matches(text, SEARCH.visible_pattern()),
        risks_of=risk_detection.risks_of,
    )
    assert faults == []


REDACTED = (
    *("Alvarez", "Émile", "e\u0301mile", "\u00fcber \u00e9t\u00e9", "\U0001f600 tea", "/srv/data", '"name"', "xyz"),
    *("C:\\temp", "\\\\server\\share", "\\\u00e9t\u00e9", "end\\", "a\n\nb", "\u6c34\u6c34\u6c34"),
    "ab" + "\n" * 40 + "c",
)  # fmt: skip
BACKSLASHES = (
    "\\",
    "\\\\u",
    "\\\\n ",
    "\\" * 500 + "u00",
    "\\" * 500 + "x",
    "C:\\",
    "\r\n",
    "ab" + "\r\n" * 30,
    "e\u0301",
    '"a',
)


def test_redaction_is_linear() -> None:
    faults = [
        f"{text!r}: {fault}"
        for text, target_text in ((text, TextToRedact.parse(text)) for text in REDACTED)
        for fault in faults_on(
            BACKSLASHES,
            is_in=target_text.is_in,
            replaced=lambda stored, target_text=target_text: target_text.replaced(stored + "\\", "[redacted]"),  # type: ignore[misc]
            has_part_in=target_text.has_part_in,
        )
    ]
    assert faults == []


# Beginnings of listed phrases and of addresses, without an end.
RISKY = (
    "ignore all ",
    "always ",
    "is ",
    "treat them ",
    "passport ",
    "born ",
    "1 Oak ",
    "via A ",
    "12 x ",
    "a" * 40,
    "calle a ",
)


def test_what_is_built_on_it_is_linear() -> None:
    faults = faults_on(
        ["eyJa.", "BEGIN RSA PRIVATE KEY ", "a@b.c ", "4242\t", "ignore \u200b", *RISKY],
        secret_text=secret_text.mask_text,
        risks_of=risk_detection.risks_of,
        masker=lambda text: Masker.of_one_item().json(text),
        snippet=lambda text: snippets.snippet(text, SEARCH.visible_pattern()),
    )
    assert faults == []


@pytest.mark.parametrize("member", ['"a{}@example.com": 1', '"{}": "a@example.com"', '"{}": [["4242424242424242"]]'])
def test_many_members_are_linear(member: str) -> None:
    def mask(count_as_text: str) -> None:
        raw = "{" + ",".join(member.format(number) for number in range(len(count_as_text) // 10)) + "}"
        Masker.of_one_item().json(raw)

    assert faults_of(mask, "0", 20_000) == []


def test_a_variant_that_follows_each_part_of_a_word_is_noticed() -> None:
    """The broken variant: from each match on to the end of the whole word."""
    form, rest = re.compile(r"eyJ[\w=-]+\.[\w=-]+"), re.compile(r"[\w=.-]*")
    assert faults_of(lambda text: [rest.match(text, match.end()) for match in form.finditer(text)], "eyJa.")
