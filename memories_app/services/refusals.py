"""Refused actions on memories: a class for each reason, with a sentence for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError

from memories_app.models import Memory
from sessions_app.registry import ERASED


class MemoryActionRefused(Exception):
    """An action that is not possible with this memory; nothing was changed."""

    sentence = ""

    def __init__(self, memory: Memory | None = None, sentence: str = "") -> None:
        self.memory = memory
        super().__init__(sentence or self.sentence)


class Overtaken(MemoryActionRefused):
    """The action is no longer possible: another user was faster, or the memory changed."""


class NotRecalled(Overtaken):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory, f"Agents do not recall this memory: its status is {memory.get_status_display()}.")


class OnlyErased(MemoryActionRefused):
    sentence = "Versions cannot be changed; only their text can be erased."


class StillRead(MemoryActionRefused):
    sentence = "This is the current version. Change or retire the memory first."


class ErasedAlready(Overtaken):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory, "The text of this version is already erased.")


class UnderHold(MemoryActionRefused):
    """The memory must be kept; the message says why."""


class Unproposable(MemoryActionRefused):
    """An invalid memory: its text or another value."""


class NothingLearnedHere(MemoryActionRefused):
    sentence = "Learning is stopped for this subject."


class SubjectGone(MemoryActionRefused):
    sentence = "The data of this subject was erased. Nothing is stored about it again."


class OtherSubject(MemoryActionRefused):
    sentence = "The memory that this would change belongs to another subject."


class NotAProposal(MemoryActionRefused):
    sentence = "A new memory must be a proposal."


class NotApproved(MemoryActionRefused):
    sentence = (
        "The required approvals of this text are missing: one reviewer, or two where a second approver is needed."
    )


class NotScreened(MemoryActionRefused):
    sentence = "The risk check of this text is pending. Approve it afterwards."


class NotProven(MemoryActionRefused):
    sentence = (
        "The database has no proof of who decides, so nothing was changed. Ask an operator to open /readyz, and to"
        " compare the clocks of the web server and the database."
    )


class OwnProposal(MemoryActionRefused):
    sentence = "You proposed this yourself. Another reviewer has to decide."


class SecondPersonNeeded(MemoryActionRefused):
    sentence = "You have already approved this. A second approver is needed."


class CannotBeMerged(MemoryActionRefused):
    pass


GATE: dict[str, type[MemoryActionRefused]] = {
    "P0M01": NothingLearnedHere,
    "P0M02": NotAProposal,
    "P0M03": NotApproved,
    "P0M04": NotScreened,
    "P0M05": OnlyErased,
    "P0M07": OtherSubject,
    "P0M09": NotProven,
    "P0A02": NotProven,
    ERASED: SubjectGone,
}
"""Refusals of the database about memories, by SQLSTATE."""


@contextmanager
def gate_explained(memory: Memory | None = None) -> Iterator[None]:
    """Converts refusals of the gate inside the block to the classes here."""
    try:
        yield
    except DatabaseError as problem:
        refusal = GATE.get(getattr(problem.__cause__, "sqlstate", None) or "")
        if refusal is None:
            raise
        raise refusal(memory) from problem
