"""Drafts: what a policy shall say, in plain values, checked. The form of the page and the import of a file use it.

The plain values are texts, except `is_encrypted`; lengths are such as "90 days" and "13 months".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memadmin.retention.models import PolicyVersion
from memadmin.retention.policies.lengths import MOST, Length, Unit
from memadmin.retention.policies.rules import OF_APPROVED, SCOPE, Action
from memadmin.retention.targets.base import RetentionTarget, all_targets, target_named
from memories_app.models import Memory
from sessions_app.models import SessionStore, SubjectKind

NAMES = {
    "target": "target",
    "store": "store",
    "session_pattern": "session id",
    "agent": "agent",
    "label": "label",
    "subject_kind": "kind of subject",
    "is_encrypted": "encryption",
    "kind": "kind",
    "status": "status",
    "clock": "clock",
    "action": "action",
    "length": "length",
    "minimum": "legal minimum",
    "minimum_reference": "reference of the legal minimum",
    "note": "note",
}
"""Fields of a draft, in the order of a policy's page, with their names in sentences."""

NAME_LENGTH = 80


class DraftError(Exception):
    """A draft that no policy can say."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = problems
        """Sentences, by the field that they are about."""
        super().__init__(" ".join(problems.values()))


class Problem(Exception):
    """An error in one field; the message is a sentence."""


@contextmanager
def noting(problems: dict[str, str], name: str) -> Iterator[None]:
    """Adds the problem of the block to the others."""
    try:
        yield
    except Problem as problem:
        problems[name] = str(problem)


def known_stores() -> set[str]:
    """Names of the stores that a policy can be about. One query."""
    return set(SessionStore.objects.values_list("name", flat=True))


def content_from(values: Mapping[str, Any], *, stores: Collection[str], is_default: bool = False) -> dict[str, Any]:
    """Columns of `PolicyVersion.CONTENT` for these values; those that stay empty are left out.

    `stores` are the names that the field may have. An empty value is as none. Raises DraftError with every problem.
    """
    values = {name: value for name, value in values.items() if value is not None and str(value).strip()}
    problems = {name: f"There is no field {quoted(name)}." for name in values if name not in NAMES}
    content: dict[str, Any] = {}
    target: RetentionTarget | None = None
    with noting(problems, "target"):
        target = target_for(values.get("target"), is_default=is_default)
        content["target"] = target.name
    for name in SCOPE:
        if name in values:
            with noting(problems, name):
                if is_default:
                    raise Problem("The default policy is about everything and cannot be narrowed.")
                content[name] = scope_value(target, name, values[name], stores)
    if target:
        with noting(problems, "clock"):
            content["clock"] = clock_for(target, values.get("clock"))
        with noting(problems, "action"):
            content["action"] = action_for(target, values.get("action"))
    with noting(problems, "length"):
        content |= length_columns(values.get("length"), content.get("action"))
    with noting(problems, "minimum"):
        content |= minimum_columns(values.get("minimum"), values.get("minimum_reference"))
    if "note" in values:
        with noting(problems, "note"):
            content["note"] = text_of("note", values["note"])
    if content.get("action") in OF_APPROVED and content.get("status", Memory.Status.APPROVED) != Memory.Status.APPROVED:
        problems["status"] = "Only approved memories expire or are sent to re-validation."
    if problems:
        raise DraftError(problems)
    return content


def checked_name(name: Any) -> str:
    """The name of a policy. Raises DraftError."""
    try:
        if not str(name or "").strip():
            raise Problem("A policy needs a name.")
        return text_of("name", name, longest=NAME_LENGTH)
    except Problem as problem:
        raise DraftError({"name": str(problem)}) from problem


def values_of(version: PolicyVersion) -> dict[str, Any]:
    """The values of which `content_from` makes what the version says; without empty ones, in the order of `NAMES`."""
    found = {name: getattr(version, name, None) for name in NAMES if name not in ("length", "minimum")}
    found |= {"length": version.length and str(version.length), "minimum": version.minimum and str(version.minimum)}
    return {name: found[name] for name in NAMES if found[name] not in ("", None)}


def target_for(value: Any, *, is_default: bool) -> RetentionTarget:
    known = one_of(target.name for target in all_targets())
    if value is None:
        raise Problem(f"A policy needs a target. {known}")
    try:
        target = target_named(value) if isinstance(value, str) else None
    except KeyError:
        target = None
    if target is None:
        raise Problem(f"There is no target {quoted(value)}. {known}")
    if is_default and target.name != "sessions":
        raise Problem("The default policy is about sessions.")
    return target


def clock_for(target: RetentionTarget, value: Any) -> str:
    """The clock; the target's first one if none is given."""
    clock = next(iter(target.clocks)) if value is None else text_of("clock", value)
    if clock not in target.clocks:
        raise Problem(f"{target.title} have no clock {quoted(clock)}. {one_of(target.clocks)}")
    return clock


def action_for(target: RetentionTarget, value: Any) -> Action:
    known = one_of([Action.KEEP, *target.actions])
    if value is None:
        raise Problem(f"A policy needs an action. {known}")
    if value not in [Action.KEEP, *target.actions]:
        raise Problem(f"{target.title} have no action {quoted(value)}. {known}")
    return Action(value)


def scope_value(target: RetentionTarget | None, name: str, value: Any, stores: Collection[str]) -> str | bool:
    """The value of a field that narrows what the policy is about."""
    if target is not None and name not in target.conditions:
        raise Problem(f"{target.title} cannot be narrowed by {NAMES[name]}.")
    if name == "is_encrypted":
        if not isinstance(value, bool):
            raise Problem("The encryption is true or false.")
        return value
    text = text_of(name, value)
    choices = dict(target.choices.get(name, ())) if target else {}
    if name == "subject_kind":
        choices = dict(SubjectKind.choices)
    if choices and text not in choices:
        raise Problem(f"There is no {NAMES[name]} {quoted(text)}. {one_of(choices)}")
    if name == "store" and text not in stores:
        raise Problem(f"There is no store {quoted(text)}.")
    if name == "session_pattern" and not text.strip("*"):
        raise Problem("The session id matches every session. Leave it empty: the policy is about all sessions then.")
    return text


def length_columns(value: Any, action: Action | None) -> dict[str, Any]:
    if action == Action.KEEP:
        if value is not None:
            raise Problem(
                "A policy that keeps has no length. For a time in which nothing may go, give a legal minimum."
            )
        return {}
    if value is None:
        if action is None:
            return {}
        raise Problem('A policy that takes something needs a length, such as "90 days".')
    length = length_from("length", value)
    return {"length_count": length.count, "length_unit": length.unit}


def minimum_columns(value: Any, reference: Any) -> dict[str, Any]:
    if value is None and reference is None:
        return {}
    if value is None:
        raise Problem("There is a reference of a legal minimum, and no legal minimum.")
    minimum = length_from("minimum", value)
    if reference is None:
        raise Problem("A legal minimum needs its reference: the law or the contract.")
    return {
        "minimum_count": minimum.count,
        "minimum_unit": minimum.unit,
        "minimum_reference": text_of("minimum_reference", reference),
    }


def length_from(name: str, value: Any) -> Length:
    """A length such as "90 days". Raises Problem."""
    found = re.fullmatch(r"\s*([0-9]+)\s*(day|month|year)s?\s*", value) if isinstance(value, str) else None
    if found is None:
        raise Problem(f'The {NAMES[name]} is a number of days, months or years, such as "90 days".')
    unit = Unit(f"{found[2]}s")
    # Python does not read numbers of many thousand digits.
    count = int(found[1]) if len(found[1]) <= MOST_DIGITS else 0
    if not 1 <= count <= MOST[unit]:
        raise Problem(f"The {NAMES[name]} is between 1 and {MOST[unit]:,} {unit}.")
    return Length(count, unit)


MOST_DIGITS = 9


def text_of(name: str, value: Any, *, longest: int | None = None) -> str:
    """A text that its column takes, without spaces around it. Raises Problem."""
    word = NAMES.get(name, name)
    if not isinstance(value, str):
        raise Problem(f"The {word} is a text.")
    text = value.strip().replace("\r\n", "\n")
    if longest is None:
        longest = getattr(PolicyVersion._meta.get_field(name), "max_length", None) or 0
    if len(text) > longest:
        raise Problem(f"The {word} has more than {longest} characters.")
    if any(unicodedata.category(each) in ("Cc", "Cs") and not (each == "\n" and name == "note") for each in text):
        raise Problem(f"The {word} contains a line break or another control character.")
    return text


def quoted(value: Any) -> str:
    text = str(value)
    return f'"{text[:40]}…"' if len(text) > 40 else f'"{text}"'


def one_of(names: Iterable[str]) -> str:
    return f"Choose one of: {', '.join(names)}."
