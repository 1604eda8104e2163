"""Outcome of a redaction: its numbers, and the reasons for which something was left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from django.db import models

from memadmin.runs.models import Run
from sessions_app.models import SessionRecord

MOST_NAMED = 20
"""Number of items of a session that are named one by one."""

LONGEST_ID = 80
"""Characters of an item id in a sentence."""


class LeftReason(models.TextChoices):
    """Reason why something was not redacted. The label is a sentence for the user who requested it."""

    AWAY = "away", "The store did not respond or rejected the change. Redact again when it is available."
    CANNOT = "cannot", "The text of items cannot be replaced in this store."
    SEALED = "sealed", "Encrypted with a key that this console does not have; it could not be inspected."
    BUSY = "busy", "An agent kept the session locked. Redact again while no agent uses it."
    WRITTEN_AGAIN = "written_again", "An agent wrote the text again during the redaction."
    UNFIT = "unfit", "The item would be invalid for the agent without the text."
    TOO_DEEP = (
        "too_deep",
        "The item contains the text and is nested too deeply to be redacted. Delete the item, or erase its session.",
    )
    UNREADABLE = "unreadable", "The session cannot be read, so nothing in it was changed. Its page states the reason."
    REFUSED = "refused", "The database does not accept the redacted items. Delete the items, or erase the session."
    CHANGED = "changed", "The item changed after the preview."
    NOT_SHOWN = "not_shown", "The item contains the text and was not in the preview, or changed since. Redact again."
    GONE = "gone", "The item or the session no longer exists."
    COMPACTED = "compacted", "A later compaction block may contain the text and cannot be inspected."
    KEPT_REASONING = "kept_reasoning", "Later reasoning has a part that only the provider can read."
    LABEL = (
        "label",
        "A label of the session contains the text: remove the label manually and erase the details of its event.",
    )
    UNREPLAYABLE = "unreplayable", "The history has new replay errors after the redaction."
    HELD = "held", "The session is under a legal hold. Redact again when the hold is released."
    TOO_LATE = "too_late", "No worker started the redaction in time."
    NOT_APPROVED = "not_approved", "No second person approved the redaction in time."


HINTS = frozenset({LeftReason.KEPT_REASONING})
"""Reasons that are reported, but are no failure."""


@dataclass
class RedactionOutcome:
    """Result of a redaction, or of one session of it, in numbers."""

    sessions: int = 0
    """Searched sessions."""
    changed: int = 0
    items: int = 0
    places: int = 0
    kept: int = 0
    """Occurrences of the text in ids and names, where it stays."""
    taken_out: int = 0
    """Removed compaction blocks."""
    replayed: int = 0
    """Sessions whose history was replayed afterwards, and is valid for the SDK."""
    replayed_as_before: int = 0
    """Sessions with errors before the redaction, and no further ones since."""
    searches: int = 0
    copies: int = 0
    """Redacted copies in other parts of the console, such as memories."""
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of items, or sessions, that were left, by reason and store."""

    def leave(self, why: LeftReason, store: str, count: int = 1) -> None:
        self.reasons[why.value, store] += count

    @property
    def left(self) -> int:
        return sum(count for (why, _), count in self.reasons.items() if why not in HINTS)

    def add_to(self, run: Run) -> None:
        """Adds these numbers to those of a run. The caller saves, in a chunk."""
        run.done += self.sessions
        run.count(**{name: getattr(self, name) for name in COUNTERS if getattr(self, name)})
        for (why, store), count in self.reasons.items():
            run.add_exception(why, store, count)

    @classmethod
    def of(cls, run: Run) -> RedactionOutcome:
        """The numbers of a run so far."""
        counts = {name: run.counters.get(name, 0) for name in COUNTERS}
        reasons = Counter({(why, store): count for why, store, count in run.exceptions})
        return cls(sessions=run.done, reasons=reasons, **counts)


COUNTERS = {
    "changed": "Sessions changed",
    "items": "Items redacted",
    "places": "Occurrences redacted",
    "kept": "Occurrences kept in ids and names",
    "taken_out": "Compaction blocks removed",
    "replayed": "Histories replayed",
    "replayed_as_before": "Histories with the same findings as before",
    "searches": "Searches deleted",
    "copies": "Memories and signals redacted",
}
"""Labels of the counters of a run, which are the columns of `RedactionOutcome`."""


def address_of(record: SessionRecord, item_id: str = "") -> str:
    """Address of a session, perhaps with one of its items, for people: a session id may be a name."""
    return f"item {item_id[:LONGEST_ID]} of /sessions/{record.pk}/" if item_id else f"/sessions/{record.pk}/"
