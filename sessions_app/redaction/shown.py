"""Items as a preview showed them: a redaction changes these, and no others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.utils.crypto import salted_hmac

MARK_CHARACTERS = 12
"""Characters of a mark that tell items of one preview apart."""


def mark_of(text: str) -> str:
    """A value that changes with the stored text, and reveals nothing about it."""
    return salted_hmac("sessions_app.redaction", text.encode(errors="surrogatepass"), algorithm="sha256").hexdigest()


@dataclass
class ShownItems:
    """Marks of the items that a preview showed, by session.

    Items are known by their content and not by their ids: in a store without ids others move to their places.
    """

    of_sessions: dict[str, list[str]] = field(default_factory=dict)
    """By id of the registry row; empty for a session in which nothing was found."""
    unseen: list[str] = field(default_factory=list)
    """Sessions that the preview named as not shown, which are redacted all the same."""
    is_rest_meant: bool = False
    """True if the preview ran out of time, and said that all other sessions are redacted, too."""

    def marks_in(self, record_id: UUID) -> frozenset[str] | None:
        """Marks of the items to redact in a session; None for all that contain the text."""
        found = self.of_sessions.get(str(record_id))
        if found is None and (self.is_rest_meant or str(record_id) in self.unseen):
            return None
        return frozenset(found or ())

    @property
    def digest(self) -> str:
        """Changes with the items that were found, however many other sessions were searched."""
        found = sorted((record_id, sorted(marks)) for record_id, marks in self.of_sessions.items() if marks)
        parts = json.dumps([found, sorted(self.unseen), self.is_rest_meant])
        return sha256(parts.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """For the row of a redaction. Of a finished search only sessions with items are needed."""
        kept = {key: marks for key, marks in self.of_sessions.items() if marks or self.is_rest_meant}
        return {"sessions": kept, "unseen": self.unseen, "rest": self.is_rest_meant}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ShownItems:
        """A preview from the result of `as_json`; of an empty value, one that showed nothing."""
        return cls(value.get("sessions", {}), value.get("unseen", []), value.get("rest", False))
