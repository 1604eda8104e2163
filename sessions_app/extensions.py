"""What other apps put on pages of sessions, which know nothing of them.

An app registers a function with a place, when it is loaded; the page asks all of them, and shows what they answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from django.contrib.auth.models import User

from sessions_app.items import ItemPage
from sessions_app.models import SessionRecord, Subject
from sessions_app.timeline.events import Timeline

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Panel:
    """A card: a template, and what it calls `shown`."""

    template: str
    shown: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Mark:
    """A few words at an item or at the head of a run, and the page that they lead to."""

    icon: str
    words: str
    url: str


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks by the id of the item that they stand at, and by the anchor of the run."""

    of_items: Mapping[str, Sequence[Mark]]
    of_runs: Mapping[str, Sequence[Mark]]

    @classmethod
    def joined(cls, several: Iterable[Marks]) -> Marks:
        of_items, of_runs = defaultdict[str, list[Mark]](list), defaultdict[str, list[Mark]](list)
        for marks in several:
            for item_id, found in marks.of_items.items():
                of_items[item_id] += found
            for anchor, found in marks.of_runs.items():
                of_runs[anchor] += found
        return cls(dict(of_items), dict(of_runs))


class ExtensionPoint(Generic[P, T]):
    """Where something of other apps may stand, what those who fill it are told, and what they answer."""

    def __init__(self) -> None:
        self._fillers: list[Callable[P, T | None]] = []

    def __call__(self, filler: Callable[P, T | None]) -> Callable[P, T | None]:
        """Registers a function, as a decorator. None: nothing to show to this operator."""
        self._fillers.append(filler)
        return filler

    def answers(self, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        """As many queries as the fillers ask."""
        return [answer for fill in self._fillers if (answer := fill(*args, **kwargs))]


beside_item = ExtensionPoint[[User, SessionRecord, str], Panel]()
"""The page of an item: who looks, its session, its id."""

beside_timeline = ExtensionPoint[[User, SessionRecord], Panel]()
beside_subject = ExtensionPoint[[User, Subject], Panel]()

on_overview = ExtensionPoint[[User], Panel]()
"""Tiles of the overview: what waits for this operator, as a number."""

beside_overview = ExtensionPoint[[User], Panel]()

on_timeline = ExtensionPoint[[User, SessionRecord, ItemPage, Timeline], Marks]()
"""The part of a session that a page shows: asked on the first paint and on each refresh that shows something new."""
