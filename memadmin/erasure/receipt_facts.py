"""Facts of a receipt for its pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memadmin.erasure.holder_view_models import (
    ExceptionLine,
    ReachLine,
    exception_lines,
    holder_title,
    out_of_reach_lines,
)
from memadmin.erasure.models import SubjectRequest


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """What a receipt states, in the words of the pages."""

    payload: Mapping[str, Any]
    event: str
    """Id of the event in the audit log that names the receipt."""
    log_size: str
    """Number of events of the log that its checkpoint covers; empty if it is not stated."""
    root: str
    key: str
    signature: str
    outcome: str
    erased: Sequence[tuple[str, int]]
    held: Sequence[tuple[str, int]]
    exceptions: Sequence[ExceptionLine]
    out_of_reach: Sequence[ReachLine]

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.erased)

    @property
    def rows_held(self) -> int:
        return sum(count for _, count in self.held)

    @property
    def holders(self) -> int:
        return sum(count > 0 for _, count in self.erased)

    @property
    def erased_at(self) -> datetime | None:
        text = self.payload.get("erased_at", "")
        return datetime.fromisoformat(text) if text else None

    @property
    def people(self) -> int:
        return len(set(filter(None, self.payload.get("actors", {}).values())))


def facts_of(receipt: str) -> ReceiptFacts:
    """The facts of a stored receipt, without a verification."""
    stated = json.loads(receipt)
    payload = stated["payload"]
    event = stated.get("event", "")
    # The text of a checkpoint has the name of the log, its size and its root in three lines.
    _, size, root, *_ = [*stated.get("checkpoint", "").split("\n"), "", "", ""]
    return ReceiptFacts(
        payload=payload,
        event=event["id"] if isinstance(event, dict) else event,
        log_size=size,
        root=root,
        key=stated.get("key", ""),
        signature=stated.get("signature", ""),
        outcome=SubjectRequest.State(payload["outcome"]).label,
        erased=counts(payload.get("erased", {})),
        held=counts(payload.get("held", {})),
        exceptions=exception_lines(payload.get("exceptions", ())),
        out_of_reach=out_of_reach_lines(payload.get("out_of_reach", ())),
    )


def counts(rows: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(holder_title(name, ""), count) for name, count in rows.items()]
