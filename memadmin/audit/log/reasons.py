"""Why somebody changed something by hand: a code in the event, and words beside it that can be erased."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import TextChoices


class EditReason(TextChoices):
    CORRECTION = "correction", "correction of a wrong record"
    STAFF = "staff", "change of staff or duties"
    SUBJECT_REQUEST = "subject_request", "data-subject request (access or erasure)"
    INCIDENT = "incident", "incident"
    UPKEEP = "upkeep", "maintenance of the installation"


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
