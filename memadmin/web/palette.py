"""Command palette (Ctrl K): pages, subjects, tickets, numbered work and actions, found by a part of their name.

Apps add what they know to FINDERS and ACTIONS in a module `palette_options`, which is imported at the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, groupby
from typing import TypeAlias
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from memadmin.web.navigation import SECTIONS, may_see
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

logger = logging.getLogger(__name__)

MOST_CHARACTERS = 500


class OptionGroup(IntEnum):
    """Headings of the palette, in their order."""

    TICKETS = 1
    SESSIONS = 2
    SUBJECTS = 3
    NUMBERED = 4
    PAGES = 5
    ACTIONS = 6

    @property
    def title(self) -> str:
        return "Requests, runs and holds" if self is OptionGroup.NUMBERED else self.name.capitalize()


@dataclass(frozen=True, slots=True)
class Option:
    """One line. `title` and `detail` may be untrusted; `key` is the key that leads there as well."""

    group: OptionGroup
    title: str
    url: str
    symbol: str
    detail: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class PaletteAction:
    """A page that begins something, such as "New erasure request". It may begin it for a subject (`?subject=`)."""

    title: str
    url_name: str
    symbol: str
    permissions: tuple[str, ...]
    is_for_subjects: bool = False


Finder: TypeAlias = Callable[[OperatorRequest, str], Iterable[Option]]
"""Gives what a person may open and whose name contains a text, the closest first, few at most, and records it."""

FINDERS: list[Finder] = []
ACTIONS: list[PaletteAction] = [PaletteAction("Take the tour", "help:tour", "help", ())]


@operator_page(methods="POST")
def find(request: OperatorRequest) -> HttpResponse:
    """Part of a page: the options for the text `q`, without a text the pages. By POST: `q` belongs in no address."""
    text = request.POST.get("q", "").strip()[:MOST_CHARACTERS]
    found = sorted(options(request, text), key=lambda option: option.group)
    groups = [(group, list(lines)) for group, lines in groupby(found, key=lambda option: option.group)]
    return render(request, "_palette_options.html", {"groups": groups, "text": text})


def options(request: OperatorRequest, text: str) -> list[Option]:
    found = [*pages(request, text)]
    if text:
        found += chain.from_iterable(found_by(finder, request, text) for finder in [*FINDERS, actions])
    return found


def found_by(finder: Finder, request: OperatorRequest, text: str) -> list[Option]:
    """Options of one finder; none if it fails, so that those of the others are still shown."""
    try:
        return list(finder(request, text))
    except DatabaseError:
        logger.exception("A part of the command palette failed.")
        return []


def pages(request: OperatorRequest, text: str) -> Iterable[Option]:
    for place in chain.from_iterable(SECTIONS.values()):
        if may_see(request.user, place) and is_named(place.title, text):
            yield Option(OptionGroup.PAGES, place.title, place.url, place.symbol, key=f"g {place.key}")


def actions(request: OperatorRequest, text: str) -> Iterable[Option]:
    for action in allowed_actions(request.user):
        if is_named(action.title, text):
            yield Option(OptionGroup.ACTIONS, action.title, reverse(action.url_name), action.symbol)


def actions_for(user: User, subject_id: UUID, key: str) -> Iterable[Option]:
    """Actions for a subject that this person may begin."""
    for action in allowed_actions(user):
        if action.is_for_subjects:
            address = f"{reverse(action.url_name)}?{urlencode({'subject': subject_id})}"
            yield Option(OptionGroup.ACTIONS, f"{action.title} for {key}", address, action.symbol)


def allowed_actions(user: User) -> Iterable[PaletteAction]:
    return (action for action in ACTIONS if user.has_perms(action.permissions))


def is_named(title: str, text: str) -> bool:
    """Whether each word of a text begins a word of the title."""
    words = title.casefold().split()
    return all(any(word.startswith(part) for word in words) for part in text.casefold().split())


def number_in(text: str, prefix: str) -> int | None:
    """The number of "DSR-0118" with the prefix "DSR", in capitals or not; None for any other text."""
    head, dash, digits = text.upper().partition("-")
    is_number = head == prefix and dash and digits.isascii() and digits.isdigit() and len(digits) <= 9
    return int(digits) if is_number else None
