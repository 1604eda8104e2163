"""What every place outside of the database must do with a checkpoint that is brought to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memadmin.audit.transparency.notes import Checkpoint

Position = tuple[int, int]
"""Epoch and size: checkpoints of one log are in this order."""

NOWHERE: Position = (0, 0)
MOST_RECEIPT = 2000
"""Characters that are kept of what a place answers."""


class AnchorFailed(Exception):
    """A place could not be reached, or would not take the checkpoint; later it may. The message is a sentence."""


class AnchorConflict(Exception):
    """What is there already contradicts the checkpoint. Trying again changes nothing: somebody has to look."""

    outcome = "refused"


class SecondRoot(AnchorConflict):
    """Another root is known for this size: the log was rewritten."""

    def __init__(self, place: str, ours: Checkpoint) -> None:
        super().__init__(
            f"{place} knows another root for size {ours.size}: the log was rewritten after that one was anchored, or"
            " another log anchors there."
        )


class OtherLog(AnchorConflict):
    def __init__(self, place: str, known: Checkpoint) -> None:
        super().__init__(
            f"{place} holds checkpoints of another log, {known.origin}. Each log needs a place of its own."
        )


class Ahead(AnchorConflict):
    """The place knows more of this log than we have: the database was restored from an older state."""

    outcome = "ahead"

    def __init__(self, place: str, known: Checkpoint) -> None:
        self.known = known
        super().__init__(
            f"{place} knows this log at size {known.size}, and it is shorter now: an older state was restored. Events"
            " wait for their places until begin_epoch was run."
        )


class Anchor(Protocol):
    """A place for checkpoints that whoever owns the database cannot change."""

    @property
    def name(self) -> str:
        """Of at most 64 characters, without secrets; another name is another place."""

    @property
    def is_local(self) -> bool:
        """Whether it may be asked often."""

    def put(self, checkpoint: Checkpoint, note: str) -> str:
        """Leaves a note there for good, and returns the place's receipt. The same note again is no error.

        Raises AnchorFailed, SecondRoot, OtherLog or Ahead.
        """

    def after(self, position: Position) -> Sequence[str]:
        """The notes beyond a position, oldest first, not verified; none where a place cannot be read.

        Raises AnchorFailed.
        """


def position_of(checkpoint: Checkpoint) -> Position:
    return checkpoint.epoch, checkpoint.size


def is_there_already(place: str, known: Checkpoint | None, ours: Checkpoint) -> bool:
    """Compares with the newest that a place has; raises SecondRoot, OtherLog or Ahead."""
    if known is None:
        return False
    if known.origin != ours.origin:
        raise OtherLog(place, known)
    if position_of(known) > position_of(ours):
        raise Ahead(place, known)
    if position_of(known) < position_of(ours):
        return False
    if known.root != ours.root:
        raise SecondRoot(place, ours)
    return True


def shortened(name: str) -> str:
    """A name that fits the column, with its end, which tells most of a path."""
    return name if len(name) <= 64 else f"{name[:8]}…{name[-55:]}"
