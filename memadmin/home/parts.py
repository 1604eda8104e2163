"""Parts of the home page: what waits, what changed since yesterday, charts and cards.

A package registers functions when it is loaded, each with the permission that its own pages ask for, so that a person
sees only what they may. A function can also name the roles on whose home page its parts belong: compliance may see
nearly everything, and its page shows what compliance works with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.contrib.auth.models import User
from django.utils.timezone import localtime, now

from memadmin.home.charts import Chart
from memadmin.web.templatetags.memadmin import distance

logger = logging.getLogger(__name__)

ROLES = ("support", "reviewer", "compliance", "auditor", "administrator")
"""The five roles, by the names of their groups."""

Colour = Literal["red", "orange", "yellow", "purple", "green", ""]

URGENCY: Sequence[Colour] = ("red", "orange", "yellow", "purple", "green", "")
"""The order of what waits: past a limit, a finding, due soon, a hold, good news, and the rest."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits for this person: a sentence, its page, and one action. Contains no content of sessions or
    memories, so that the page needs no event of a read.
    """

    title: str
    url: str
    action: str
    symbol: str
    facts: str = ""
    # How long it has been waiting, or until when it can.
    age: str = ""
    colour: Colour = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A card of its own form: a template, and its context variable `shown`."""

    template: str
    shown: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class HomeParts:
    """Additions of one source to the page. `changes` are few words each, counted from `yesterday()`: "31 proposed"."""

    waiting: Sequence[Waiting] = ()
    changes: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    cards: Sequence[Card] = ()


FillHome = Callable[[User], HomeParts]


@dataclass(frozen=True, slots=True)
class HomeSource:
    title: str
    permission: str | Callable[[User], bool]
    roles: Collection[str]
    fill: FillHome
    waits: bool = True
    """Whether anything of it can wait for a person; if not, notifications need not ask it."""

    def is_for(self, user: User, roles: set[str]) -> bool:
        """Whether it belongs on the page of this user. Without any of the five roles, permissions alone decide."""
        asked = self.permission
        may_see = user.has_perm(asked) if isinstance(asked, str) else asked(user)
        return may_see and (not self.roles or not roles or not roles.isdisjoint(self.roles))


_sources: list[HomeSource] = []


def on_home(
    title: str, permission: str | Callable[[User], bool], *, roles: Collection[str] = (), waits: bool = True
) -> Callable[[FillHome], FillHome]:
    """Registers a function that fills a part of the page, as a decorator.

    `title` names it on the page when it fails. Without `roles` it is for everybody who has the permission. `waits` is
    False for charts and cards alone.
    """

    def register(fill: FillHome) -> FillHome:
        _sources.append(HomeSource(title, permission, roles, fill, waits))
        return fill

    return register


@dataclass(frozen=True, slots=True)
class HomePage:
    """All parts for one user; of what waits the most urgent first."""

    parts: Sequence[HomeParts]
    failed: Sequence[str]
    """Titles of sources that failed."""

    @property
    def waiting(self) -> list[Waiting]:
        return by_urgency(self.parts)

    @property
    def changes(self) -> list[str]:
        return [words for each in self.parts for words in each.changes]

    @property
    def charts(self) -> list[Chart]:
        return [chart for each in self.parts for chart in each.charts]

    @property
    def cards(self) -> list[Card]:
        return [card for each in self.parts for card in each.cards]

    @property
    def is_for_nobody(self) -> bool:
        """Whether this user has no permission that any part asks for."""
        return not self.parts and not self.failed


def home_page(user: User) -> HomePage:
    """The page of this user. One query, and those of the sources."""
    return HomePage(*filled(user, _sources))


def what_waits(user: User) -> tuple[list[Waiting], Sequence[str]]:
    """Entries that wait for this user, the most urgent first, and the titles of sources that failed.

    Costs the queries of the home page without its charts.
    """
    parts, failed = filled(user, [source for source in _sources if source.waits])
    return by_urgency(parts), failed


def by_urgency(parts: Sequence[HomeParts]) -> list[Waiting]:
    entries = [entry for each in parts for entry in each.waiting]
    return sorted(entries, key=lambda entry: URGENCY.index(entry.colour))


def filled(user: User, sources: Sequence[HomeSource]) -> tuple[list[HomeParts], list[str]]:
    """Parts of the sources that are for this user, and the titles of those that failed."""
    roles = {name for name in user.groups.values_list("name", flat=True) if name in ROLES}
    parts, failed = list[HomeParts](), list[str]()
    for source in sources:
        if not source.is_for(user, roles):
            continue
        try:
            parts.append(source.fill(user))
        # Whatever breaks one source must not take the others, and so the first page after signing in, away.
        except Exception:
            logger.exception("a part of the home page failed: %s", source.title)
            failed.append(source.title)
    return parts, failed


def yesterday() -> datetime:
    """The beginning of yesterday, in UTC: what changed since then is news."""
    return now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)


def time_since(instant: datetime) -> str:
    """The time since an instant, or until it, in words and in the reader's zone: "12 min ago", "tomorrow"."""
    return distance(localtime(instant), localtime())
