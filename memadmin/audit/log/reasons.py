"""Why somebody changed something by hand: a code in the event, and words beside it that can be erased."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import TextChoices


class EditReason(TextChoices):
    CORRECTION = "correction", "something is recorded wrongly"
    STAFF = "staff", "somebody joins, leaves or does other work"
    SUBJECT_REQUEST = "subject_request", "a person's access or erasure request"
    INCIDENT = "incident", "an incident"
    UPKEEP = "upkeep", "upkeep of the installation"


@dataclass(frozen=True, slots=True)
class Why:
    """The reason of a raw edit, as it was stated: a code for the event, and what stands beside it."""

    code: str
    explanation: str = ""

    @property
    def details(self) -> dict[str, str] | None:
        return {"explanation": self.explanation} if self.explanation else None


UNSAID = Why("")
"""Where nobody is asked: verbs of the console's own pages, and commands."""
