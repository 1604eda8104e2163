"""The tour of the console: `memadmin/web/help/tours.toml`, a few steps for each role."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.safestring import SafeString

from memadmin.web import navigation
from memadmin.web.help.texts import HELP
from memadmin.web.markdown import render_line

TOURS = HELP / "tours.toml"


@dataclass(frozen=True, slots=True)
class TourStep:
    """`text` and `demo` are HTML."""

    title: str
    text: SafeString
    page: str
    demo: SafeString | None = None

    @property
    def url(self) -> str:
        return reverse(self.page)

    def may_open(self, user: User) -> bool:
        place = navigation.place_at(self.url)
        return place is None or navigation.may_see(user, place)


@dataclass(frozen=True, slots=True)
class Tour:
    role: str
    title: str
    summary: str
    steps: list[TourStep]


@cache
def tours() -> list[Tour]:
    """One for each role, in the order of the file."""
    return [
        Tour(entry["role"], entry["title"], entry["summary"], [step_from(step) for step in entry["step"]])
        for entry in tomllib.loads(TOURS.read_text())["tour"]
    ]


def step_from(entry: dict[str, str]) -> TourStep:
    demo = render_line(entry["demo"]) if "demo" in entry else None
    return TourStep(entry["title"], render_line(entry["text"]), entry["page"], demo)


def tours_for(user: User) -> list[tuple[Tour, bool, list[tuple[TourStep, bool]]]]:
    """The tours, those of the user's roles first, with whether the role is theirs and which pages they may open."""
    roles = set(user.groups.values_list("name", flat=True))
    sorted_tours = sorted(tours(), key=lambda tour: tour.role not in roles)
    return [(tour, tour.role in roles, [(step, step.may_open(user)) for step in tour.steps]) for tour in sorted_tours]
