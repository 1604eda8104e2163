"""What the pages of the log call the records and people that events name by id, as far as the viewer may know it.

The log itself knows ids only. The apps that own the records tell their names here, in a module `naming` of theirs, and
decide what somebody may see of them; what has no name, or none for this viewer, is called by its kind and short id.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.models import Func, QuerySet, TextField, UUIDField, Value
from django.db.models.functions import Cast

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SUBJECT = "sessions_app.subject"
"""What `subject_ref` names."""


@dataclass(frozen=True, slots=True)
class Name:
    """How a record is called; the address is empty where the viewer may not open it."""

    text: str
    url: str = ""


Namer = Callable[["User", Collection[uuid.UUID]], Mapping[uuid.UUID, Name]]
Finder = Callable[["User", str], Iterable[uuid.UUID]]
Group = Callable[[uuid.UUID], list[uuid.UUID]]

_namers: dict[str, Namer] = {}
_nouns: dict[str, str] = {}
_finders: dict[str, Finder] = {}
_groups: dict[str, Group] = {}
_value_permissions: dict[str, str] = {}


def names(kind: str, noun: str = "") -> Callable[[Namer], Namer]:
    """Registers what names records of a kind: viewer and ids in, names out, with as many queries for 1 as for 1,000.

    `noun` is what people call the kind, where its model has another name.
    """

    def register(namer: Namer) -> Namer:
        _namers[kind] = namer
        if noun:
            _nouns[kind] = noun
        return namer

    return register


def finds(kind: str) -> Callable[[Finder], Finder]:
    """Registers what finds records of a kind by what people call them. It may find what the viewer has no name for."""

    def register(finder: Finder) -> Finder:
        _finders[kind] = finder
        return finder

    return register


def groups(kind: str) -> Callable[[Group], Group]:
    """Registers what tells which records of a kind stand for one and the same thing, the given one first."""

    def register(group: Group) -> Group:
        _groups[kind] = group
        return group

    return register


class Names:
    """The names of everything that a page shows: `want` what will be asked for, then ask. One look-up for each kind."""

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
        """The name of something whose kind an event does not tell; it must have been wanted as each kind."""
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
    """Says which permission it takes to see what a record of this kind held before and after a change."""
    _value_permissions[kind] = permission


def may_see_values(viewer: User, kind: str | None) -> bool:
    permission = _value_permissions.get(kind or "")
    return not permission or viewer.has_perm(permission)


def find(viewer: User, text: str) -> list[tuple[str, uuid.UUID]]:
    """Kinds and ids of what somebody typed: an id of any kind of record, or what people call it."""
    return [(kind, ref) for kind, finder in _finders.items() for ref in finder(viewer, text)]


def together(kind: str, ref: uuid.UUID) -> list[uuid.UUID]:
    """The ids that stand for the same thing as `ref`, which is the first: a subject and those merged into it."""
    group = _groups.get(kind)
    return group(ref) if group else [ref]


def noun_of(kind: str) -> str:
    """What people call a kind of record, as far as it is known here."""
    if kind in _nouns:
        return _nouns[kind]
    try:
        return str(apps.get_model(kind)._meta.verbose_name)
    except (LookupError, ValueError):
        return kind


def short(ref: uuid.UUID) -> str:
    return str(ref)[:8]


def by_ref(queryset: QuerySet[Any], refs: Collection[uuid.UUID]) -> Mapping[uuid.UUID, Any]:
    """Rows of a table without UUIDs of its own, by the ids that events have for them. Reads the whole table: for small
    ones.
    """
    kind = queryset.model._meta.label_lower
    rows: QuerySet[Any] = queryset.annotate(audit_ref=Ref(Value(kind), Cast("pk", TextField())))
    return {row.audit_ref: row for row in rows.filter(audit_ref__in=refs)}


class Ref(Func):
    """The id by which events name a row without a UUID; the same as `refs.ref`."""

    function = "memadmin_ref"
    output_field = UUIDField()
