"""Facts of a receipt for its pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memadmin.erasure.holder_view_models import (
    TITLES,
    ReachLine,
    StayingLine,
    exception_lines,
    holder_title,
    out_of_reach_lines,
)
from memadmin.erasure.models import SubjectRequest


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """Statements of a receipt, in the words of the pages."""

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
    """Holders with the number of rows erased, the most first; without those that had none."""
    empty: str
    """Titles of holders that had none."""
    held: Sequence[tuple[str, int]]
    exceptions: Sequence[StayingLine]
    out_of_reach: Sequence[ReachLine]

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.erased)

    @property
    def rows_held(self) -> int:
        return sum(count for _, count in self.held)

    @property
    def holders(self) -> int:
        return len(self.erased)

    @property
    def version(self) -> str:
        """Version of memadmin that erased."""
        return str(self.payload.get("versions", {}).get("code", ""))

    @property
    def erased_at(self) -> datetime | None:
        text = self.payload.get("times", {}).get("erased_at", "")
        return datetime.fromisoformat(text) if text else None

    @property
    def people(self) -> int:
        return len({actor["actor"] for actor in self.payload.get("actors", ())})


def facts_of(receipt: str) -> ReceiptFacts:
    """The facts of a stored receipt, without a verification."""
    stated = json.loads(receipt)
    payload = stated["payload"]
    event = stated.get("event", "")
    erased = counts(payload.get("counts", {}))
    # The text of a checkpoint has the name of the log, its size and its root in three lines.
    checkpoint: str = stated.get("checkpoint", "")
    _, size, root, *_ = [*checkpoint.split("\n"), "", "", ""]
    return ReceiptFacts(
        payload=payload,
        event=event["id"] if isinstance(event, dict) else event,
        log_size=size,
        root=root,
        key=stated.get("key", ""),
        signature=stated.get("signature", ""),
        outcome=SubjectRequest.State(payload["outcome"]).label,
        erased=[(title, count) for title, count in erased if count],
        empty=", ".join(title for title, count in erased if not count),
        held=counts(payload.get("held", {})),
        exceptions=exception_lines(payload.get("exceptions", ())),
        out_of_reach=out_of_reach_lines(payload.get("out_of_reach", ())),
    )


def counts(rows: Mapping[str, int]) -> list[tuple[str, int]]:
    """Titles of holders with their numbers, the highest first. A store is named as one: who reads it may know none."""
    titles = {name: title_of(name) for name in rows}
    return sorted(((titles[name], count) for name, count in rows.items()), key=lambda row: (-row[1], row[0]))


def title_of(holder: str) -> str:
    name, _, store = holder.partition("/")
    return f"{TITLES.get(name, name)} in the store {store}" if store else holder_title(holder)
