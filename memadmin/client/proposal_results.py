"""Results of proposals by agents. Refusals are values: no agent's run ends for one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias
from uuid import UUID


class RefusalReason(Enum):
    """Reason why something was not stored, or not found, as a sentence."""

    EMPTY = "The text is empty."
    TOO_LONG = "The text is too long: at most 2,000 characters for a statement, 4,000 for other texts."
    TOO_MANY = "Too many quotes or agents: the maximum is 50 of each."
    FULL = "Too many proposals about this subject are waiting for review."
    UNREADABLE = "The proposal contains characters or values that cannot be stored."
    NO_SUBJECT = "The subject is unknown."
    NOT_FOUND = "There is no such memory for this agent and subject."
    BAD_SUBJECT = "The subject's id is empty or too long."
    NOT_THEIR_WORDS = "The evidence is from a session that is not registered or that is about another subject."
    ERASED = "The subject's data was erased, and nothing is stored about it again."
    STOPPED = "Learning is stopped for this subject."
    NOT_ALLOWED = "The agents' database role may not store this."
    INVALID = "The database rejects one of its values."
    IN_THE_WAY = "Nothing was stored, because another change was saved first. Try again."
    AWAY = "Nothing was stored, because the console's database is not responding."


@dataclass(frozen=True, slots=True)
class Kept:
    """Stored under this id. Reviewers see a proposal, and no agent does until they approve it."""

    id: UUID

    def __bool__(self) -> Literal[True]:
        return True


@dataclass(frozen=True, slots=True)
class ProposalRefused:
    reason: RefusalReason

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return self.reason.value


Answer: TypeAlias = "Kept | ProposalRefused"

BY_SQLSTATE = {
    "P0E01": RefusalReason.ERASED,
    "P0M01": RefusalReason.STOPPED,
    "P0M06": RefusalReason.FULL,
    "P0M08": RefusalReason.NOT_THEIR_WORDS,
    "P0E04": RefusalReason.BAD_SUBJECT,
    "42501": RefusalReason.NOT_ALLOWED,
    "22001": RefusalReason.TOO_LONG,
    "40001": RefusalReason.IN_THE_WAY,
    "40P01": RefusalReason.IN_THE_WAY,
}


def refused_with(sqlstate: str) -> ProposalRefused:
    """For the database's refusals."""
    unreadable = RefusalReason.UNREADABLE if sqlstate.startswith("22") else RefusalReason.INVALID
    return ProposalRefused(BY_SQLSTATE.get(sqlstate, unreadable))


def unfit(text: str, longest: int) -> RefusalReason | None:
    """Reason why a text cannot be stored. Long texts are not cut: a reviewer would approve something else than was
    said.
    """
    if not text.strip():
        return RefusalReason.EMPTY
    if len(text) > longest:
        return RefusalReason.TOO_LONG
    return None if is_storable(text) else RefusalReason.UNREADABLE


def is_storable(text: str) -> bool:
    """False for the character zero and half of a surrogate pair, which PostgreSQL cannot store."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
