"""What stands beside an event and can be erased: reasons in words, values before and after."""

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
"""Where the triggers put what they saw of each row."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column of one row; None where the row was not there, or holds nothing."""

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
    """When and why, where the log tells."""
    is_as_recorded: bool = False
    """Whether they still are what the event commits to."""
    facts: tuple[tuple[str, str], ...] = ()
    changes: tuple[ColumnChange, ...] = ()
    """Of the first rows, where the viewer may see what they hold."""
    has_more: bool = False
    hides_values: bool = False


def details_of(event: AuditEvent, viewer: User) -> Details | None:
    """What is known beside an event; None when there never was anything. One query, two where it was erased."""
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
    """What kind of record an event is about, also when it is about many of them."""
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
    except ValueError:
        # Somebody wrote to the table; the commitment tells.
        return {"text": details}
    return content if isinstance(content, dict) else {"text": details}


def as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
