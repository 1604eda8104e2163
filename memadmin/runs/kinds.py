"""Kinds of runs: the register to which upper packages add theirs, in a module `run_kinds.py` of their app."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar

from django.contrib.auth.models import User

if TYPE_CHECKING:
    from memadmin.runs.engine import Lease
    from memadmin.runs.models import Run


class RunKind:
    """One kind of long work. Subclasses do the work; the engine does everything else."""

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    """Unit of `done` and `total`, in the plural: "sessions"."""
    counters: ClassVar[Mapping[str, str]] = {}
    """Labels of further counters, by name, in the order of their display."""
    sentences: ClassVar[Mapping[str, str]] = {}
    """Sentences for the codes of exceptions."""
    hints: ClassVar[Collection[str]] = ()
    """Codes that are worth a sentence and do not make the outcome an exception."""
    requester_permission: ClassVar[str] = ""
    """Permission with which the person who requested a run views it; empty if only those who view all runs do."""

    def work(self, lease: Lease) -> None:
        """Does the work from `lease.run.cursor` on, in chunks of the lease. Returns when everything is done.

        May be interrupted at any chunk or checkpoint and called again by another process.
        """
        raise NotImplementedError

    def before_end(self, run: Run) -> None:
        """Called in the transaction in which the run ends, in whatever state, with the run locked."""

    def describe(self, run: Run) -> str:
        """One line about what the run works on, without personal data."""
        return ""

    def url(self, run: Run, viewer: User) -> str:
        """Address of the thing that the run belongs to, if the viewer may open it; else empty."""
        return ""

    def may_cancel(self, run: Run) -> bool:
        """Whether the run may still be cancelled."""
        return True

    def before_resume(self, run: Run, by: User) -> bool:
        """Called when a person resumes a stopped run, in that transaction, with the run locked: they have decided.

        False if this person may not decide; then nothing happens.
        """
        return True

    def may_resume(self, run: Run) -> bool:
        """Whether a person who may control runs decides about a stopped one by resuming it, on its page."""
        return False

    def may_retry(self, run: Run) -> bool:
        """Whether the run may continue after it has failed."""
        return True


_kinds: dict[str, RunKind] = {}


def register(kind: type[RunKind]) -> type[RunKind]:
    """Class decorator: adds a kind under its name."""
    _kinds[kind.name] = kind()
    return kind


def kind_named(name: str) -> RunKind:
    """The kind with this name; `UnknownKind` when no installed app declares it."""
    return _kinds.get(name) or UnknownKind(name)


def all_kinds() -> list[RunKind]:
    """All registered kinds, by title."""
    return sorted(_kinds.values(), key=lambda kind: kind.title)


class UnknownKind(RunKind):
    """Placeholder for a kind of an earlier or later version of memadmin: its runs wait."""

    unit = "rows"

    def __init__(self, name: str) -> None:
        self.name = self.title = name  # type: ignore[misc]  # of this instance alone

    def work(self, lease: Lease) -> None:
        from memadmin.runs.engine import Wait

        raise Wait(f"This version of memadmin does not support runs of the kind {self.name}.")
