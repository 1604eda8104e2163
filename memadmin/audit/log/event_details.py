"""Erasable details of events: reasons in words, values before and after."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memadmin.audit.log import label_registry, types
from memadmin.audit.log.erasing import Erasure, details_erasure
from memadmin.audit.log.recording import commitment_to
from memadmin.audit.models import AuditDetail, AuditEvent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SHOWN_ROWS = 50

ROWS = "rows"
"""Member of the details in which triggers store each changed row."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Change of one column of one row; None where the row did not exist or the value is NULL."""

    key: str
    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Details:
    """The details of an event that has, or had, any."""

    commitment: str
    is_erased: bool = False
    erased: Erasure | None = None
    """Time and reason, if the log has the erasure."""
    is_as_recorded: bool = False
    """Whether they still match the event's commitment."""
    facts: tuple[tuple[str, str], ...] = ()
    changes: tuple[ColumnChange, ...] = ()
    """Changes of the first rows, if the viewer may see their values."""
    has_more: bool = False
    hides_values: bool = False


def details_of(event: AuditEvent, viewer: User) -> Details | None:
    """The details of an event; None if it never had any. One query, two if they were erased."""
    if event.commitment is None:
        return None
    commitment = bytes(event.commitment)
    kept = AuditDetail.objects.filter(event__id=event.id).first()
    if kept is None:
        return Details(commitment.hex(), is_erased=True, erased=details_erasure(event))
    content = parsed(kept.details)
    rows = content.pop(ROWS) if isinstance(content.get(ROWS), list) else []
    may_see = label_registry.may_see_values(viewer, kind_of(event))
    return Details(
        commitment=commitment.hex(),
        is_as_recorded=hmac.compare_digest(commitment, commitment_to(bytes(kept.salt), kept.details)),
        facts=tuple((name.replace("_", " "), as_text(value) or "") for name, value in content.items()),
        changes=tuple(change for row in rows[:SHOWN_ROWS] for change in changes_of(row)) if may_see else (),
        has_more=len(rows) > SHOWN_ROWS,
        hides_values=bool(rows) and not may_see,
    )


def kind_of(event: AuditEvent) -> str | None:
    """Kind of record of an event, also when it lists several records."""
    event_type = types.known(event.type)
    return event.object_kind or (event_type.object if event_type else None)


def changes_of(row: Any) -> Iterator[ColumnChange]:
    if not isinstance(row, dict):
        yield ColumnChange("", "", None, as_text(row))
        return
    before, after = (row[side] if isinstance(row.get(side), dict) else {} for side in ("before", "after"))
    for column in dict.fromkeys([*before, *after]):
        yield ColumnChange(
            as_text(row.get("key")) or "", column, as_text(before.get(column)), as_text(after.get(column))
        )


def parsed(details: str) -> dict[str, Any]:
    try:
        content = json.loads(details)
    except (ValueError, RecursionError):
        # The table was changed by hand, as the commitment shows; or a changed row has a value that Python cannot read.
        return {"text": details}
    return content if isinstance(content, dict) else {"text": details}


def as_text(value: Any) -> str | None:
    try:
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply to be shown"
