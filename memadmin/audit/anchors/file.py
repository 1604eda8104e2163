"""A file that is only appended to, on a volume that whoever owns the database cannot write to.

Where the file system knows it (`chattr +a`), the operating system refuses anything but appending.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memadmin.audit.anchors.base import AnchorFailed, Position, is_there_already, position_of, shortened
from memadmin.audit.notes import BadNote, Checkpoint, Note

LONGEST_LINE = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileAnchor:
    """JSON Lines, one checkpoint each: `{"epoch", "size", "root", "anchored_at", "note"}`."""

    path: Path
    is_local = True

    @property
    def name(self) -> str:
        return shortened(f"file:{self.path}")

    def put(self, checkpoint: Checkpoint, note: str) -> str:
        with self._locked() as file:
            last = _last_checkpoint(file)
            if is_there_already(self.name, last, checkpoint):
                return "there already"
            line = {
                "epoch": checkpoint.epoch,
                "size": checkpoint.size,
                "root": checkpoint.root.hex(),
                "anchored_at": datetime.now(UTC).isoformat(),
                "note": note,
            }
            # What a crash left half written stays a line of its own.
            gap = b"" if _ends_well(file) else b"\n"
            os.write(file, gap + json.dumps(line, ensure_ascii=False).encode() + b"\n")
            os.fsync(file)
            return f"{self.path.name}, byte {os.fstat(file).st_size}"

    def after(self, position: Position) -> Sequence[str]:
        try:
            with self.path.open("rb") as lines:
                return [note for note, known in map(_parsed, lines) if known and position_of(known) > position]
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise AnchorFailed(f"{self.path} cannot be read: {problem.strerror}.") from problem

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
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


def _last_checkpoint(file: int) -> Checkpoint | None:
    """The newest line that can be read. They are in order, because nothing is added that would not be the newest."""
    size = os.fstat(file).st_size
    while size > 0:
        start = max(0, size - LONGEST_LINE)
        lines = os.pread(file, size - start, start).splitlines(keepends=True)
        # The first line of a part may have begun before it.
        whole = lines if start == 0 else lines[1:]
        for line in reversed(whole):
            if known := _parsed(line)[1]:
                return known
        size = start + (len(lines[0]) if start and len(lines) > 1 else 0)
    return None


def _parsed(line: bytes) -> tuple[str, Checkpoint | None]:
    try:
        note = str(json.loads(line)["note"])
        return note, Checkpoint.parse(Note.parse(note).text)
    except (ValueError, TypeError, KeyError, BadNote):
        return "", None
