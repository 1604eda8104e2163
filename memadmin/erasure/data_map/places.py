"""The classification of every place with data, read from classification.toml. No query."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.db.models import TextChoices

from memadmin.erasure.data_map.erasers import Eraser

FILE = Path(__file__).with_name("classification.toml")


class DataClass(StrEnum):
    NONE = "none"
    PSEUDONYM = "pseudonym"
    PERSONAL = "personal"
    SECRET = "secret"


class DataKind(StrEnum):
    """Kind of personal data."""

    CONTENT = "content"
    IDENTITY = "identity"
    BEHAVIOUR = "behaviour"
    STAFF = "staff"


class Persons(StrEnum):
    """People to whom data belongs."""

    SUBJECTS = "subjects"
    STAFF = "staff"


class Location(TextChoices):
    AGENTS = "agents", "Stores of the agents"
    MEMADMIN = "memadmin", "Database of memadmin"
    JOBS = "jobs", "Arguments of jobs"
    OUTSIDE = "outside", "Files, caches and other services"

    @property
    def unit(self) -> str:
        """Name of one of its columns in texts."""
        return {Location.JOBS: "argument", Location.OUTSIDE: "part"}.get(self, "column")


class ClassificationError(Exception):
    """An entry of the file is incomplete or contradicts another; the message names it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Columns of one table, file or job that are classified alike."""

    location: Location
    name: str
    columns: tuple[str, ...]
    data_class: DataClass
    kinds: tuple[DataKind, ...] = ()
    """Empty unless the data is personal."""
    persons: tuple[Persons, ...] = ()
    erasers: tuple[Eraser, ...] = ()
    kept_for: str = ""
    note: str = ""

    @property
    def is_personal(self) -> bool:
        return self.data_class is DataClass.PERSONAL

    @property
    def has_no_eraser(self) -> bool:
        return Eraser.NOTHING_YET in self.erasers

    @property
    def is_out_of_reach(self) -> bool:
        return Eraser.OUT_OF_REACH in self.erasers

    @property
    def is_kept_without_limit(self) -> bool:
        return self.kept_for.startswith("without limit")

    @property
    def tags(self) -> tuple[str, ...]:
        """Kinds of personal data; the class of other data."""
        return self.kinds or (self.data_class,)

    @property
    def erased_by(self) -> str:
        return ", ".join(eraser.label for eraser in self.erasers)


@cache
def places() -> tuple[Place, ...]:
    """All places in the order of the file. Raises ClassificationError."""
    return tuple(read_places(FILE.read_text(encoding="utf-8")))


@cache
def version() -> str:
    """Identifies the classification in receipts: the first 12 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()[:12]


def read_places(text: str) -> Iterator[Place]:
    """Places of a classification, checked: nothing is classified twice. Raises ClassificationError."""
    seen: set[tuple[str, str, str]] = set()
    for location_name, tables in tomllib.loads(text).items():
        (location,) = members(Location, [location_name], "location")
        for name, entries in tables.items():
            for entry in entries:
                place = place_from(location, name, entry)
                for column in place.columns:
                    if (key := (location, name, column)) in seen:
                        raise ClassificationError(f"{location}.{name}: {column} is classified twice.")
                    seen.add(key)
                yield place


def place_from(location: Location, name: str, entry: Mapping[str, Any]) -> Place:
    where = f"{location}.{name} {', '.join(entry.get('columns', []))}"
    known = {"columns", "class", "what", "of", "erased_by", "kept_for", "note"}
    if unknown := set(entry) - known:
        raise ClassificationError(f"{where}: unknown key {', '.join(sorted(unknown))}.")
    kinds = members(DataKind, entry.get("what", []), where)
    (data_class,) = members(DataClass, [entry.get("class", "personal")], where)
    place = Place(
        location,
        name,
        tuple(entry.get("columns", ())),
        data_class,
        kinds,
        members(Persons, entry.get("of", []), where),
        members(Eraser, entry.get("erased_by", []), where),
        entry.get("kept_for", ""),
        entry.get("note", ""),
    )
    if problem := problem_of(place):
        raise ClassificationError(f"{where}: {problem}")
    return place


def problem_of(place: Place) -> str:
    """A sentence about what an entry lacks; empty if it is complete."""
    if not place.columns:
        return "name its columns."
    if place.is_personal != bool(place.kinds):
        return "personal data, and nothing else, says in `what` of which kind it is."
    if place.data_class is DataClass.NONE:
        return "the class none has no `of`, `erased_by` and `kept_for`." if place.persons or place.erasers else ""
    if not (place.persons and place.erasers and place.kept_for):
        return "say in `of`, `erased_by` and `kept_for` whose it is, who erases it and how long it is kept."
    if (place.has_no_eraser or place.is_out_of_reach) and not place.note:
        return "say in `note` why nothing erases it."
    return ""


Member = TypeVar("Member", bound=Enum)


def members(enum: type[Member], names: Iterable[str], where: str) -> tuple[Member, ...]:
    try:
        return tuple(enum(name) for name in names)
    except ValueError as problem:
        raise ClassificationError(f"{where}: {problem}; known are {', '.join(map(str, enum))}.") from problem


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of columns, as the page shows them."""

    classified: int
    personal: int
    by_kind: Mapping[DataKind, int]
    without_eraser: int
    out_of_reach: Sequence[str]
    """Names of places that nothing here can erase."""


def totals_of(chosen: Sequence[Place]) -> Totals:
    return Totals(
        classified=count_columns(chosen),
        personal=count_columns(place for place in chosen if place.is_personal),
        by_kind={kind: count_columns(place for place in chosen if kind in place.kinds) for kind in DataKind},
        without_eraser=count_columns(place for place in chosen if place.has_no_eraser),
        out_of_reach=list(dict.fromkeys(place.name for place in chosen if place.is_out_of_reach)),
    )


def count_columns(chosen: Iterable[Place]) -> int:
    return sum(len(place.columns) for place in chosen)
