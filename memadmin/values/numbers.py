"""Numbers with a meaning: cards and accounts by python-stdnum, phones by Google's phonenumbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from unicodedata import digit

from phonenumbers import Leniency, PhoneNumberMatcher
from stdnum import iban, luhn

from memadmin.values.effort import ACCOUNT_STEPS, CARD_STEPS, PHONE_STEPS, UNLIMITED, StepLimit

CARD_DIGITS = range(13, 20)
CARD_BEGINS = frozenset("23456")
"""First digits for travel, banking and merchandising in ISO/IEC 7812; times in milliseconds begin with 1."""

MOST_GROUPS = 200
ACCOUNT_CHARACTERS = range(34, 14, -1)
PHONE_CHARACTERS = 60

# Separators of digits: spaces, dots, dashes, and invisible characters. The hyphen is escaped, because other characters
# follow in a character class.
SIGNS = "\\-.\u00b7\u2010-\u2015\u2212\u00a0\u2000-\u200f\u202f\u2060\u3000\ufeff\u00ad "
MOST_SIGNS = 3
SEVERAL_DIGITS = re.compile(rf"\d(?:[{SIGNS}()/]{{0,{MOST_SIGNS}}}\d){{5,}}")
CARD_PROPOSED = re.compile(rf"(?<!\d)\d(?:[{SIGNS}]{{0,{MOST_SIGNS}}}\d){{{CARD_DIGITS[0] - 1},}}")

# A card in the groups that are printed on it, with separators that ordinary numbers often have, too: white space in any
# form and other signs. Issuers' first digits are required, which are no years.
WIDE_SIGNS = r"(?:[\s/_+]|%20){1,3}+"
GROUPED_CARD_PROPOSED = re.compile(
    rf"\d{{4}}(?<!\d\d{{4}})(?:(?:{WIDE_SIGNS}\d{{4}}){{3}}(?:{WIDE_SIGNS}\d{{3}}(?!\d))?|{WIDE_SIGNS}\d{{6}}"
    rf"{WIDE_SIGNS}\d{{4,5}})(?!\d)"
)
FOUR_BEFORE = re.compile(rf"(?<!\d)\d{{4}}({WIDE_SIGNS})\Z")
FOUR_AFTER = re.compile(rf"({WIDE_SIGNS})\d{{4}}(?!\d)")
NEIGHBOUR_CHARACTERS = 14
ISSUED = re.compile(r"4|5[0-8]|6|3(?:0[0-5]|[4-9])|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)")
BLANKS = re.compile(r"(?:[\s+]|%20)+")

ACCOUNT_PROPOSED = re.compile(rf"[A-Za-z]{{2}}\d\d(?:[{SIGNS}]?[A-Za-z0-9]){{11,30}}")
# The beginning of that expression with a look-behind: Python skips to digits instead of trying each letter.
COUNTRY_AND_CHECK = re.compile(r"\d\d(?<=[A-Za-z]{2}\d\d)")
COUNTRY_LETTERS = 2
PHONE_PROPOSED = re.compile(rf"[+\uff0b](?=[{SIGNS}()/]{{0,{MOST_SIGNS}}}\d(?:[{SIGNS}()/]{{0,{MOST_SIGNS}}}\d){{5}})")
DIALLED_ABROAD = re.compile(rf"00(?=[{SIGNS}()/]{{0,{MOST_SIGNS}}}[1-9](?:[{SIGNS}()/]{{0,{MOST_SIGNS}}}\d){{6}})")
LOCAL_PHONE_PROPOSED = re.compile(rf"(?<!\w)\(?\d(?:[{SIGNS}()/]{{0,{MOST_SIGNS}}}\d){{5,}}")

ABROAD = "DE"
"""A region where 00 is dialled before a country code, as in most of them."""


def runs_of_digits(text: str) -> list[tuple[int, int]]:
    """Ranges with several digits near each other; only they can contain cards and phones."""
    return [run.span() for run in SEVERAL_DIGITS.finditer(text)]


def find_cards(text: str, runs: Sequence[tuple[int, int]], limit: StepLimit = UNLIMITED) -> Iterator[tuple[int, int]]:
    """Runs of 13 to 19 digits with a right check digit, written together or in groups of about equal length.

    Raises TooMuchWork, like the functions below.
    """
    for proposed in in_runs(CARD_PROPOSED, text, runs):
        groups = _groups(proposed[0], proposed.start())
        if len(groups) > MOST_GROUPS:  # a table of numbers
            continue
        first = 0
        while first < len(groups):
            after = _end_of_card(text, groups, first, limit)
            if after:
                yield groups[first][0], groups[after - 1][1]
            first = after or first + 1


def _groups(run: str, start: int) -> list[tuple[int, int]]:
    """Groups of adjacent digits."""
    groups, place = [], start
    for are_digits, members in groupby(run, str.isdecimal):
        length = sum(1 for _ in members)
        if are_digits:
            groups.append((place, place + length))
        place += length
    return groups


def _end_of_card(text: str, groups: Sequence[tuple[int, int]], first: int, limit: StepLimit) -> int:
    """The index after the last group of the longest card number that begins with a group; 0 when none does."""
    end, digits, sizes = 0, "", []
    for index in range(first, len(groups)):
        start, stop = groups[index]
        sizes.append(stop - start)
        digits += text[start:stop]
        if len(digits) > CARD_DIGITS[-1]:
            break
        is_written_so = max(sizes) - min(sizes) <= 2 or sizes == [6, 13]
        if len(digits) not in CARD_DIGITS or not is_written_so or (index == first and _is_fraction(text, start)):
            continue
        limit.spend(CARD_STEPS)
        if _is_card(digits):
            end = index + 1
    return end


def _is_fraction(text: str, start: int) -> bool:
    """Whether digits are the decimals of a number: "0.4242424242424242"."""
    return start > 1 and text[start - 1] == "." and text[start - 2].isdecimal()


def _is_card(digits: str) -> bool:
    plain = "".join(str(digit(character)) for character in digits)
    return plain[0] in CARD_BEGINS and luhn.is_valid(plain) and len(set(plain)) > 1


def find_grouped_cards(text: str, limit: StepLimit = UNLIMITED) -> Iterator[tuple[int, int]]:
    """Cards in their printed groups of digits, with tabs, line breaks, slashes, underscores or encoded blanks between.

    All separators are of one kind, and no other group of four digits follows or precedes with it: a table of numbers.
    """
    place = 0
    while proposed := GROUPED_CARD_PROPOSED.search(text, place):
        limit.spend(CARD_STEPS)
        start, end = proposed.span()
        if _is_grouped_card(text, proposed):
            yield start, end
            place = end
        else:
            place = start + 1


def _is_grouped_card(text: str, proposed: re.Match[str]) -> bool:
    start, end = proposed.span()
    plain = proposed[0].replace("%20", "+")
    kinds = {_kind_of(signs) for signs in re.split(r"\d+", plain)[1:-1]}
    before = FOUR_BEFORE.search(text, max(start - NEIGHBOUR_CHARACTERS, 0), start)
    after = FOUR_AFTER.match(text, end)
    if len(kinds) > 1 or any(near and _kind_of(near[1]) in kinds for near in (before, after)):
        return False
    digits = "".join(filter(str.isdecimal, plain))
    return bool(ISSUED.match(digits)) and _is_card(digits)


def _kind_of(signs: str) -> str:
    """The separator; all forms of white space are one."""
    return BLANKS.sub(" ", signs)


def find_accounts(text: str, limit: StepLimit = UNLIMITED) -> Iterator[tuple[int, int]]:
    """International bank account numbers; what is written after one is not part of it, and can be another."""
    found_until = 0
    for digits in COUNTRY_AND_CHECK.finditer(text):
        start = digits.start() - COUNTRY_LETTERS
        if start < found_until or text[max(start - 1, 0) : start].isalnum():
            continue
        proposed = ACCOUNT_PROPOSED.match(text, start)
        if proposed is None:
            continue
        limit.spend(ACCOUNT_STEPS)
        places = [place for place, character in enumerate(proposed[0]) if character.isalnum()]
        for length in ACCOUNT_CHARACTERS:
            if length > len(places):
                continue
            if iban.is_valid("".join(proposed[0][place] for place in places[:length]), check_country=False):
                found_until = start + places[length - 1] + 1
                yield start, found_until
                break


def find_phones(
    text: str, regions: Sequence[str], runs: Sequence[tuple[int, int]], limit: StepLimit = UNLIMITED
) -> Iterator[tuple[int, int]]:
    """Numbers with a country code after + or 00, and those that are dialled without one inside the regions."""
    for proposed in in_runs(PHONE_PROPOSED, text, runs):
        yield from _phones_at(text, proposed.start(), None, limit)
    for proposed in in_runs(DIALLED_ABROAD, text, runs):
        if not text[max(proposed.start() - 1, 0) : proposed.start()].isalnum():
            yield from _phones_at(text, proposed.start(), ABROAD, limit)
    for proposed in in_runs(LOCAL_PHONE_PROPOSED, text, runs) if regions else ():
        for region in regions:
            yield from _phones_at(text, proposed.start(), region, limit)


def in_runs(form: re.Pattern[str], text: str, runs: Sequence[tuple[int, int]]) -> Iterator[re.Match[str]]:
    """Matches of an expression in the given ranges, with possible signs in front. Searching whole texts with these
    expressions would take longer than all others.
    """
    for start, end in runs:
        yield from form.finditer(text, max(start - MOST_SIGNS - 1, 0), end)


def _phones_at(text: str, start: int, region: str | None, limit: StepLimit) -> Iterator[tuple[int, int]]:
    """The number that begins at a position, if any: the matcher is too slow for whole texts."""
    limit.spend(PHONE_STEPS)
    window = text[start : start + PHONE_CHARACTERS]
    for match in PhoneNumberMatcher(window, region, leniency=Leniency.VALID, max_tries=3):
        if match.start <= 1:
            yield start, start + match.end
        return
