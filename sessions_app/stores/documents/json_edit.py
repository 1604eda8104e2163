"""Replacement of texts in stored JSON that leaves everything else unchanged."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memadmin.json_spans import STRING, Part, colon_behind

STRUCTURAL = frozenset(
    {
        "id",
        "type",
        "role",
        "name",
        "status",
        "event",
        "model",
        "model_provider",
        "provider",
        "content_type",
        "finish_reason",
        "run_id",
        "parent_run_id",
        "session_id",
        "session_type",
        "agent_id",
        "agent_name",
        "team_id",
        "team_name",
        "workflow_id",
        "workflow_name",
        "user_id",
        "message_id",
        "memory_id",
        "tool_call_id",
        "tool_name",
        "created_at",
        "updated_at",
        "last_updated",
    }
)
"""Members with identifiers and fixed words of the library: their texts are no copies of what was said."""

CONTAINED_FROM = 8
"""Minimum length of a text that is replaced as a part of others; a shorter one is replaced only as a whole text."""


def words_in(value: Any) -> Iterator[str]:
    """Every text in a value that is not structural, from the outermost in."""
    yield from (text for _, text in _texts_in(value))


# --- copies -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Swaps:
    """Texts and their replacements."""

    whole: Mapping[str, str]
    """For whole texts."""
    contained: Sequence[tuple[str, str]]
    """For parts of texts, the longest first."""

    @classmethod
    def between(cls, old: Any, new: Any) -> Swaps:
        """Differences between two values, member by member; a text without a counterpart is replaced by nothing."""
        after = dict(_texts_in(new))
        whole: dict[str, str] = {}
        parts: dict[str, str] = {}
        for path, text in _texts_in(old):
            instead = after.get(path, "")
            if instead == text or not text:
                continue
            whole.setdefault(text, instead)
            for before, then in ((text, instead), _middle(text, instead)):
                if len(before) >= CONTAINED_FROM:
                    # Plain, and as written in JSON or by Python's repr inside of a text.
                    for written in (str, _as_json, _as_ascii_json, _as_python):
                        parts.setdefault(written(before), written(then))
        return cls(whole, longest_first(parts))

    @classmethod
    def of_nothing(cls, texts: Iterable[str]) -> Swaps:
        """Removal of texts without a replacement."""
        return cls.between(list(texts), [])

    @classmethod
    def together(cls, several: Sequence[Swaps]) -> Swaps:
        if len(several) == 1:
            return several[0]
        whole: dict[str, str] = {}
        parts: dict[str, str] = {}
        for each in several:
            whole |= each.whole
            parts |= dict(each.contained)
        return cls(whole, longest_first(parts))

    def applied(self, text: str) -> str:
        if text in self.whole:
            return self.whole[text]
        for old, new in self.contained:
            if old in text:
                text = text.replace(old, new)
        return text

    def applied_to_json(self, text: str, *, besides: Sequence[Part] = ()) -> str:
        """A JSON text with its strings replaced, except member names, structural members, and some parts."""
        if not (self.whole or self.contained):
            return text
        pieces: list[str] = []
        starts = [part.start for part in sorted(besides)]
        ends = [part.end for part in sorted(besides)]
        done, name, value_at = 0, "", -1
        for token in STRING.finditer(text):
            if (value_start := colon_behind(text, token.end())) >= 0:
                name, value_at = token[0], value_start
                continue
            if token.start() == value_at and name[1:-1] in STRUCTURAL:
                continue
            place = bisect_right(starts, token.start()) - 1
            if place >= 0 and token.start() < ends[place]:
                continue
            try:
                said = json.loads(token[0], strict=False)
            except ValueError:
                continue
            instead = self.applied(said)
            if instead != said:
                pieces += [text[done : token.start()], json.dumps(instead, ensure_ascii=text.isascii())]
                done = token.end()
        return "".join([*pieces, text[done:]])


def longest_first(parts: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(parts.items(), key=lambda pair: -len(pair[0]))


def _texts_in(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each text with the names and indexes that lead to it. Not recursive: values may be nested as deep as a parser
    goes.
    """
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            said = {name: member for name, member in value.items() if not _is_structural(name, member)}
            waiting += [((*path, name), member) for name, member in reversed(said.items())]
        elif isinstance(value, list):
            waiting += [((*path, place), value[place]) for place in reversed(range(len(value)))]


def _is_structural(name: str, member: Any) -> bool:
    return isinstance(member, str) and name in STRUCTURAL


def _middle(old: str, new: str) -> tuple[str, str]:
    """The different middles of two texts, without their common beginning and end."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return old[start : len(old) - end], new[start : len(new) - end]


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _as_ascii_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _as_python(text: str) -> str:
    return repr(text)[1:-1]
