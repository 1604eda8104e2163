"""What other apps put on pages of sessions, which know nothing of them.

An app registers a function with a place, when it is loaded; the page asks all of them, and shows what they answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, ParamSpec

from django.contrib.auth.models import User

from sessions_app.models import SessionRecord, Subject

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Panel:
    """A card: a template, and what it calls `shown`."""

    template: str
    shown: Mapping[str, object]


class Place(Generic[P]):
    """Where on a page panels may stand, and what those who fill it are told."""

    def __init__(self) -> None:
        self._fillers: list[Callable[P, Panel | None]] = []

    def __call__(self, filler: Callable[P, Panel | None]) -> Callable[P, Panel | None]:
        """Registers a function, as a decorator. None: nothing to show to this operator."""
        self._fillers.append(filler)
        return filler

    def panels(self, *args: P.args, **kwargs: P.kwargs) -> list[Panel]:
        """As many queries as the fillers ask."""
        return [panel for fill in self._fillers if (panel := fill(*args, **kwargs))]


beside_item = Place[[User, SessionRecord, str]]()
"""The page of an item: who looks, its session, its id."""

beside_timeline = Place[[User, SessionRecord]]()
beside_subject = Place[[User, Subject]]()

on_overview = Place[[User]]()
"""Tiles of the overview: what waits for this operator, as a number."""

beside_overview = Place[[User]]()
