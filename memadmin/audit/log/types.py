"""The register of event types: only types declared here are written to the log."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from memadmin.audit.log import sentences

NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
LONGEST_NAME = 64

ANY_OBJECT = "*"
"""Object of a type that applies to records of any kind."""


class Undeclared(Exception):
    """An event was recorded that no `audit_events` module declares: a programming error."""


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of events. `object` is the label of the model it is about; the other fields are the allowed values."""

    name: str
    meaning: str
    sentence: str = ""
    """Sentence of an event in the list, with slots (`sentences`); the meaning is shown if it is empty."""
    object: str = ""
    counters: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    counts_as_opening: bool = False
    """Whether the event means that a person opened its record; openings per hour are limited."""

    def reason_words(self, code: str) -> str:
        """The label of a reason code, where the type has labels; else the code as words."""
        declared = next((reason for reason in self.reasons if reason == code), code)
        return str(getattr(declared, "label", code.replace("_", " ")))

    def check(self, *, object_kind: str | None, counters: Mapping[str, int], reason_code: str) -> None:
        """Raises Undeclared when an event has values that this type does not declare."""
        if _registry.get(self.name) is not self:
            raise Undeclared(f"{self.name} is not a declared event type.")
        if object_kind is not None and self.object not in (object_kind, ANY_OBJECT):
            raise Undeclared(f"{self.name} is about {self.object or 'no object'}, not about {object_kind}.")
        if unknown := set(counters) - set(self.counters):
            raise Undeclared(f"{self.name} has no counter {', '.join(sorted(unknown))}.")
        if reason_code and reason_code not in self.reasons:
            raise Undeclared(f"{self.name} has no reason code {reason_code}.")


_registry: dict[str, EventType] = {}


def declare(
    name: str,
    meaning: str,
    *,
    sentence: str = "",
    object: str = "",
    counters: Collection[str] = (),
    reasons: Collection[str] = (),
    counts_as_opening: bool = False,
) -> EventType:
    """A new event type, named `noun.past_verb`.

    `meaning` explains the type in `docs/audit-events.md`; `sentence` says of one event who did what (`sentences`). Of a
    `TextChoices` as `reasons` the labels are shown.
    """
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ValueError(f"{name!r} is not a name such as session.viewed.")
    if wrong := [word for word in (*counters, *reasons) if not WORD.fullmatch(word)]:
        raise ValueError(f"{wrong[0]!r} of {name} is not a word such as not_found.")
    if unknown := sentences.slots_of(sentence) - {*sentences.NAMED, *counters}:
        raise ValueError(f"The sentence of {name} has no value for {', '.join(sorted(unknown))}.")
    event_type = EventType(name, meaning, sentence, object, tuple(counters), tuple(reasons), counts_as_opening)
    # The same declaration again: a module that was reloaded, as by the development server.
    if _registry.setdefault(name, event_type) != event_type:
        raise ValueError(f"The event type {name} is declared twice, with different content.")
    return _registry[name]


def declared() -> list[EventType]:
    """All event types, by name."""
    return [_registry[name] for name in sorted(_registry)]


def openings() -> list[str]:
    """Names of the types that count as opening a record."""
    return [event_type.name for event_type in declared() if event_type.counts_as_opening]


def known(name: str) -> EventType | None:
    return _registry.get(name)
