"""Texts of the help: terms of `memadmin/web/glossary.toml` and areas of `memadmin/web/help/areas.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.text import slugify

from memadmin.web import navigation
from memadmin.web.markdown import render_line

HELP = Path(__file__).parent
GLOSSARY = HELP.parent / "glossary.toml"
AREAS = HELP / "areas.toml"


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """A word with a meaning of its own in memadmin. `text` is HTML."""

    name: str
    text: SafeString

    @property
    def slug(self) -> str:
        return slugify(self.name)

    @property
    def url(self) -> str:
        """Its place in the glossary."""
        return f"{reverse('help:overview')}#term-{self.slug}"


@dataclass(frozen=True, slots=True)
class GlossaryGroup:
    title: str
    terms: list[GlossaryTerm]

    @property
    def slug(self) -> str:
        return slugify(self.title)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of an area, as steps in HTML."""

    title: str
    steps: list[SafeString]


@dataclass(frozen=True, slots=True)
class Area:
    """The help page of pages whose addresses begin with one of `paths`. `about` and `obstacles` are HTML."""

    key: str
    title: str
    symbol: str
    paths: list[str]
    summary: str
    about: SafeString
    tasks: list[Task]
    obstacles: list[SafeString]
    permissions: list[str]
    commands: list[str]
    terms: list[GlossaryTerm]

    @property
    def url(self) -> str:
        return reverse("help:area", args=[self.key])


class UnknownTerm(LookupError):
    """Help for a word that is not in the glossary."""

    def __init__(self, name: str) -> None:
        super().__init__(f"“{name}” is not in {GLOSSARY.name}.")


@cache
def glossary() -> list[GlossaryGroup]:
    """The terms that people meet in the console, in the order of the file."""
    groups = tomllib.loads(GLOSSARY.read_text())["group"]
    return [
        GlossaryGroup(
            group["title"],
            [
                GlossaryTerm(term["name"], render_line(term["text"]))
                for term in group["term"]
                if not term.get("internal")
            ],
        )
        for group in groups
    ]


@cache
def terms_by_name() -> Mapping[str, GlossaryTerm]:
    return {term.name.lower(): term for group in glossary() for term in group.terms}


def term_named(name: str) -> GlossaryTerm:
    """Raises `UnknownTerm`. Capital letters do not count."""
    try:
        return terms_by_name()[name.lower()]
    except KeyError:
        raise UnknownTerm(name) from None


@cache
def areas() -> Mapping[str, Area]:
    """By key, in the order of the file."""
    return {entry["key"]: area_from(entry) for entry in tomllib.loads(AREAS.read_text())["area"]}


def area_from(entry: Mapping[str, Any]) -> Area:
    """An entry of the file as an area. A key that areas do not have is an error."""
    texts: dict[str, Any] = {
        "about": render_line(entry["about"]),
        "tasks": [Task(task["title"], [render_line(step) for step in task["steps"]]) for task in entry.get("task", [])],
        "obstacles": [render_line(text) for text in entry.get("obstacles", [])],
        "terms": [term_named(name) for name in entry["terms"]],
    }
    plain = {name: value for name, value in entry.items() if name not in {*texts, "task"}}
    return Area(**{"permissions": [], "commands": [], **plain, **texts})


def area_at(path: str) -> Area | None:
    """The area of the page at `path`; where one lies below another, the one below."""
    around = [
        (len(start), area) for area in areas().values() for start in area.paths if navigation.is_inside(path, start)
    ]
    return max(around, key=lambda found: found[0])[1] if around else None
