"""Feedback on items of a session as its timeline shows it: from operators, and ratings and outcomes from agents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User

from memories_app.models import Signal
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord

SHOWN_KINDS = (Signal.Kind.FEEDBACK, Signal.Kind.RATING, Signal.Kind.OUTCOME)

MOST_REMARKS = 200
"""Maximum of remarks shown on one page of a session."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A rating or note about an item, with its masked text."""

    id: UUID
    kind: str
    value: int | None
    text: str
    given_by: str
    """Name of the operator; of others empty."""
    at: datetime
    is_own: bool
    """Whether the reader gave it, and so may withdraw it."""

    @property
    def is_up(self) -> bool:
        return self.kind != Signal.Kind.RATING and (self.value or 0) > 0

    @property
    def is_down(self) -> bool:
        return self.kind != Signal.Kind.RATING and (self.value or 0) < 0

    @property
    def source(self) -> str:
        """Name of the person who gave it, or the kind of the signal."""
        return self.given_by or {Signal.Kind.RATING: "rating", Signal.Kind.OUTCOME: "outcome"}.get(
            Signal.Kind(self.kind), "operator"
        )


def remarks_on(record: SessionRecord, item_ids: Iterable[str], *, reader: User) -> Mapping[str, list[Remark]]:
    """Remarks by the id of their item, the oldest first. One query."""
    signals = Signal.objects.filter(record_id=record.pk, item_id__in=list(item_ids), kind__in=SHOWN_KINDS)
    signals = signals.exclude(value=None, text="").select_related("given_by").order_by("created_at", "pk")
    masker, remarks = Masker(), defaultdict[str, list[Remark]](list)
    for signal in signals[:MOST_REMARKS]:
        remarks[signal.item_id].append(
            Remark(
                signal.pk,
                signal.kind,
                signal.value,
                masker.text(signal.text),
                signal.given_by.get_username() if signal.given_by else "",
                signal.created_at,
                signal.kind == Signal.Kind.FEEDBACK and signal.given_by_id == reader.pk,
            )
        )
    return remarks
