"""Masking of stored items, before anything is derived from them.

A mask replaces the value in the stored text itself, so nothing that is derived from that text, such as a shortened
title, a snippet, a file or a copied page, can show the value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

from django.conf import settings

from memadmin.json_spans import STRING
from memadmin.values.effort import StepLimit, TooMuchWork
from memadmin.values.rewriting import without_escapes
from memadmin.values.shortened import JsonText, ShortArray, ShortObject, ShortText
from memadmin.web.masking import (
    MASKED_SECRET,
    SensitiveSpan,
    find_cards,
    find_values,
    is_secret_member,
    mask_found,
    mask_in_json,
    mask_text,
)
from sessions_app.items import ShownPart, StoredItem
from sessions_app.timeline.decode import IDENTIFYING, NotJson, parse_json
from sessions_app.timeline.media import ENCODED
from sessions_app.timeline.parts import json_inside
from sessions_app.timeline.shortening import MARGIN, as_json, shortened

PAGE_STEPS = 5_000_000
"""Steps of masking for one page, of about a tenth of a microsecond each. Ordinary pages take 200,000."""

SHARE_STEPS = 1_000_000
"""Steps for one item of a page. One that needs more is hidden there, and does not stop the others."""

ITEM_STEPS = 50_000_000
"""Steps for one item on its own page: ten megabytes of ordinary text take 30,000,000."""

FILE_STEPS = 300_000_000
"""Steps for one item in a file, for which people wait."""

RAW_CHARACTERS = 100_000
"""Maximum number of characters of the stored text on the page of an item; the download is complete."""

CUT_CHARACTERS = 100
"""Characters cut off the end of a text that was read in part: half a number is not recognised."""

LEAST_DIGITS, MOST_DIGITS = 12, 19
LEAST_NUMBER = 10 ** (LEAST_DIGITS - 1)
"""Smaller whole numbers are not card numbers."""

HIDDEN = "[hidden: too long or too deep to check for personal data here]"

CONTENT = frozenset({"content", "arguments", "output", "summary", "input"})
"""Members that a hidden item keeps, with a sentence as their content."""

STRING_STEPS = 10

# Separates texts that are searched together: no value contains it.
BETWEEN = "\n|\n"

_NUMBER = re.compile(r"-?\d[\d.eE+-]*+")
_TOKEN = re.compile(f"{STRING.pattern}|{_NUMBER.pattern}", re.DOTALL)

Found: TypeAlias = dict[str, list[SensitiveSpan]]
"""Values in strings, by the whole string."""


@dataclass
class Masker:
    """Masks the text of one page or one part of a file, within a limit of steps.

    The limit is no time, so that a page always shows the same. An item beyond it is hidden.
    """

    steps: int = PAGE_STEPS
    share: int = SHARE_STEPS

    @classmethod
    def of_one_item(cls, *, as_file: bool = False) -> Masker:
        """A masker for an item on its own page, or in a file."""
        steps = FILE_STEPS if as_file else ITEM_STEPS
        return cls(steps, steps)

    def text(self, text: str) -> str:
        """Masked text that is not JSON."""
        try:
            with self._limited() as masking:
                return masking.text(text)[0]
        except TooMuchWork:
            return HIDDEN

    def item(self, stored: StoredItem) -> StoredItem:
        """The item with every value in it masked, and the number of masks; the same item if there is none."""
        try:
            with self._limited() as masking:
                return masking.item(stored)
        except TooMuchWork:
            return _hidden_item(stored)

    def shown_item(self, stored: StoredItem, first_part: int = 0) -> StoredItem:
        """The part of an item that a page shows, from one of its parts on, with every value in it masked.

        `masked_count` is the number of masks in it. Values are recognised as in the whole item: a text is masked with
        the characters behind its shown part.
        """
        if not stored.is_whole:
            return shortened_or_hidden(self.item(stored), first_part)
        short = shortened_or_hidden(stored, first_part)
        if short.is_hidden:
            return short
        if short.shown is None:
            return self.item(stored)
        try:
            with self._limited() as masking:
                return masking.shown_item(short, short.shown)
        except TooMuchWork:
            return _hidden_item(stored)

    def beginning(self, raw: str, characters: int) -> tuple[str, int]:
        """Beginning of a stored text that is longer, with every value masked, and the number of masks."""
        try:
            with self._limited() as masking:
                return masking.beginning(raw, characters)
        except TooMuchWork:
            return _hidden_text(raw[:characters], is_beginning=True), 1

    def file_item(self, stored: StoredItem) -> StoredItem:
        """The same for an item whose text itself is shown: parts that a JSON parser skips are masked, too."""
        masked = self.item(stored)
        if masked.masked_count:
            return masked
        try:
            with self._limited() as masking:
                raw, count = masking.stored_text(stored.raw)
        except TooMuchWork:
            return _hidden_item(stored)
        return replace(stored, raw=raw, masked_count=count) if count else stored

    def json(self, raw: str, *, is_beginning: bool = False) -> tuple[str, int]:
        """Text of a JSON value, or its beginning, with every value masked, and the number of masks.

        A text without any is returned unchanged. A beginning is returned as a complete value without its last
        characters.
        """
        try:
            with self._limited() as masking:
                return masking.json(raw, is_beginning=is_beginning)
        except TooMuchWork:
            return _hidden_text(raw, is_beginning=is_beginning), 1

    def spans(self, text: str, name: str = "") -> list[tuple[int, int]] | None:
        """Beginning and end of each value in the text of a member with this name, in order; None beyond the limit.

        The whole text where the name makes it a secret. In a text with quotation marks or escapes values are also
        looked for as in JSON.
        """
        try:
            with self._limited() as masking:
                return masking.spans(text, name)
        except TooMuchWork:
            return None

    @contextmanager
    def _limited(self) -> Iterator[_Masking]:
        """Masking of one text, with its share of the remaining steps."""
        limit = StepLimit(min(self.share, self.steps))
        before = limit.left
        try:
            yield _Masking(limit)
        except RecursionError as deep:
            # JSON in a string of JSON in a string, each with as many levels as a parser takes.
            raise TooMuchWork from deep
        finally:
            self.steps -= before - max(limit.left, 0)


@dataclass(frozen=True)
class _Masking:
    """Masking of one text. All methods raise TooMuchWork at the limit."""

    limit: StepLimit

    def item(self, stored: StoredItem) -> StoredItem:
        if stored.is_whole:
            raw, count = self.json(stored.raw)
            return replace(stored, raw=raw, masked_count=count) if count else stored
        raw, in_head = self.json(stored.raw, is_beginning=True, margin=MARGIN)
        tail, in_tail = self._part_of_json(stored.raw_tail)
        return replace(stored, raw=raw, raw_tail=tail, masked_count=in_head + in_tail)

    def shown_item(self, stored: StoredItem, shown: ShownPart) -> StoredItem:
        if isinstance(stored.raw, ShortText):  # no JSON
            raw, count = _masked_text(stored.raw, self._found(stored.raw))
            return replace(stored, raw=raw, masked_count=count)
        value, count = self._value(shown.value)
        return replace(stored, raw=as_json(value), masked_count=count, shown=replace(shown, value=value))

    def beginning(self, raw: str, characters: int) -> tuple[str, int]:
        text = ShortText(raw[: characters + MARGIN], 0, characters)
        try:
            parse_json(text, is_beginning=True)
        except NotJson:
            return _masked_text(text, self._found(text))
        return self.json(text, is_beginning=True, margin=MARGIN)

    def json(self, raw: str, *, is_beginning: bool = False, margin: int = CUT_CHARACTERS) -> tuple[str, int]:
        """`margin` is the number of characters that the last string of a beginning loses."""
        try:
            value = parse_json(raw, is_beginning=is_beginning)
        except NotJson:
            return self.text(raw)
        value, count = self._value(_with_open_end(value) if is_beginning else value)
        if is_beginning:
            return as_json(_without_end(value, margin)), count
        return (as_json(value), count) if count else (raw, 0)

    def stored_text(self, text: str) -> tuple[str, int]:
        """A stored text with every value in it masked.

        JSON stays JSON: whole numbers become strings, and decimals stay.
        """
        try:
            parse_json(text)
        except NotJson:
            return self._part_of_json(text)
        decoded = without_escapes(text)
        places = [decoded.in_original(one.start, one.end) for one in self._found(decoded.text, is_prose=False)]
        if not places:
            return text, 0
        pieces, done, total = [], 0, 0
        starts = [start for start, _ in places]
        for token in _TOKEN.finditer(text):
            latest = bisect_right(starts, token.end() - 1) - 1
            if latest < 0 or places[latest][1] <= token.start():
                continue
            masked, count = self._value(parse_json(token[0]))
            if count:
                pieces += [text[done : token.start()], as_json(masked)]
                done, total = token.end(), total + count
        return "".join(pieces) + text[done:], total

    def text(self, text: str) -> tuple[str, int]:
        return mask_text(text, regions=settings.PHONE_REGIONS, limit=self.limit)

    def _found(self, text: str, *, is_prose: bool = True) -> list[SensitiveSpan]:
        return find_values(text, regions=settings.PHONE_REGIONS, limit=self.limit, is_prose=is_prose)

    def spans(self, text: str, name: str) -> list[tuple[int, int]]:
        if is_secret_member(name, text):
            return [(0, len(text))]
        places = [(one.start, one.end) for one in self._found(text)]
        if '"' in text or "\\" in text:
            decoded = without_escapes(text)
            found = self._found(decoded.text, is_prose=False)
            places += [decoded.in_original(one.start, one.end) for one in found]
        return sorted(places)

    def _part_of_json(self, text: str) -> tuple[str, int]:
        """Part of a JSON text, which begins or ends anywhere, with its values masked."""
        decoded = without_escapes(text)
        return mask_in_json(text, decoded, self._found(decoded.text, is_prose=False))

    def _value(self, value: object) -> tuple[object, int]:
        """A decoded value with every value in it masked.

        All strings are searched together, each once, because most items have nothing to mask, and many small strings.
        """
        strings = _Strings()
        strings.add(value)
        self.limit.spend(STRING_STEPS * (len(strings.plain) + len(strings.encoded)))
        found = self._found_in_each(list(strings.plain))
        found |= {text: cards for text in strings.encoded if (cards := find_cards(text, limit=self.limit))}
        if found or strings.has_secret or strings.has_margins:
            return self._masked_value(value, "", found)
        return value, 0

    def _found_in_each(self, strings: Sequence[str]) -> Found:
        """Values in those of several strings that have any."""
        starts = list(accumulate((len(text) + len(BETWEEN) for text in strings), initial=0))
        found: Found = {}
        again: Found = {}
        for one in self._found(BETWEEN.join(strings)):
            first, last = bisect_right(starts, one.start) - 1, bisect_right(starts, one.end - 1) - 1
            text, start = strings[first], starts[first]
            if one.end <= start + len(text):
                place = SensitiveSpan(one.start - start, one.end - start, one.kind)
                found.setdefault(text, []).append(place)
                continue
            # A private key without an end; in each string by itself it ends with the string.
            again |= {alone: self._found(alone) for alone in strings[first : last + 1] if alone not in again}
        return {text: places for text, places in (found | again).items() if places}

    def _masked_value(self, value: object, name: str, found: Found) -> tuple[object, int]:
        match value:
            case bool():
                return value, 0
            case int() | float() if number := _whole_number(value):
                masked, count = self._masked_string(number, name, found)
                return (masked, count) if count else (value, 0)
            case str():
                return self._masked_string(value, name, found)
            case list():
                members = [self._masked_value(member, name, found) for member in value]
                masked, count = [member for member, _ in members], sum(count for _, count in members)
                return value.with_elements(masked) if isinstance(value, ShortArray) else masked, count
            case dict():
                fields, count = self._masked_object(value, found)
                return value.with_members(fields) if isinstance(value, ShortObject) else fields, count
        return value, 0

    def _masked_object(self, members: dict[str, object], found: Found) -> tuple[dict[str, object], int]:
        total = 0
        masked: dict[str, object] = {}
        numbers: dict[str, int] = {}
        for key, member in members.items():
            shown, in_key = mask_found(key, found.get(key, ()))
            plain = shown
            while shown in masked:  # two keys with the same mask
                numbers[plain] = numbers.get(plain, 1) + 1
                shown = f"{plain} {numbers[plain]}"
            masked[shown], in_member = self._masked_value(member, key, found)
            total += in_key + in_member
        return masked, total

    def _masked_string(self, text: str, name: str, found: Found) -> tuple[object, int]:
        if is_secret_member(name, text):
            return MASKED_SECRET, 1
        if isinstance(text, ShortText):
            return _masked_text(text, found.get(text, ()))
        inside = None if ENCODED.match(text) else json_inside(text)
        if inside is None:
            return mask_found(text, found.get(text, ()))
        masked, count = self._masked_value(inside, name, found)
        if isinstance(text, JsonText):
            return JsonText(as_json(masked), masked), count
        return (as_json(masked), count) if count else (text, 0)


@dataclass
class _Strings:
    """The strings and large numbers in a value, and in JSON within a string, each once."""

    plain: dict[str, None] = field(default_factory=dict)
    encoded: dict[str, None] = field(default_factory=dict)
    """Long runs of base64: pictures and files."""
    has_secret: bool = False
    """Whether the name of a member makes one of them a secret."""
    has_margins: bool = False
    """Whether one of them is a part of a text."""

    def add(self, value: object, name: str = "") -> None:
        if isinstance(value, str):
            self._add_string(value, name)
        elif isinstance(value, dict):
            self.plain.update(dict.fromkeys(value))
            for key, member in value.items():
                self.add(member, key)
        elif isinstance(value, list):
            for member in value:
                self.add(member, name)
        elif number := _whole_number(value):
            if is_secret_member(name, number):
                self.has_secret = True
            elif len(number) >= LEAST_DIGITS:
                self.plain[number] = None

    def _add_string(self, text: str, name: str) -> None:
        if is_secret_member(name, text):
            self.has_secret = True
        elif isinstance(text, ShortText):
            self.has_margins = True
            self.plain[text] = None
        elif ENCODED.match(text):
            self.encoded[text] = None
        elif (inside := json_inside(text)) is not None:
            self.add(inside, name)
        else:
            self.plain[text] = None


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item for its own page: the part that the timeline shows, and the beginning of its text as stored."""

    item: StoredItem
    raw: str
    is_cut: bool
    """Whether the stored text is longer than `raw`."""

    @classmethod
    def masked(cls, stored: StoredItem, first_part: int = 0) -> ItemView:
        """View from one of its parts on; `masked_count` is the number of masks that the page has at least."""
        masker = Masker.of_one_item()
        item, is_cut = masker.shown_item(stored, first_part), len(stored.raw) > RAW_CHARACTERS
        if is_cut:
            raw, count = masker.beginning(stored.raw, RAW_CHARACTERS)
        else:
            whole = masker.file_item(stored)
            raw, count = whole.raw, whole.masked_count
        return cls(replace(item, masked_count=max(item.masked_count, count)), raw, is_cut)

    @classmethod
    def unmasked(cls, stored: StoredItem) -> ItemView:
        return cls(shortened_or_hidden(stored), stored.raw[:RAW_CHARACTERS], len(stored.raw) > RAW_CHARACTERS)


def shortened_or_hidden(stored: StoredItem, first_part: int = 0) -> StoredItem:
    """The item with the part of it that a page shows, unmasked; hidden if it has more levels than can be followed."""
    try:
        return shortened(stored, first_part)
    except RecursionError:
        return _hidden_item(stored)


def _whole_number(value: object) -> str:
    """Digits of a whole number, also of 4.2e15; empty for anything else.

    Decimals are no card numbers, and a mask inside of one would not be JSON.
    """
    if isinstance(value, float) and LEAST_NUMBER <= abs(value) < 10**MOST_DIGITS and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _masked_text(text: ShortText, found: Sequence[SensitiveSpan]) -> tuple[ShortText, int]:
    """The shown part of a text, masked, with the last value in it that reaches beyond it."""
    in_part = [one for one in found if one.start < text.shown]
    end = max([text.shown, *(one.end for one in in_part)])
    masked, count = mask_found(text[:end], in_part)
    return ShortText(masked, text.left_out + max(len(text) - end, 0), len(masked)), count


def _with_open_end(value: object) -> object:
    """A truncated value; if its last string is the beginning of JSON, it is read as such, as the whole would be."""
    match value:
        case str() if value.lstrip()[:1] in ("{", "["):
            try:
                return JsonText(value, _with_open_end(parse_json(value, is_beginning=True)))
            except NotJson:
                return value
        case list() if value:
            return [*value[:-1], _with_open_end(value[-1])]
        case dict() if value:
            last = next(reversed(value))
            return {**value, last: _with_open_end(value[last])}
    return value


def _without_end(value: object, margin: int) -> object:
    """A truncated masked value, without the end of its last string, which may contain half a value."""
    match value:
        case str():
            return value[:-margin]
        case list() if value:
            return [*value[:-1], _without_end(value[-1], margin)]
        case dict() if value:
            last = next(reversed(value))
            return {**value, last: _without_end(value[last], margin)}
        case int() if not isinstance(value, bool):
            return None
    return value


def _hidden(value: object) -> object:
    """The members of an item that identify it, masked, and nothing of its content."""
    if not isinstance(value, dict):
        return HIDDEN
    shown: dict[str, object] = {}
    for name, member in value.items():
        if name in IDENTIFYING and isinstance(member, str) and len(member) < CUT_CHARACTERS:
            shown[name] = mask_text(member)[0]
        elif name in CONTENT:
            shown[name] = HIDDEN
    return shown or HIDDEN


def _hidden_item(stored: StoredItem) -> StoredItem:
    """The item without its content, and with the members that identify it.

    JSON for JSON, so that it does not look like a broken item.
    """
    raw = _hidden_text(stored.raw, is_beginning=not stored.is_whole)
    return replace(stored, raw=raw, raw_tail=HIDDEN if stored.raw_tail else "", masked_count=1, is_hidden=True)


def _hidden_text(raw: str, *, is_beginning: bool = False) -> str:
    try:
        return as_json(_hidden(parse_json(raw, is_beginning=is_beginning)))
    except NotJson:
        return HIDDEN
