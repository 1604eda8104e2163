"""Words for policies, as their pages show them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.timezone import now

from memadmin.counting import counted
from memadmin.retention.models import PolicyVersion
from memadmin.retention.policies.rules import SCOPE, Action, Rule
from memadmin.retention.targets.base import target_named

PHRASES = {
    "store": "in {}",
    "session_pattern": "with IDs like {}",
    "agent": "of the agent {}",
    "label": "labelled “{}”",
    "subject_kind": "of a {}",
    "kind": "of the kind {}",
    "status": "with the status {}",
}


def scope_words(rule: Rule) -> str:
    """Target and scope of a rule in words: "sessions in support-main, labelled “dispute”"."""
    target = target_named(rule.target)
    words = []
    for name in SCOPE:
        value = rule.scope.get(name)
        if name == "is_encrypted" and value is not None:
            words.append("encrypted" if value else "not encrypted")
        elif value:
            label = dict(target.choices.get(name, ())).get(str(value), value)
            words.append(PHRASES[name].format(label))
    return ", ".join([target.title.lower(), *words]) if words else target.title.lower()


def clock_words(rule: Rule) -> str:
    return f"since {target_named(rule.target).clocks.get(rule.clock, rule.clock)}"


def length_words(rule: Rule) -> str:
    """Action and length in words: "30 days", "redact after 30 days", "kept"."""
    if rule.action == Action.KEEP or rule.length is None:
        return "kept"
    verb = {Action.DELETE: "", Action.REVALIDATE: "re-validate after "}.get(rule.action, f"{rule.action.label} after ")
    return f"{verb}{rule.length}"


def minimum_words(rule: Rule) -> str:
    return f"{rule.minimum}" if rule.minimum else "no minimum"


def level_words(rule: Rule) -> str:
    return rule.level.label if rule.decides else "legal minimum"


def unit_of(version: PolicyVersion) -> str:
    return target_named(version.target).unit


def until(at: datetime | None) -> str:
    """Time until an instant: "in 23 hours"."""
    minutes = max(round((at - now()).total_seconds() / 60), 1) if at else 1
    if minutes < 120:
        return f"in {counted(minutes, 'minutes')}"
    return f"in {minutes // 60} hours"


def hours(length: timedelta) -> str:
    """Whole hours: "24 hours"."""
    return counted(length // timedelta(hours=1), "hours")
