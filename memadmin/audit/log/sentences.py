"""Sentences of events, filled from the sentence that an event type declares.

A sentence has slots: `{actor}`, `{object}` (with "of" its subject), `{subject}`, and the counters of the type. A part
in brackets is left out if one of its slots has no value: "{actor} viewed the audit log[ about {subject}]".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from memadmin.audit.log.label_registry import Name

SLOT = re.compile(r"\{(\w+)\}")
BRACKETS = re.compile(r"\[([^\[\]]*)\]")

NAMED = ("actor", "object", "subject")
"""Slots beside the counters."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in parts: plain words and names, some with an address."""

    parts: tuple[Name, ...]

    @property
    def lead(self) -> str:
        """The words before the first name with an address; the whole sentence if nothing is before it."""
        return "".join(part.text for part in self.parts[: self._lead_length])

    @property
    def rest(self) -> tuple[Name, ...]:
        return self.parts[self._lead_length :]

    @property
    def _lead_length(self) -> int:
        first = next((place for place, part in enumerate(self.parts) if part.url), 0)
        return first or len(self.parts)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


def slots_of(template: str) -> set[str]:
    return set(SLOT.findall(template))


def filled(template: str, values: Mapping[str, Collection[Name]]) -> Sentence:
    """The sentence with the values of its slots. Outside of brackets a missing value is its slot's name: "items"."""
    chosen = BRACKETS.sub(lambda part: part[1] if all(values.get(slot) for slot in slots_of(part[1])) else "", template)
    return Sentence(tuple(part for part in parts_of(chosen, values) if part.text))


def parts_of(template: str, values: Mapping[str, Collection[Name]]) -> Iterator[Name]:
    for place, piece in enumerate(SLOT.split(template)):
        if place % 2:
            yield from values.get(piece) or (Name("a record" if piece == "object" else piece.replace("_", " ")),)
        else:
            yield Name(piece)
