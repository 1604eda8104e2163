"""Subject of a run: given by the agent's program, or found in the run's own context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

KINDS = ("user", "project", "tenant")


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of data, under the id that the host application has for it."""

    key: str
    kind: str = "user"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"A subject is a {', '.join(KINDS[:-1])} or {KINDS[-1]}; {self.kind!r} is none of these.")

    def __bool__(self) -> bool:
        """True unless it is NOBODY."""
        return bool(self.key)


NOBODY = Subject("")
"""Explicitly no subject: the request is about none, whatever run it is made in."""


Named: TypeAlias = "Subject | str | None"
"""A subject; a string is a user's id. None leaves it to the run."""

Finder: TypeAlias = "str | Callable[[Any], Named]"
"""Place of the subject in a run's context: the name of an attribute, or of a key of a mapping; or a function of it."""

USER_ID = "user_id"


def subject_of(named: Named) -> Subject | None:
    return Subject(named) if isinstance(named, str) else named


def find_subject(context: Any, finder: Finder = USER_ID) -> Subject | None:
    """The subject in the context object of a run; None when it has none."""
    if callable(finder):
        return subject_of(finder(context)) or None
    found = context.get(finder) if isinstance(context, Mapping) else getattr(context, finder, None)
    if found is not None and not isinstance(found, Subject):
        found = Subject(str(found))
    return found or None
