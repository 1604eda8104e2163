"""The interface of anchors: stores of checkpoints outside of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memadmin.audit.transparency.notes import Checkpoint

Position = tuple[int, int]
"""Epoch and size: checkpoints of one log are in this order."""

NOWHERE: Position = (0, 0)
MOST_RECEIPT = 2000
"""Characters of an anchor's response that are stored."""


class AnchorFailed(Exception):
    """An anchor was unreachable or did not accept the checkpoint; a retry may succeed. The message is a sentence."""


class AnchorConflict(Exception):
    """The anchor's content contradicts the checkpoint. A retry does not help; an operator has to act."""

    outcome = "refused"


class SecondRoot(AnchorConflict):
    """The anchor has another root for this size: the log was rewritten."""

    def __init__(self, place: str, ours: Checkpoint) -> None:
        super().__init__(
            f"{place} has another root for size {ours.size}: the log was rewritten after that root was anchored, or"
            " another log uses this anchor."
        )


class OtherLog(AnchorConflict):
    def __init__(self, place: str, known: Checkpoint) -> None:
        super().__init__(f"{place} contains checkpoints of another log, {known.origin}. Each log needs its own anchor.")


class Ahead(AnchorConflict):
    """The anchor has a newer checkpoint of this log: the database was restored from an older state."""

    outcome = "ahead"

    def __init__(self, place: str, known: Checkpoint) -> None:
        self.known = known
        super().__init__(
            f"{place} has a checkpoint of size {known.size}, and the log is shorter: an older state was restored. New"
            " events wait until you run begin_epoch."
        )


class Anchor(Protocol):
    """A store of checkpoints that the owner of the database cannot change."""

    @property
    def name(self) -> str:
        """At most 64 characters, without secrets; identifies the anchor."""

    @property
    def is_local(self) -> bool:
        """Whether it may be read often."""

    @property
    def is_readable(self) -> bool:
        """Whether its notes can be read again; a write-only anchor gives none."""

    def put(self, checkpoint: Checkpoint, note: str) -> str:
        """Stores a note permanently, and returns the anchor's receipt. The same note again is no error.

        Raises AnchorFailed, SecondRoot, OtherLog or Ahead.
        """

    def after(self, position: Position) -> Sequence[str]:
        """The notes after a position, oldest first, not verified; none from a write-only anchor.

        Raises AnchorFailed.
        """


def position_of(checkpoint: Checkpoint) -> Position:
    return checkpoint.epoch, checkpoint.size


def is_there_already(place: str, known: Checkpoint | None, ours: Checkpoint) -> bool:
    """Whether the anchor's newest checkpoint is ours; raises SecondRoot, OtherLog or Ahead."""
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
    """A name that fits the column, with its end, the most specific part of a path."""
    return name if len(name) <= 64 else f"{name[:8]}…{name[-55:]}"
