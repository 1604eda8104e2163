"""Entries read from a file or a table of another system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class ImportedQuote:
    """A quote of evidence from the other system."""

    quote: str
    speaker: str = ""
    session_id: str = ""
    item_id: str = ""
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """One memory: its position, subject (None for shared ones) and content."""

    place: str
    subject: tuple[str, str] | None
    """Kind and id; None for shared memories."""
    statement: str
    extractor: str
    kind: str = "fact"
    key: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    agents: Sequence[str] = ()
    provenance: str = "inferred"
    confidence: float = 0.5
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    revalidate_on: date | None = None
    said: Sequence[ImportedQuote] = ()


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """An entry that is not a memory: its position and the reason. Quotes only names of members."""

    place: str
    reason: str
