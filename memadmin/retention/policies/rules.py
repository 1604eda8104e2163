"""Rules: policies in force, as values. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from uuid import UUID

from django.db.models import TextChoices

from memadmin.retention.policies.lengths import Length


class Action(TextChoices):
    """Action when the time is over."""

    KEEP = "keep", "keep"
    DELETE = "delete", "delete"
    REDACT = "redact", "redact"
    EXPIRE = "expire", "expire"
    REVALIDATE = "revalidate", "send to re-validation"


OF_APPROVED = (Action.EXPIRE, Action.REVALIDATE)
"""Actions on approved memories alone, which agents recall: on others there is nothing to do."""


class Level(IntEnum):
    """Strength of a rule; the smaller number wins. Holds and legal minimums are above all of them."""

    EXPLICIT = 1
    GROUP = 2
    DEFAULT = 3

    @property
    def label(self) -> str:
        return self.name.lower()


SCOPE = ("store", "session_pattern", "agent", "label", "subject_kind", "is_encrypted", "kind", "status")
"""Fields of a rule that narrow what it is about. An empty one is about everything."""

NAMES_ONE_THING = ("store", "session_pattern", "agent", "label")
"""Fields that make a rule explicit; the others name groups."""


@dataclass(frozen=True)
class Rule:
    """A version of a policy, as far as it says what goes and what stays."""

    policy: UUID
    name: str
    version: UUID
    number: int
    target: str
    """Name of a target: what it is about."""
    clock: str
    """Name of the target's clock: the instant from which the time runs."""
    action: Action
    length: Length | None = None
    """Time after which the action is due; None for rules that keep."""
    minimum: Length | None = None
    """Legal minimum: nothing that matches goes before, whatever the rule."""
    reference: str = ""
    """The law or contract of the minimum."""
    scope: Mapping[str, str | bool] = field(default_factory=dict)
    is_default: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def level(self) -> Level:
        if self.is_default:
            return Level.DEFAULT
        return Level.EXPLICIT if any(name in self.scope for name in NAMES_ONE_THING) else Level.GROUP

    @property
    def decides(self) -> bool:
        """Whether it says what happens. One that keeps for a legal minimum says only what does not happen before."""
        return self.action != Action.KEEP or self.minimum is None

    def order(self) -> tuple[int, str, str]:
        """Order of rules in lists, and between rules of which several take the same row at the same instant."""
        return (self.level, self.name, str(self.version))


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one session, memory or other row that rules use."""

    target: str
    scope: Mapping[str, str | bool | Sequence[str]]
    """Values by the fields of a rule's scope; several labels or agents as a list."""
    clocks: Mapping[str, datetime]
    holds: Sequence[int] = ()
    """Numbers of the holds in force on it."""


def has_minimum_for(rule: Rule, target: str) -> bool:
    """Whether its legal minimum counts for the rows of a target: its own, and whole sessions' for their items."""
    return rule.minimum is not None and (rule.target == target or (rule.target, target) == ("sessions", "items"))


def matches(rule: Rule, facts: Facts) -> bool:
    """Whether a rule is about it, if only by its legal minimum."""
    if rule.target != facts.target and not has_minimum_for(rule, facts.target):
        return False
    if rule.action in OF_APPROVED and facts.scope.get("status") != "approved":
        return False
    return all(scope_matches(name, wanted, facts.scope.get(name, "")) for name, wanted in rule.scope.items())


def scope_matches(name: str, wanted: str | bool, value: str | bool | Sequence[str]) -> bool:
    if isinstance(value, list | tuple):
        return wanted in value
    if name == "session_pattern":
        return re.fullmatch(pattern_regex(str(wanted)), str(value), re.DOTALL) is not None
    return wanted == value


def pattern_regex(pattern: str) -> str:
    """Regular expression of a pattern with `*` for any text, for Python and PostgreSQL alike."""
    return ".*".join(re.escape(part) for part in pattern.split("*"))
