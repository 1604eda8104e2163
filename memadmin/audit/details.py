"""What stands beside an event and can be erased: reasons in words, values before and after."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memadmin.audit import naming
from memadmin.audit.models import AuditDetail, AuditEvent
from memadmin.audit.recording import commitment_to

if TYPE_CHECKING:
    from django.contrib.auth.models import User

VALUES = ("before", "after")


@dataclass(frozen=True, slots=True)
class Details:
    """The details of an event that has, or had, any."""

    commitment: str
    is_erased: bool = False
    is_as_recorded: bool = False
    """Whether they still are what the event commits to."""
    facts: tuple[tuple[str, str], ...] = ()
    values: Mapping[str, Any] | None = None
    """Before and after, where the viewer may see them."""
    hides_values: bool = False


def details_of(event: AuditEvent, viewer: User) -> Details | None:
    """What is known beside an event; None when there never was anything. One query."""
    if event.commitment is None:
        return None
    commitment = bytes(event.commitment)
    kept = AuditDetail.objects.filter(event__id=event.id).first()
    if kept is None:
        return Details(commitment.hex(), is_erased=True)
    content = parsed(kept.details)
    values = {name: content.pop(name) for name in VALUES if name in content}
    may_see = naming.may_see_values(viewer, event.object_kind)
    return Details(
        commitment=commitment.hex(),
        is_as_recorded=hmac.compare_digest(commitment, commitment_to(bytes(kept.salt), kept.details)),
        facts=tuple((name.replace("_", " "), as_text(value)) for name, value in content.items()),
        values=values if values and may_see else None,
        hides_values=bool(values) and not may_see,
    )


def parsed(details: str) -> dict[str, Any]:
    try:
        content = json.loads(details)
    except ValueError:
        # Somebody wrote to the table; the commitment tells.
        return {"text": details}
    return content if isinstance(content, dict) else {"text": details}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
