"""Reasons of manual changes: a code in the event, and an erasable explanation beside it."""

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
    """The stated reason of a raw edit: a code for the event, and an explanation for its details."""

    code: str
    explanation: str = ""

    @property
    def details(self) -> dict[str, str] | None:
        return {"explanation": self.explanation} if self.explanation else None


UNSAID = Why("")
"""For changes that need no reason: verbs of the console's own pages, and commands."""
