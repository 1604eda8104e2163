"""Shortening of stored items to what a page shows, before anything in them is masked or rendered.

The text of an item is parsed as a whole, once and in C. Everything after that costs as much as what is shown, however
many parts, members, characters or levels the item has. Files, search, redaction and erasure work on whole items.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import islice

from memadmin.values import WINDOW
from memadmin.values.shortened import JsonText, ShortArray, ShortObject, ShortText
from sessions_app.items import ShownPart, StoredItem
from sessions_app.timeline.blocks import SHOWN_CHARACTERS, SHOWN_PARTS
from sessions_app.timeline.decode import IDENTIFYING, decode
from sessions_app.timeline.encryption import ENVELOPE
from sessions_app.timeline.markers import MARKER, MARKER_IN_ADDRESS
from sessions_app.timeline.media import DATA_URI, ENCODED, PICTURE_CHARACTERS
from sessions_app.timeline.parts import json_inside

ITEM_CHARACTERS = 400_000
"""Maximum number of characters of one item that are masked for a page."""

ITEM_VALUES = 5_000
"""Maximum number of JSON values of one item that are masked for a page."""

MEMBER_VALUES = 1_000
"""Maximum number of values within one member of an item, shared by the parts in it."""

PART_VALUES = 50
"""Number of values that each of many parts has at least."""

ITEM_MEMBERS = 1_000
"""Maximum number of members of an item itself; those that identify it are kept in addition."""

MARGIN = WINDOW
"""Characters behind the shown part of a text in which masking looks for the end of a value."""

WHOLE_CHARACTERS = 400
"""An item of this length has nothing to shorten."""

KEPT = IDENTIFYING | ENVELOPE
ENCODED_CHARACTERS_OF_A_STEP = 8


def shortened(stored: StoredItem, first_part: int = 0) -> StoredItem:
    """The item with the part of it that a page shows in `shown`; the same item if that is all of it.

    Of lists directly in the item, such as the parts of a message, the part begins at `first_part`. Nothing is masked:
    texts have margins. Raises RecursionError for JSON within JSON with more levels than Python follows.
    """
    if stored.is_whole and len(stored.raw) <= WHOLE_CHARACTERS:
        return stored
    shortener = _Shortener(first_part)
    is_redacted = MARKER in stored.raw or MARKER_IN_ADDRESS in stored.raw
    entry = decode(stored)
    if entry.problem:
        if len(stored.raw) <= SHOWN_CHARACTERS:
            return stored
        shown = ShownPart(None, problem=entry.problem, is_redacted=is_redacted)
        return replace(stored, raw=_beginning(stored.raw, SHOWN_CHARACTERS), shown=shown)
    value = shortener.item(entry.value)
    if not shortener.is_cut:
        return stored
    shown = ShownPart(
        value,
        first_part=shortener.earliest_part,
        next_part=shortener.next_part,
        more_parts=shortener.more_parts,
        more_values=shortener.more_values,
        is_redacted=is_redacted,
    )
    return replace(stored, raw=as_json(value) if stored.is_whole else stored.raw, shown=shown)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass
class _Room:
    """Number of values for which there is room in a member or a part."""

    values: int


class _Shortener:
    """Shortens one item, and counts what is left for it."""

    def __init__(self, first_part: int) -> None:
        self.first_part = first_part
        self.earliest_part = 0
        """Index of the first part that is shown, of the list that begins latest."""
        self.next_part = 0
        self.more_parts = 0
        self.more_values = 0
        self.is_cut = False
        self.characters = ITEM_CHARACTERS
        self.values = ITEM_VALUES

    def item(self, value: object) -> object:
        if not isinstance(value, dict):
            return self._value(value, _Room(MEMBER_VALUES))
        members = dict(islice(value.items(), ITEM_MEMBERS)) | {name: value[name] for name in KEPT if name in value}
        members = {name: member for name, member in members.items() if len(name) <= SHOWN_CHARACTERS}
        # The members that identify it, then texts, so that long lists do not use up what these need.
        order = sorted(members, key=lambda name: (isinstance(members[name], list | dict), name not in KEPT))
        short = {name: self._member(members[name]) for name in order}
        return self._object({name: short[name] for name in members}, len(value) - len(members))

    def _member(self, value: object) -> object:
        if isinstance(value, list) and value and isinstance(value[0], dict | list | str):
            return self._parts(value)
        return self._value(value, _Room(MEMBER_VALUES))

    def _parts(self, parts: list[object]) -> object:
        """Parts of a message or an output, from the first one that the page shows."""
        first = self.first_part if self.first_part < len(parts) else max(len(parts) - SHOWN_PARTS, 0)
        window = parts[first : first + SHOWN_PARTS]
        room = max(PART_VALUES, MEMBER_VALUES // max(len(window), 1))
        kept = ShortArray()
        for part in window:
            if kept and (self.characters <= 0 or self.values <= 0):
                break
            kept.append(self._value(part, _Room(room)))
        following = first + len(kept)
        kept.first, kept.left_out = first, len(parts) - following
        self.is_cut |= len(kept) < len(parts)
        self.earliest_part = max(self.earliest_part, first)
        if kept.left_out:
            self.next_part = min(self.next_part or following, following)
            self.more_parts = max(self.more_parts, kept.left_out)
        return kept

    def _value(self, value: object, room: _Room) -> object:
        self.values -= 1
        room.values -= 1
        match value:
            case str():
                return self._text(value, room)
            case list():
                return self._list(value, room)
            case dict():
                members: dict[str, object] = {}
                for name, member in value.items():
                    if len(name) > SHOWN_CHARACTERS or not self._has_room(room):
                        break
                    self.characters -= len(name)
                    members[name] = self._value(member, room)
                return self._object(members, len(value) - len(members))
        self.characters -= 1
        return value

    def _list(self, elements: list[object], room: _Room) -> object:
        kept = ShortArray()
        most = SHOWN_PARTS if elements and isinstance(elements[0], dict | list) else len(elements)
        for element in islice(elements, most):
            if not self._has_room(room):
                break
            kept.append(self._value(element, room))
        kept.left_out = len(elements) - len(kept)
        self.is_cut |= kept.left_out > 0
        self.more_values += kept.left_out
        return kept

    def _object(self, members: dict[str, object], left_out: int) -> object:
        if not left_out:
            return members
        self.is_cut = True
        self.more_values += left_out
        short = ShortObject(members)
        short.left_out = left_out
        return short

    def _has_room(self, room: _Room) -> bool:
        return room.values > 0 and self.values > 0 and self.characters > 0

    def _text(self, text: str, room: _Room) -> str:
        if len(text) > WHOLE_CHARACTERS and (inside := json_inside(text)) is not None:
            # Its members are masked by their names, so no part of it is read as anything but JSON.
            short = self._value(inside, room)
            return text if short == inside else JsonText(as_json(short), short)
        shown = min(SHOWN_CHARACTERS, max(self.characters, 0))
        if shown < len(text) <= PICTURE_CHARACTERS and self.characters > 0:
            is_encoded = ENCODED.match(text) is not None
            if is_encoded or DATA_URI.match(text):
                self.characters -= len(text) // (ENCODED_CHARACTERS_OF_A_STEP if is_encoded else 1)
                return text
        self.characters -= min(len(text), shown)
        if len(text) <= shown:
            return text
        self.is_cut = True
        return _beginning(text, shown)


def _beginning(text: str, shown: int) -> ShortText:
    beginning = text[: shown + MARGIN] if shown else ""
    return ShortText(beginning, len(text) - len(beginning), shown)
