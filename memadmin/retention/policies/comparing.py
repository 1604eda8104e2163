"""Comparison of two versions of a policy: what differs, and whether the new one could take more. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from memadmin.retention.policies.rules import SCOPE, Action, Rule

LABELS = {
    "target": "What",
    "store": "Store",
    "session_pattern": "Session ID",
    "agent": "Agent",
    "label": "Label",
    "subject_kind": "Kind of subject",
    "is_encrypted": "Encrypted",
    "kind": "Kind",
    "status": "Status",
    "clock": "Counted from",
    "action": "Then",
    "length": "After",
    "minimum": "Legal minimum",
    "reference": "Reference",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of a diff: what a field was, and what it is; empty for nothing."""

    label: str
    old: str
    new: str


def lines(rule: Rule | None) -> dict[str, str]:
    """Texts of a rule by field; empty without a rule."""
    if rule is None:
        return {}
    scope = {name: words(rule.scope[name]) for name in SCOPE if name in rule.scope}
    return {
        "target": rule.target,
        **scope,
        "clock": rule.clock.replace("_", " "),
        "action": rule.action.label,
        **({"length": str(rule.length)} if rule.length else {}),
        **({"minimum": str(rule.minimum), "reference": rule.reference} if rule.minimum else {}),
    }


def words(value: str | bool) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else value


def differences(old: Rule | None, new: Rule | None) -> list[Difference]:
    """Fields that differ, in the order of a policy's page. `None` stands for no policy: before it, or after its end."""
    before, after = lines(old), lines(new)
    found = [
        Difference(label, before.get(name, ""), after.get(name, ""))
        for name, label in LABELS.items()
        if before.get(name, "") != after.get(name, "")
    ]
    if old is not None and new is None:
        return [Difference("Policy", "in force", "ends")]
    return found


def could_take_more(old: Rule | None, new: Rule | None) -> bool:
    """Whether anything could go earlier, or otherwise, with the new rule than with the old one.

    Only what surely keeps more needs no second person: a longer time for the same data, or a new or longer legal
    minimum. A rule that ends, or covers other data, may uncover a shorter one.
    """
    if new is None:
        return True
    if old is None:
        return new.decides
    is_about_same = (old.target, old.scope) == (new.target, new.scope)
    if not is_about_same or not minimum_is_kept(old, new):
        return True
    if new.action == old.action == Action.KEEP:
        # One that no longer decides uncovers others.
        return old.decides and not new.decides
    if old.action == Action.KEEP:
        return True
    if old.action != Action.DELETE and (new.action, new.clock, new.length) != (old.action, old.clock, old.length):
        # As long as this one comes first, a later deletion by another rule of its level never comes.
        return True
    if new.action == Action.KEEP:
        return not new.decides
    same_way = (old.action, old.clock) == (new.action, new.clock)
    return not (same_way and old.length and new.length and new.length.is_surely_at_least(old.length))


def minimum_is_kept(old: Rule, new: Rule) -> bool:
    """Whether the legal minimum is at least as long as before, counted from the same instant."""
    if old.minimum is None:
        return True
    return new.minimum is not None and new.clock == old.clock and new.minimum.is_surely_at_least(old.minimum)
