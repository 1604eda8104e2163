"""Texts in an item, for all types that the SDK stores, chats as plain JSON, and unknown types.

Parts that must stay are named here, and everything else may be removed: a type that was unknown when this was written
is redacted all the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sessions_app.redaction.text_to_redact import TextToRedact
from sessions_app.timeline.markers import MARKER, MARKER_IN_ADDRESS
from sessions_app.timeline.values import as_fields, text_in

KEPT = frozenset(
    {
        # Type of an item, and the item that it answers.
        *("type", "role", "id", "call_id", "status", "approval_request_id", "tool_call_id", "item_id", "object"),
        # Actors, by the names that the agents' program has for them.
        *("name", "namespace", "tool_name", "server_label", "author", "recipient", "model", "connector_id"),
        # Words of which the SDK has a fixed choice, and ids of objects at the provider.
        *("phase", "detail", "execution", "format", "button", "size", "quality", "background", "output_format"),
        *("action", "effort", "file_id", "container_id", "fingerprint", "moderation_stage", "kid"),
    }
)
"""Members whose text stays."""

KEPT_WHOLE = frozenset({"caller", "prompt_cache_breakpoint", "categories"})

SCHEMAS = frozenset({"parameters", "input_schema", "output_schema", "schema"})
"""Descriptions of tools in JSON Schema: only their words for people may be removed."""

WORDS_IN_SCHEMA = frozenset({"description", "title", "default", "examples", "example", "const", "enum", "$comment"})

FREE = frozenset({"arguments", "attributes", "provider_data", "metadata", "env", "session_state"})
"""Members with arbitrary content, with names of their own."""

ADDRESSES = frozenset({"url", "file_url", "server_url"})

WITHOUT_TEXT = frozenset({"compaction", "compaction_trigger", "item_reference"})
"""Types from which nothing can be removed."""

PROGRAMS = frozenset({"code_interpreter_call", "program"})
"""Types whose `code` is executed code; elsewhere it is the name of an error."""

MEDIA_PARTS = {
    "input_image": "input_text",
    "input_file": "input_text",
    "input_audio": "input_text",
    "image_url": "text",
    "video_url": "text",
    "file": "text",
}
"""Parts without text: the type of the replacement part that mentions the removed one."""

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel, where only a picture is valid."""

PICTURE = f"data:image/png;base64,{PIXEL}"

_NOTHING = object()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RedactionPlace:
    """One place in an item that a redaction replaces."""

    path: tuple[str, ...]
    """Names of the members that lead to the text, also through JSON inside of a text; places in lists count from 1."""
    text: str
    """The whole text in which it is, unmasked."""
    start: int
    end: int
    is_whole: bool
    """True if the text is replaced as a whole, and not only an occurrence of the text to redact."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """Result of processing an item."""

    raw: str
    """The text to store; the same object if nothing changed."""
    places: int
    """Number of removed texts, or of occurrences of the text to redact."""
    kept: int = 0
    """Occurrences of the text to redact in ids, names and numbers, where it stays."""
    shown: Sequence[RedactionPlace] = ()
    """The first places, as many as were asked for."""


class NestedTooDeep(Exception):
    """The item is JSON with so many levels that it cannot be redacted without a change of its structure."""


def without_text(raw: str, target_text: TextToRedact, *, show: int = 0) -> Redacted:
    """The item with a marker in place of the text, and the first `show` places. Raises NestedTooDeep, only if the text
    is in it.
    """
    if not target_text.is_in(raw):
        return Redacted(raw, 0)
    return _Walk(_Found(target_text), show).item(raw)


def without_all_text(raw: str, *, show: int = 0) -> Redacted:
    """The item without any content, and the first `show` places. A compaction is not changed: it is removed as a whole,
    or not at all.

    Raises NestedTooDeep.
    """
    return _Walk(_Everything(), show).item(raw)


class _Everything:
    """Removes every text."""

    takes_all = True

    def text(self, text: str, marker: str = MARKER) -> tuple[str, int]:
        return (marker, 1) if text.strip() and text != marker else (text, 0)

    def count(self, text: str) -> int:
        return 0

    def spans(self, text: str) -> Iterable[tuple[int, int]]:
        return [(0, len(text))]


class _Found:
    """Removes the text to redact only."""

    takes_all = False

    def __init__(self, target_text: TextToRedact) -> None:
        self.target_text = target_text

    def text(self, text: str, marker: str = MARKER) -> tuple[str, int]:
        return self.target_text.replaced(text, marker)

    def count(self, text: str) -> int:
        return self.target_text.count_in(text)

    def spans(self, text: str) -> Iterable[tuple[int, int]]:
        return self.target_text.spans_in(text)


class _Walk:
    """Processes one item, and counts."""

    def __init__(self, what: _Everything | _Found, show: int) -> None:
        self.what = what
        self.places = 0
        self.kept = 0
        self.type = ""
        self.show = show
        self.shown: list[RedactionPlace] = []
        self.path: list[str] = []

    def item(self, raw: str) -> Redacted:
        try:
            parsed = _decoded(raw)
            if parsed is None:
                # No agent can read it, and none shall be able to afterwards.
                return Redacted(self._text(raw), self.places, shown=self.shown)
            return self._decoded_item(raw, *parsed)
        except RecursionError:
            raise NestedTooDeep from None

    def _decoded_item(self, raw: str, value: Any, has_doubles: bool) -> Redacted:
        self.type = type_in(value)
        redacted = value if self.type in WITHOUT_TEXT else self._member("", value)
        # A parser sees one of two members with the same name, and the other would stay.
        hides_text = has_doubles and (self.what.takes_all or self.what.count(raw))
        if not self.places and not hides_text:
            return Redacted(raw, 0, self.kept)
        if not self.places:
            self.places = 1
            self._show(raw)
        return Redacted(_dumped(redacted, like=raw), self.places, self.kept, self.shown)

    # --- what the SDK gives a meaning ---------------------------------------------------------------------------------

    def _member(self, name: str, value: Any) -> Any:
        if name in KEPT_WHOLE:
            self._note_kept(value)
            return value
        match value:
            case str():
                return self._typed_text(name, value)
            case dict():
                return self._typed_object(name, value)
            case list() if name == "keys" and self.what.takes_all:
                return self._replaced(value, [])
            case list():
                return [self._element(name, number, element) for number, element in enumerate(value, 1)]
        self._note_kept(value)
        return value

    def _element(self, name: str, number: int, element: Any) -> Any:
        self.path.append(f"{number}")
        if self.what.takes_all and (replaced := MEDIA_PARTS.get(type_in(element))):
            redacted: Any = self._replaced(element, {"type": replaced, "text": MARKER})
        else:
            redacted = self._member(name, element)
        self.path.pop()
        return redacted

    def _typed_object(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        if name in SCHEMAS or self.type == "configuration_update":
            return {key: self._schema(member, key) for key, member in fields.items()}
        if name in FREE:
            return self._all_of_free(name, fields) if self.what.takes_all else self._free(fields)
        if self.what.takes_all and fields.get("type") == "computer_screenshot":
            return self._replaced(fields, {"type": "computer_screenshot", "image_url": PICTURE})
        self._note_kept(list(fields))
        redacted = {key: member for key, value in fields.items() if (member := self._typed(key, value)) is not _NOTHING}
        return _fitting(fields, redacted)

    def _typed(self, name: str, value: Any) -> Any:
        self.path.append(name)
        if name == "encrypted_content" and self.what.takes_all:
            redacted = self._replaced(value, _NOTHING)
        else:
            redacted = self._member(name, value)
        self.path.pop()
        return redacted

    def _typed_text(self, name: str, text: str) -> str:
        if self._stays(name):
            self._note_kept(text)
            return text
        if name == "encrypted_content":
            return text
        if name == "arguments":
            return self._arguments(text)
        if name in ADDRESSES or name == "image_url":
            return self._address(text)
        if self.what.takes_all and self.type == "image_generation_call" and name == "result":
            return self._replaced(text, PIXEL)
        return self._text_or_json(text)

    def _stays(self, name: str) -> bool:
        return name in KEPT or (name in ("code", "param") and self.type not in PROGRAMS)

    def _address(self, text: str) -> str:
        if self.what.takes_all:
            nothing = PICTURE if text.startswith("data:") else f"https://redacted.invalid/{MARKER_IN_ADDRESS}"
            return self._replaced(text, nothing)
        return self._text(text, MARKER_IN_ADDRESS)

    def _arguments(self, text: str) -> str:
        """Always JSON afterwards where it was JSON before, and an object."""
        if self.what.takes_all:
            return self._all_of_arguments(text)
        before, shown_before = self.places, len(self.shown)
        redacted = self._text_or_json(text)
        if self.places > before and _parse(text) is not None and _parse(redacted) is None:
            # More goes than the text: it is shown.
            del self.shown[shown_before:]
            self._show(text)
            return _all_gone()
        return redacted

    def _all_of_arguments(self, text: str) -> str:
        parsed = _parse(text)
        if parsed is not None and parsed[0] in ({}, {"redacted": MARKER}):
            return text
        return self._replaced(text, _all_gone())

    # --- what has names of its own ------------------------------------------------------------------------------------

    def _all_of_free(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        nothing = {"redacted": MARKER} if name == "arguments" and fields else {}
        return self._replaced(fields, nothing)

    def _free(self, value: Any) -> Any:
        match value:
            case str():
                return self._text_or_json(value)
            case dict():
                redacted: dict[str, Any] = {}
                for key, member in value.items():
                    new = self._text(key)
                    while new in redacted:
                        new += " "
                    self.path.append(key)
                    redacted[new] = self._free(member)
                    self.path.pop()
                return redacted
            case list():
                return [self._free(member) for member in value]
            case int() | float() if not isinstance(value, bool):
                number = json.dumps(value)
                count = self.what.count(number)
                self.places += count
                if count:
                    self._show(number, self.what.spans(number))
                return MARKER if count else value
        return value

    def _schema(self, value: Any, name: str = "") -> Any:
        match value:
            case str():
                if name in WORDS_IN_SCHEMA:
                    return self._text(value)
                self._note_kept(value)
            case dict():
                self._note_kept(list(value))
                return {key: self._schema(member, key) for key, member in value.items()}
            case list():
                if name == "enum" and self.what.takes_all:
                    return value
                return [self._schema(member, name) for member in value]
        return value

    # --- text ---------------------------------------------------------------------------------------------------------

    def _text_or_json(self, text: str) -> str:
        """Text, in which JSON stays JSON as far as the text to redact does not cut through it."""
        if self.what.takes_all:
            return self._text(text)
        if not self.what.count(text):
            # JSON inside a text contains nothing that is not in the text, in one spelling or another.
            return text
        before, shown_before, depth = self.places, len(self.shown), len(self.path)
        redacted = self._redacted_json(text)
        if redacted is None or self.what.count(redacted):
            # It is no JSON, is nested too deeply, or the text extends across values.
            self.places = before
            del self.shown[shown_before:], self.path[depth:]
            return self._text(text)
        if self.places == before:
            # The text was in one of two members with the same name, of which only the other is in the new text.
            self.places += 1
            self._show(text)
        return redacted

    def _redacted_json(self, text: str) -> str | None:
        """JSON in a text with its values redacted; None for any other text."""
        parsed = _parse(text) if text.lstrip()[:1] in ("{", "[", '"') else None
        try:
            return None if parsed is None else _dumped(self._free(parsed[0]), like=text)
        except RecursionError:
            return None

    def _text(self, text: str, marker: str = MARKER) -> str:
        redacted, count = self.what.text(text, marker)
        self.places += count
        if count:
            self._show(text, self.what.spans(text))
        return redacted

    def _replaced(self, value: Any, nothing: T) -> T:
        """A value without text in place of the value, which is counted and shown as one place."""
        if value != nothing:
            self.places += 1
            if len(self.shown) < self.show:
                self._show(value if isinstance(value, str) else _as_text(value))
        return nothing

    def _show(self, text: str, spans: Iterable[tuple[int, int]] | None = None) -> None:
        """Keeps places of a text, or the whole text as one, as far as more are wanted."""
        is_whole = spans is None or self.what.takes_all
        for start, end in islice(spans or [(0, len(text))], self.show - len(self.shown)):
            self.shown.append(RedactionPlace(tuple(self.path), text, start, end, is_whole))

    def _note_kept(self, value: Any) -> None:
        self.kept += sum(self.what.count(text) for text in _texts_in(value))


def _texts_in(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, member in value.items():
                yield key
                yield from _texts_in(member)
        case list():
            for member in value:
                yield from _texts_in(member)
        case int() | float() if not isinstance(value, bool):
            yield json.dumps(value)


def _as_text(value: Any) -> str:
    """JSON of a value for people; empty for one that is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def _all_gone() -> str:
    return json.dumps({"redacted": MARKER}, separators=(",", ":"))


def _fitting(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Members that spell a text again, or point into it, follow the text."""
    text = after.get("text")
    if not isinstance(text, str) or text == before.get("text"):
        return after
    if isinstance(after.get("logprobs"), list):
        after["logprobs"] = []
    if isinstance(after.get("annotations"), list):
        for annotation in after["annotations"]:
            if isinstance(annotation, dict):
                for place in ("start_index", "end_index"):
                    if isinstance(annotation.get(place), int):
                        annotation[place] = min(annotation[place], len(text))
    return after


def type_in(value: Any) -> str:
    """Type of an item or a part; empty if it has none. Any JSON value may be stored as the type."""
    return text_in(as_fields(value), "type")


def _parse(text: str) -> tuple[Any, bool] | None:
    """`_decoded` of a text within an item; None also for JSON that is nested too deeply."""
    try:
        return _decoded(text)
    except RecursionError:
        return None


def _decoded(text: str) -> tuple[Any, bool] | None:
    """The value of a JSON text as agents read it, and whether a member occurs twice; None for any other text.

    Raises RecursionError.
    """
    has_doubles = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_doubles
        fields = dict(pairs)
        has_doubles |= len(fields) < len(pairs)
        return fields

    try:
        return json.loads(text, object_pairs_hook=members), has_doubles
    except ValueError:
        return None


def _dumped(value: Any, *, like: str) -> str:
    """As JSON, formatted like the text that it replaces."""
    text = json.dumps(value, ensure_ascii=like.isascii(), separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can spell
        return json.dumps(value, separators=(",", ":"))
    return text
