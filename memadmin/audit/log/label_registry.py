"""Labels of records and people for pages of the log, limited to what the viewer may see.

The log itself stores only ids. The apps that own the records register labels here, in their module `audit_labels`, and
check the viewer's rights; a record without a label, or without one for this viewer, is shown by kind and short id.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.models import Func, QuerySet, TextField, UUIDField, Value
from django.db.models.functions import Cast

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SUBJECT = "sessions_app.subject"
"""The kind of `subject_ref`."""

MOST_FOUND = 10
"""Maximum of records that a search finds of a kind."""

BEGINNING = re.compile(r"[0-9a-f]{8,32}")
"""The digits of a UUID, or its first ones: at least as many as pages show."""


@dataclass(frozen=True, slots=True)
class Name:
    """Label of a record; the address is empty where the viewer may not open it."""

    text: str
    url: str = ""


Namer = Callable[["User", Collection[uuid.UUID]], Mapping[uuid.UUID, Name]]
Finder = Callable[["User", str], Iterable[uuid.UUID]]
Group = Callable[[uuid.UUID], list[uuid.UUID]]

_namers: dict[str, Namer] = {}
_nouns: dict[str, str] = {}
_finders: dict[str, Finder] = {}
_part_finders: dict[str, Finder] = {}
_groups: dict[str, Group] = {}
_value_permissions: dict[str, str] = {}


def names(kind: str, noun: str = "") -> Callable[[Namer], Namer]:
    """Registers a function that labels records of a kind: viewer and ids in, labels out, in a fixed number of queries.

    `noun` is the name of the kind for people, if it differs from the model's.
    """

    def register(namer: Namer) -> Namer:
        _namers[kind] = namer
        if noun:
            _nouns[kind] = noun
        return namer

    return register


def finds(kind: str) -> Callable[[Finder], Finder]:
    """Registers a search for records of a kind by a whole name, or an id; results may have no label for the viewer."""

    def register(finder: Finder) -> Finder:
        _finders[kind] = finder
        return finder

    return register


def finds_by_part(kind: str) -> Callable[[Finder], Finder]:
    """Registers a search for records of a kind by a part of a name, for text that is no whole name of any record."""

    def register(finder: Finder) -> Finder:
        _part_finders[kind] = finder
        return finder

    return register


def groups(kind: str) -> Callable[[Group], Group]:
    """Registers a function that returns the records of a kind that mean the same thing, the given one first."""

    def register(group: Group) -> Group:
        _groups[kind] = group
        return group

    return register


class Names:
    """Labels of everything on a page: call `want` for each record first, then `of`. One look-up for each kind."""

    def __init__(self, viewer: User) -> None:
        self.viewer = viewer
        self.wanted: dict[str, set[uuid.UUID]] = defaultdict(set)
        self.found: dict[str, Mapping[uuid.UUID, Name]] = {}

    def want(self, kind: str | None, ref: uuid.UUID | None) -> None:
        if kind and ref:
            self.wanted[kind].add(ref)
            self.found.pop(kind, None)

    def of(self, kind: str, ref: uuid.UUID) -> Name:
        if kind not in self.found:
            namer = _namers.get(kind)
            self.found[kind] = namer(self.viewer, self.wanted[kind] | {ref}) if namer else {}
        return self.found[kind].get(ref) or Name(f"{noun_of(kind)} {short(ref)}")

    def of_any(self, ref: uuid.UUID) -> Name:
        """The label of a record of unknown kind; it must have been wanted for each kind."""
        for kind in (SUBJECT, *_namers):
            if ref in self.wanted[kind]:
                self.of(kind, ref)
                if name := self.found[kind].get(ref):
                    return name
        return Name(short(ref))

    def want_any(self, refs: Iterable[uuid.UUID]) -> None:
        refs = set(refs)
        for kind in _namers:
            self.wanted[kind] |= refs
            self.found.pop(kind, None)


def guard_values(kind: str, permission: str) -> None:
    """Registers the permission required to see values of this kind of record before and after a change."""
    _value_permissions[kind] = permission


def may_see_values(viewer: User, kind: str | None) -> bool:
    permission = _value_permissions.get(kind or "")
    return not permission or viewer.has_perm(permission)


def find(viewer: User, text: str) -> list[tuple[str, uuid.UUID]]:
    """Kinds and ids of records that match typed text: an id or a name of any kind of record, else a part of a name. At
    most MOST_FOUND of each kind.
    """
    for finders in (_finders, _part_finders):
        by_kind = [(kind, islice(finder(viewer, text), MOST_FOUND)) for kind, finder in finders.items()]
        if found := [(kind, ref) for kind, refs in by_kind for ref in refs]:
            return found
    return []


def together(kind: str, ref: uuid.UUID) -> list[uuid.UUID]:
    """All ids with the same meaning as `ref`, itself first: a subject and those merged into it."""
    group = _groups.get(kind)
    return group(ref) if group else [ref]


def noun_of(kind: str) -> str:
    """Name of a kind of record for people; the kind itself if there is none."""
    if kind in _nouns:
        return _nouns[kind]
    try:
        return str(apps.get_model(kind)._meta.verbose_name)
    except (LookupError, ValueError):
        return kind


def short(ref: uuid.UUID) -> str:
    return str(ref)[:8]


def ids_beginning(text: str) -> tuple[uuid.UUID, uuid.UUID] | None:
    """The lowest and the highest UUID that begin with a text of at least 8 hexadecimal digits; None of other text."""
    digits = text.replace("-", "").lower()
    if not BEGINNING.fullmatch(digits):
        return None
    return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))


def with_id(queryset: QuerySet[Any], text: str) -> list[uuid.UUID]:
    """The first MOST_FOUND rows whose UUID is the text or begins with it. One query along the primary key, or none."""
    between = ids_beginning(text)
    if between is None:
        return []
    return list(queryset.filter(pk__range=between).order_by("pk").values_list("pk", flat=True)[:MOST_FOUND])


def by_ref(queryset: QuerySet[Any], refs: Collection[uuid.UUID]) -> Mapping[uuid.UUID, Any]:
    """Rows of a table without UUIDs, by their ids in events. Reads the whole table: only for small tables."""
    kind = queryset.model._meta.label_lower
    rows: QuerySet[Any] = queryset.annotate(audit_ref=Ref(Value(kind), Cast("pk", TextField())))
    return {row.audit_ref: row for row in rows.filter(audit_ref__in=refs)}


class Ref(Func):
    """The id in events of a row without a UUID; the same as `ids.ref`."""

    function = "memadmin_ref"
    output_field = UUIDField()
