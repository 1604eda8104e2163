"""Generator of `docs/audit-events.md` from the register of event types."""

from __future__ import annotations

from collections.abc import Iterable

from memadmin.audit.log.types import ANY_OBJECT, EventType

HEAD = """\
# Events of the audit log

Written by `manage.py audit_events --write`; a test compares. An event carries no more than is listed here: ids, times,
counters, a reason code. Explanations and values before and after are stored beside it, where they can be erased.

| event | when | about | counters | reason codes |
| --- | --- | --- | --- | --- |
"""


def document(types: Iterable[EventType]) -> str:
    """The whole page, as Markdown."""
    return HEAD + "".join(
        f"| `{each.name}` | {each.meaning} | {code(each.object)} | {codes(each.counters)} | {codes(each.reasons)} |\n"
        for each in types
    )


def codes(words: Iterable[str]) -> str:
    return ", ".join(code(word) for word in words)


def code(word: str) -> str:
    return "any kind" if word == ANY_OBJECT else f"`{word}`" if word else ""
