"""Branch of a session selected by the address, and the branches to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.masking import Masker
from sessions_app.models import SessionRecord
from sessions_app.stores.base import Branch, Branching, TurnUsage, UnknownItem
from sessions_app.stores.kinds import branching

ALL = "all"
"""Value in an address: items of all branches together, in the order in which they were written."""

MAIN = "main"
"""Branch in which the SDK begins."""


@dataclass(frozen=True, slots=True)
class BranchChoice:
    """A branch in the menu; its name is masked, like all text of agents."""

    name: str
    number: int
    item_count: int
    turn_count: int
    is_shown: bool


@dataclass(frozen=True, slots=True)
class TurnBar:
    """Tokens of one turn, compared with the largest turn."""

    usage: TurnUsage
    most: int


@dataclass(frozen=True, slots=True)
class Branches:
    """Branches of a session; empty for a session without any."""

    shown: Branch | None = None
    """Selected branch; None: all items."""
    choices: Sequence[BranchChoice] = ()
    """Branches to choose from; empty if there is only one."""
    shared_count: int = 0
    """Number of items of the selected branch that others contain, too."""
    turns: Sequence[TurnBar] = ()

    @property
    def asked(self) -> str:
        """Value of the branch in further addresses of the page."""
        if not self.choices:
            return ""
        return str(self.shown.number) if self.shown else ALL

    @property
    def shown_name(self) -> str:
        return next((choice.name for choice in self.choices if choice.is_shown), "")


NONE = Branches()


def branches_for(record: SessionRecord, *, asked: str = "", item_id: str = "") -> Branches:
    """The branch that an address names; else the one with the selected item, or the first one, also if the named one is
    gone.

    A few requests to a store with branches, none to others. Raises StoreUnavailable.
    """
    backend = branching(record.store)
    if backend is None:
        return NONE
    found = backend.branches(record.session_id)
    if not found:
        return NONE
    if len(found) == 1:
        return Branches(turns=_turns(backend, record.session_id, found[0]))
    shown = _shown(backend, record.session_id, found, asked, item_id)
    masker = Masker()
    return Branches(
        shown,
        [
            BranchChoice(masker.text(each.name), each.number, each.item_count, each.turn_count, each == shown)
            for each in found
        ],
        backend.shared_count(record.session_id, shown) if shown else 0,
        _turns(backend, record.session_id, shown) if shown else (),
    )


def _shown(backend: Branching, session_id: str, found: Sequence[Branch], asked: str, item_id: str) -> Branch | None:
    if asked == ALL:
        return None
    for branch in found:
        if str(branch.number) == asked:
            return branch
    # The one in which the SDK begins is tried first.
    ordered = sorted(found, key=lambda branch: branch.name != MAIN)
    if not item_id:
        return ordered[0]
    return next((branch for branch in ordered if _has(backend, branch, session_id, item_id)), None)


def _has(backend: Branching, branch: Branch, session_id: str, item_id: str) -> bool:
    try:
        backend.on_branch(branch).item(session_id, item_id)
    except UnknownItem:
        return False
    return True


def _turns(backend: Branching, session_id: str, branch: Branch) -> Sequence[TurnBar]:
    usage = backend.usage(session_id, branch)
    most = max((turn.total_tokens for turn in usage), default=0)
    return [TurnBar(turn, max(most, 1)) for turn in usage]
