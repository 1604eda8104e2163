"""Kinds of approvals: who may decide, what is shown, and where it waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from memadmin.home.parts import Colour


def no_refusal(about: Any, user: User) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ApprovalKind:
    """A kind of decisions that take a second person."""

    name: str
    permission: str
    shown: Callable[[Any], Any]
    """All that a decision is about, as values that JSON can hold. One or two queries."""
    waiting: str
    """Plural noun of the line on the home page: "erasures"."""
    page: str
    """Name of the URL where it waits."""
    facts: str
    """Sentence below that line."""
    symbol: str
    colour: Colour = "yellow"
    query: str = ""
    """Query string of that page."""
    answer_within: timedelta | None = None
    """Time after which it can no longer be approved: its reason may no longer apply."""
    refusal: Callable[[Any, User], str] = no_refusal
    """Further reason, a sentence, why this user may not decide."""


_kinds: dict[str, ApprovalKind] = {}


def declare(kind: ApprovalKind) -> ApprovalKind:
    _kinds[kind.name] = kind
    return kind


def kind_called(name: str) -> ApprovalKind:
    return _kinds[name]


def kinds_for(user: User) -> Mapping[str, ApprovalKind]:
    """Kinds that this user may decide about, by name."""
    return {name: kind for name, kind in _kinds.items() if user.has_perm(kind.permission)}
