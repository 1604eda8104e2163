"""Whose run it is: what an agent's program tells, and how it is found in the run's own context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

KINDS = ("user", "project", "tenant")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom data is about, under the id that the host application has for them."""

    key: str
    kind: str = "user"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"A subject is a {', '.join(KINDS[:-1])} or {KINDS[-1]}; {self.kind!r} is none of them.")

    def __bool__(self) -> bool:
        """Whether it is anybody."""
        return bool(self.key)


NOBODY = Subject("")
"""Said, and not left open: what is asked is about nobody, whatever run it is asked in."""


Named: TypeAlias = "Subject | str | None"
"""A subject; as a word it is a user. None leaves it to the run."""

Finder: TypeAlias = "str | Callable[[Any], Named]"
"""How a run's context tells its subject: the name of an attribute, or of a key of a mapping; or a function of it."""

USER_ID = "user_id"


def subject_of(named: Named) -> Subject | None:
    return Subject(named) if isinstance(named, str) else named


def find_subject(context: Any, finder: Finder = USER_ID) -> Subject | None:
    """The subject that the context object of a run tells; None when it tells none."""
    if callable(finder):
        return subject_of(finder(context)) or None
    found = context.get(finder) if isinstance(context, Mapping) else getattr(context, finder, None)
    if found is not None and not isinstance(found, Subject):
        found = Subject(str(found))
    return found or None
