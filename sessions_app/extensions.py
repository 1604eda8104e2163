"""Extension points: panels and marks of other apps on session pages.

An app registers a function when it is loaded; the page calls all of them, and shows their results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, ParamSpec, TypeVar

from django.contrib.auth.models import User

from sessions_app.items import ItemPage
from sessions_app.models import SessionRecord, Subject
from sessions_app.timeline.events import Timeline

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Panel:
    """A card: a template, and its context variable `shown`."""

    template: str
    shown: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Mark:
    """A few words at an item or at the head of a run, with a link."""

    icon: str
    words: str
    url: str


@dataclass(frozen=True, slots=True)
class ItemLink:
    """A link at an item: to its page, or where scripts run to a fragment that is shown below the item."""

    words: str
    url: str
    fragment_url: str


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks by the id of their item, and by the anchor of their run; asks, and HTML below items, by the item's id."""

    of_items: Mapping[str, Sequence[Mark]] = field(default_factory=dict)
    of_runs: Mapping[str, Sequence[Mark]] = field(default_factory=dict)
    asks: Mapping[str, ItemLink] = field(default_factory=dict)
    below: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def joined(cls, several: Iterable[Marks]) -> Marks:
        of_items, of_runs = defaultdict[str, list[Mark]](list), defaultdict[str, list[Mark]](list)
        asks, below = dict[str, ItemLink](), dict[str, str]()
        for marks in several:
            asks |= marks.asks
            below |= marks.below
            for item_id, found in marks.of_items.items():
                of_items[item_id] += found
            for anchor, found in marks.of_runs.items():
                of_runs[anchor] += found
        return cls(dict(of_items), dict(of_runs), asks, below)


@dataclass(frozen=True, slots=True)
class SubjectTab:
    """A tab of a subject's page.

    `name` is in the address. `fill` makes what the tab shows, and saves the audit event for it; the first tab has none.
    """

    name: str
    title: str
    fill: Callable[[], Panel] | None


@dataclass(frozen=True, slots=True)
class SubjectMoment:
    """An entry of a subject's line of time: a few words with a link, without content of sessions or memories."""

    at: datetime
    symbol: str
    words: str
    url: str
    facts: str = ""


class ExtensionPoint(Generic[P, T]):
    """Place on a page that other apps fill, with the arguments and the result of their functions."""

    def __init__(self) -> None:
        self._fillers: list[Callable[P, T | None]] = []

    def __call__(self, filler: Callable[P, T | None]) -> Callable[P, T | None]:
        """Registers a function, as a decorator. It returns None if it has nothing to show to this user."""
        self._fillers.append(filler)
        return filler

    def answers(self, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        """Results of all registered functions. Costs their queries."""
        return [answer for fill in self._fillers if (answer := fill(*args, **kwargs))]


beside_item = ExtensionPoint[[User, SessionRecord, str], Panel]()
"""On the page of an item; called with user, session and item id."""

beside_timeline = ExtensionPoint[[User, SessionRecord], Panel]()
beside_subject = ExtensionPoint[[User, Subject], Panel]()

subject_tabs = ExtensionPoint[[User, Subject], SubjectTab]()

subject_moments = ExtensionPoint[[User, Subject], Sequence[SubjectMoment]]()
"""The newest entries for a subject's line of time, in no order."""

on_timeline = ExtensionPoint[[User, SessionRecord, ItemPage, Timeline], Marks]()
"""In the timeline of a session; called on the first paint and on each refresh with news."""
