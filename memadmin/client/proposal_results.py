"""Results of proposals by agents. Refusals are values: no agent's run ends for one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias
from uuid import UUID


class RefusalReason(Enum):
    """Why something was not kept, in a sentence."""

    EMPTY = "There is nothing in it."
    TOO_LONG = "It is too long to be remembered: at most 2,000 characters for a statement, 4,000 for other texts."
    TOO_MANY = "It comes with too many: at most 50 quotes, for at most 50 agents."
    FULL = "So many proposals about this subject wait for a person that no other is taken."
    UNREADABLE = "It holds characters or values that cannot be stored."
    NO_SUBJECT = "Nobody knows whom it is about."
    BAD_SUBJECT = "The subject's id is empty or too long."
    NOT_THEIR_WORDS = "It rests on words of a session that is not on record, or about somebody else."
    STOPPED = "Nothing is to be learned from this subject."
    NOT_ALLOWED = "The database does not let this run say that."
    INVALID = "The database does not take a value of it."
    IN_THE_WAY = "Something else was changing the same in the database; it was not kept."
    AWAY = "The console's database does not answer; it was not kept."


@dataclass(frozen=True, slots=True)
class Kept:
    """Under this id. A proposal is seen by reviewers, and by no agent until they approve it."""

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
    """For what the database says."""
    unreadable = RefusalReason.UNREADABLE if sqlstate.startswith("22") else RefusalReason.INVALID
    return ProposalRefused(BY_SQLSTATE.get(sqlstate, unreadable))


def unfit(text: str, longest: int) -> RefusalReason | None:
    """Why a text cannot be stored. What is too long is not cut: a reviewer would approve what nobody said."""
    if not text.strip():
        return RefusalReason.EMPTY
    if len(text) > longest:
        return RefusalReason.TOO_LONG
    return None if is_storable(text) else RefusalReason.UNREADABLE


def is_storable(text: str) -> bool:
    """PostgreSQL takes neither the character zero nor half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
