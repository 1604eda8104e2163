"""Anchor in an append-only file, on a volume to which the owner of the database cannot write.

Where the file system supports it (`chattr +a`), the operating system refuses everything but appending.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from memadmin.audit.transparency.anchors.base import AnchorFailed, Position, is_there_already, position_of, shortened
from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note

BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileAnchor:
    """JSON Lines, one checkpoint each: `{"epoch", "size", "root", "anchored_at", "note"}`."""

    path: Path
    is_local = True
    is_readable = True

    @property
    def name(self) -> str:
        return shortened(f"file:{self.path}")

    def put(self, checkpoint: Checkpoint, note: str) -> str:
        with self._locked() as file:
            last = next((known for _, known in _backwards(file)), None)
            if is_there_already(self.name, last, checkpoint):
                return "there already"
            line = {
                "epoch": checkpoint.epoch,
                "size": checkpoint.size,
                "root": checkpoint.root.hex(),
                "anchored_at": datetime.now(UTC).isoformat(),
                "note": note,
            }
            # A line left incomplete by a crash stays a separate line.
            gap = b"" if _ends_well(file) else b"\n"
            os.write(file, gap + json.dumps(line, ensure_ascii=False).encode() + b"\n")
            os.fsync(file)
            return f"{self.path.name}, byte {os.fstat(file).st_size}"

    def after(self, position: Position) -> Sequence[str]:
        with self._read() as notes:
            return [note for note, _ in takewhile(lambda each: position_of(each[1]) > position, notes)][::-1]

    def newest_first(self) -> Iterator[str]:
        """All notes, not verified, the newest first. Raises AnchorFailed."""
        with self._read() as notes:
            for note, _ in notes:
                yield note

    @contextmanager
    def lines(self) -> Iterator[Iterable[bytes]]:
        """All lines, also those that are no notes; none without the file. Raises AnchorFailed."""
        try:
            with self.path.open("rb") if self.path.exists() else nullcontext(()) as file:
                yield file
        except OSError as problem:
            raise AnchorFailed(f"{self.path} cannot be read: {problem.strerror}.") from problem

    @contextmanager
    def _read(self) -> Iterator[Iterator[tuple[str, Checkpoint]]]:
        try:
            file = os.open(self.path, os.O_RDONLY) if self.path.exists() else None
            try:
                yield iter(()) if file is None else _backwards(file)
            finally:
                if file is not None:
                    os.close(file)
        except OSError as problem:
            raise AnchorFailed(f"{self.path} cannot be read: {problem.strerror}.") from problem

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            # The folder is not created: without its volume mounted, the file would be hidden by a later mount.
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as problem:
            raise AnchorFailed(f"{self.path} cannot be written: {problem.strerror}.") from problem


def _ends_well(file: int) -> bool:
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def _backwards(file: int) -> Iterator[tuple[str, Checkpoint]]:
    """The notes from the newest to the oldest, without unreadable lines.

    They are in order, because only newer notes are appended.
    """
    stop, beginning = os.fstat(file).st_size, b""
    while stop > 0:
        start = max(0, stop - BLOCK)
        first, *whole = (os.pread(file, stop - start, start) + beginning).split(b"\n")
        # The first line may have begun in the block before.
        beginning = first if start else b""
        for line in reversed(whole if start else [first, *whole]):
            note, known = _parsed(line)
            if known:
                yield note, known
        stop = start


def _parsed(line: bytes) -> tuple[str, Checkpoint | None]:
    try:
        note = str(json.loads(line)["note"])
        return note, Checkpoint.parse(Note.parse(note).text)
    except (ValueError, TypeError, KeyError, BadNote):
        return "", None
