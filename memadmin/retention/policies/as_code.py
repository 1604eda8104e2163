"""Policies as code: all policies in force as one TOML file, and what a file would change.

A file is a list of tables `[[policy]]`: a name, and the values of `drafts`. What a change needs, it needs here, too:
those that could take more wait for a second person.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies import services
from memadmin.retention.policies.comparing import Difference, differences
from memadmin.retention.policies.drafts import DraftError, checked_name, content_from, known_stores, values_of
from memadmin.retention.policies.rules import Rule

HEAD = """\
# Retention policies of memadmin. `manage.py retention_policies import FILE` proposes what differs.
"""

TABLE = "policy"


class FileError(Exception):
    """A file that cannot be imported: one sentence for each mistake, with the name of its policy."""

    def __init__(self, *mistakes: str) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(mistakes))


@dataclass(frozen=True, slots=True)
class Draft:
    """One policy of a file, checked: its name and the columns of `PolicyVersion.CONTENT`."""

    name: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a file and one policy."""

    name: str
    policy: RetentionPolicy | None
    """None for a new one."""
    content: dict[str, Any] | None
    """None for a policy that ends."""
    differences: Sequence[Difference]
    is_proposed: bool = False
    """Whether exactly this change is proposed already: then there is nothing to do."""


# --- writing ----------------------------------------------------------------------------------------------------------


def exported() -> str:
    """The policies in force, by name, as TOML. One query."""
    tables = [toml_of(version) for version in PolicyVersion.objects.in_force()]
    return "\n".join([HEAD, *tables])


def toml_of(version: PolicyVersion) -> str:
    values = {"name": version.policy.name, **values_of(version)}
    return f"[[{TABLE}]]\n" + "".join(f"{key} = {literal(value)}\n" for key, value in values.items())


def literal(value: str | bool) -> str:
    """A text or a boolean as TOML. Its strings are those of JSON, except for the last ASCII character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- reading ----------------------------------------------------------------------------------------------------------


def drafts_from(text: str) -> list[Draft]:
    """The policies of a file, in its order. Two queries. Raises FileError with every mistake."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise FileError(f"This is no TOML: {problem}.") from problem
    if unknown := [name for name in document if name != TABLE]:
        raise FileError(*(f'"{name}" is unknown: a file has tables [[{TABLE}]] alone.' for name in unknown))
    tables = document.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise FileError(f"Policies are tables [[{TABLE}]], with two brackets.")
    if not tables:
        raise FileError(f"There is no table [[{TABLE}]] in it.")
    in_force = list(PolicyVersion.objects.in_force())
    # A policy can be about a store that was removed since.
    stores = known_stores() | {version.store for version in in_force if version.store}
    default = next((version.policy.name for version in in_force if version.policy.is_default), None)
    found: dict[str, Draft] = {}
    mistakes: list[str] = []
    for number, values in enumerate(tables, 1):
        where = f"Policy {number}"
        try:
            name = checked_name(values.get("name"))
            where = f'Policy "{name}"'
            if name in found:
                mistakes.append(f"{where}: there are two of this name.")
                continue
            content = {key: value for key, value in values.items() if key != "name"}
            found[name] = Draft(name, content_from(content, stores=stores, is_default=name == default))
        except DraftError as problem:
            mistakes += [f"{where}: {sentence}" for sentence in problem.problems.values()]
    if mistakes:
        raise FileError(*mistakes)
    return list(found.values())


# --- comparing and importing ------------------------------------------------------------------------------------------


def changes_by(drafts: Sequence[Draft], *, end_others: bool = False) -> list[Change]:
    """Changes that the drafts make, in their order, followed by policies that end. Three queries."""
    policies = {policy.name: policy for policy in RetentionPolicy.objects.all()}
    in_force = {version.policy_id: version for version in PolicyVersion.objects.in_force()}
    proposed = {version.policy_id: version for version in PolicyVersion.objects.open().select_related("policy")}
    found = []
    for draft in drafts:
        policy = policies.get(draft.name)
        old = in_force.get(policy.pk) if policy else None
        waiting = proposed.get(policy.pk) if policy else None
        # Without a policy the name is all that the rule needs.
        new = PolicyVersion(policy=policy or RetentionPolicy(name=draft.name), number=0, **draft.content)
        if diff := differences_of(old, new):
            is_proposed = bool(waiting and not waiting.is_end and not differences_of(waiting, new))
            found.append(Change(draft.name, policy, draft.content, diff, is_proposed))
    if end_others:
        kept = {draft.name for draft in drafts}
        for old in in_force.values():
            if old.policy.name not in kept and not old.policy.is_default:
                waiting = proposed.get(old.policy_id)
                ends = differences(old.rule(), None)
                found.append(Change(old.policy.name, old.policy, None, ends, bool(waiting and waiting.is_end)))
    return found


def differences_of(old: PolicyVersion | None, new: PolicyVersion) -> list[Difference]:
    """Fields that differ, with the note, which is no part of a rule."""
    before, after = old.note if old else "", new.note
    notes = [Difference("Note", before, after)] if before != after else []
    return [*differences(rule_of(old), rule_of(new)), *notes]


def rule_of(version: PolicyVersion | None) -> Rule | None:
    return version.rule() if version else None


@dataclass(frozen=True, slots=True)
class Made:
    """A change that was made or proposed."""

    name: str
    version: UUID
    rows: int
    awaits_approval: bool


@transaction.atomic
def carry_out(changes: Sequence[Change], *, reason: str, by: User | None) -> list[Made]:
    """Makes the changes, or proposes them where a second person has to approve: all of them, or none.

    Counts what each would take. Raises FileError.
    """
    made, mistakes = [], []
    for change in changes:
        if change.is_proposed:
            continue
        try:
            with transaction.atomic():
                version = propose(change, reason=reason, by=by)
        except services.PolicyError as problem:
            mistakes.append(f'Policy "{change.name}": {problem}')
        else:
            made.append(Made(change.name, version.pk, version.preview.get("rows", 0), version.awaits_approval))
    if mistakes:
        raise FileError(*mistakes)
    return made


def propose(change: Change, *, reason: str, by: User | None) -> PolicyVersion:
    if change.policy is None:
        return services.propose_policy(change.name, change.content or {}, reason=reason, by=by)
    if change.content is None:
        return services.end_policy(change.policy, reason=reason, by=by)
    return services.propose_change(change.policy, change.content, reason=reason, by=by)
