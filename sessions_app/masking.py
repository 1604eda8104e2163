"""Masking of stored items, before anything is derived from them.

A mask replaces the value in the stored text itself, so nothing that is derived from that text, such as a shortened
title, a snippet, a file or a copied page, can show the value.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field, replace

from django.conf import settings

from memadmin.web.masking import MASKED_SECRET, MaskingTimeout, find_values, is_secret_member, mask_found, mask_text
from sessions_app.items import StoredItem
from sessions_app.timeline.decode import IDENTIFYING, NotJson, parse_json
from sessions_app.timeline.parts import json_inside

PAGE_SECONDS = 2.0
"""Time limit of masking for one page. Ordinary pages take a few milliseconds; items beyond the limit are hidden."""

ITEM_SECONDS = 30.0
"""Time limit for one item by itself, on its page or in a file: ten megabytes take two seconds."""

CUT_CHARACTERS = 100
"""Characters cut off the end of a text that was read in part: half a number is not recognised."""

LEAST_NUMBER = 10**11
"""Smaller whole numbers are not card numbers."""

HIDDEN = "[hidden: checking it for personal data took too long]"
HIDDEN_DEEP = "[hidden: nested too deeply to be checked for personal data]"

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ENCODED = re.compile(r"(?:data:[\w./+-]{1,100};base64,)?[A-Za-z0-9+/]{4000,}={0,2}\Z")


@dataclass
class Masker:
    """Masks the text of one page or one part of a file. Its time limit begins with the first text, not with the request
    to the store: a slow store is no reason to hide its items.
    """

    seconds: float = PAGE_SECONDS
    began_at: float | None = field(default=None, init=False)

    @property
    def deadline(self) -> float:
        if self.began_at is None:
            self.began_at = time.monotonic()
        return self.began_at + self.seconds

    def text(self, text: str) -> str:
        """Masked text that is not JSON."""
        try:
            return self._masked(text)[0]
        except MaskingTimeout:
            return HIDDEN

    def item(self, stored: StoredItem) -> StoredItem:
        """The item with every value in it masked, and the number of masks; the same item if there is none."""
        if stored.is_whole:
            raw, count = self.json(stored.raw)
            return replace(stored, raw=raw, masked_count=count) if count else stored
        raw, in_head = self.json(stored.raw, is_beginning=True)
        tail, in_tail = self._masked_json_text(stored.raw_tail)
        return replace(stored, raw=raw, raw_tail=tail, masked_count=in_head + in_tail)

    def file_item(self, stored: StoredItem) -> StoredItem:
        """The same for an item whose text itself is shown: parts that a JSON parser skips are masked, too."""
        masked = self.item(stored)
        if masked.masked_count:
            return masked
        raw, count = self._masked_json_text(stored.raw)
        if raw == HIDDEN:
            raw = _hidden_text(stored.raw)
        return replace(stored, raw=raw, masked_count=count) if count else stored

    def json(self, raw: str, *, is_beginning: bool = False) -> tuple[str, int]:
        """Text of a JSON value, or its beginning, with every value masked, and the number of masks.

        A text without any is returned unchanged. A beginning is returned as a complete value without its last
        characters.
        """
        try:
            value = parse_json(raw, is_beginning=is_beginning)
        except NotJson:
            value = None
        try:
            if value is None:
                return self._masked(raw)
            count = 0
            if self._has_any(value):
                value, count = self._masked_value(value)
            if is_beginning:
                return _dumped(_without_end(value)), count
            return (_dumped(value), count) if count else (raw, 0)
        except MaskingTimeout:
            return (HIDDEN if value is None else _dumped(_hidden(value))), 1
        except RecursionError:
            # JSON in a string of JSON in a string, each with as many levels as a parser takes.
            return _dumped(_hidden(value, why=HIDDEN_DEEP)), 1

    def _masked(self, text: str) -> tuple[str, int]:
        return mask_text(text, regions=settings.PHONE_REGIONS, deadline=self.deadline)

    def _masked_json_text(self, text: str) -> tuple[str, int]:
        """Masked part of a JSON text. Escapes are no part of a value, and are not split."""
        blanked = _ESCAPE.sub(lambda escape: " " * len(escape[0]), text)
        try:
            found = find_values(blanked, regions=settings.PHONE_REGIONS, deadline=self.deadline, is_prose=False)
        except MaskingTimeout:
            return HIDDEN, 1
        return mask_found(text, found)

    def _has_any(self, value: object) -> bool:
        """Whether any of the strings has a value to mask. One check of all together, because most items have none."""
        strings: list[str] = []
        if _gather(value, "", strings):
            return True
        return bool(find_values("\n".join(strings), regions=settings.PHONE_REGIONS, deadline=self.deadline))

    def _masked_value(self, value: object, name: str = "") -> tuple[object, int]:
        match value:
            case bool():
                return value, 0
            case int() if abs(value) >= LEAST_NUMBER or is_secret_member(name, str(value)):
                masked, count = self._masked_value(str(value), name)
                return (masked, count) if count else (value, 0)
            case str():
                return self._masked_string(value, name)
            case list():
                members = [self._masked_value(member, name) for member in value]
                return [member for member, _ in members], sum(count for _, count in members)
            case dict():
                total = 0
                masked_object: dict[str, object] = {}
                for key, member in value.items():
                    masked_key, in_key = self._masked(key)
                    while masked_key in masked_object:
                        masked_key += " "
                    masked_object[masked_key], in_member = self._masked_value(member, key)
                    total += in_key + in_member
                return masked_object, total
        return value, 0

    def _masked_string(self, text: str, name: str) -> tuple[str, int]:
        if is_secret_member(name, text):
            return MASKED_SECRET, 1
        if _ENCODED.match(text):
            return text, 0
        inside = json_inside(text)
        if inside is None:
            return self._masked(text)
        masked, count = self._masked_value(inside, name)
        return (_dumped(masked), count) if count else (text, 0)


def _gather(value: object, name: str, strings: list[str]) -> bool:
    """Adds the strings and large numbers in a value, and in JSON within a string. The name decides on secrets."""
    if isinstance(value, str):
        if is_secret_member(name, value):
            return True
        if _ENCODED.match(value):
            return False
        inside = json_inside(value)
        if inside is not None:
            return _gather(inside, name, strings)
        strings.append(value)
    elif isinstance(value, dict):
        strings += value
        return any(_gather(member, key, strings) for key, member in value.items())
    elif isinstance(value, list):
        return any(_gather(member, name, strings) for member in value)
    elif isinstance(value, int) and not isinstance(value, bool):
        text = str(value)
        if is_secret_member(name, text):
            return True
        if abs(value) >= LEAST_NUMBER:
            strings.append(text)
    return False


def _without_end(value: object) -> object:
    """A truncated masked value, without its last string if that may contain half a value."""
    match value:
        case str():
            return value[:-CUT_CHARACTERS]
        case list() if value:
            return [*value[:-1], _without_end(value[-1])]
        case dict() if value:
            last = next(reversed(value))
            return {**value, last: _without_end(value[last])}
        case int() if not isinstance(value, bool):
            return None
    return value


def _hidden(value: object, name: str = "", *, why: str = HIDDEN) -> object:
    """A value with its structure only, and no content."""
    match value:
        case str():
            return value if name in IDENTIFYING and len(value) < CUT_CHARACTERS else why
        case list():
            return [_hidden(member, why=why) for member in value]
        case dict():
            return {str(key)[:CUT_CHARACTERS]: _hidden(member, key, why=why) for key, member in value.items()}
    return None


def _hidden_text(raw: str) -> str:
    """Replacement for a stored text that is not shown: JSON for JSON, so that it does not look like a broken item."""
    try:
        return _dumped(_hidden(parse_json(raw)))
    except NotJson:
        return HIDDEN


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
