"""SQLite files of agents, looked at and brought into trouble without memadmin."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sessions_app.stores.sqlite import file as sqlite_file
from tests.stores.contract import Trouble


class SqliteFile:
    """The file of an agent, beside which its journals are."""

    path: Path
    journal_mode = "DELETE"
    """That of the agent."""
    lacks_tables: str
    """What is said of a file without the agent's tables."""

    def close(self) -> None:
        """Closes the agent's connections."""

    def leftovers(self, words: str) -> list[str]:
        """In the bytes of the file, of its journals and of their index."""
        files = sorted(self.path.parent.glob(f"{self.path.name}*"))
        return [file.name for file in files if words.encode() in file.read_bytes()]

    @contextmanager
    def put_aside(self, content: bytes | None, sentence: str) -> Iterator[str]:
        """Something else, or nothing, in the place of the file."""
        self.close()
        aside = self.path.with_name("aside")
        self.path.rename(aside)
        if content is not None:
            self.path.write_bytes(content)
        try:
            yield sentence
        finally:
            for file in self.path.parent.glob(f"{self.path.name}*"):
                file.unlink()
            aside.rename(self.path)

    @contextmanager
    def damaged(self) -> Iterator[str]:
        self.close()
        content = self.path.read_bytes()
        with self.put_aside(content[:4096] + b"\xff" * (len(content) - 4096), "is damaged") as sentence:
            yield sentence

    @contextmanager
    def locked(self) -> Iterator[str]:
        self.close()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode = DELETE")
            other.execute("BEGIN EXCLUSIVE")
            with pytest.MonkeyPatch.context() as impatient:
                impatient.setattr(sqlite_file, "LOCK_SECONDS", 0.01)
                impatient.setattr(sqlite_file, "WRITE_PATIENCE_SECONDS", 0.01)
                yield "has locked the file"
            other.execute("ROLLBACK")
            other.execute(f"PRAGMA journal_mode = {self.journal_mode}")

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """The file can be read as before, and takes no change."""
        with (
            closing(sqlite3.connect(self.path, isolation_level=None)) as writer,
            pytest.MonkeyPatch.context() as impatient,
        ):
            impatient.setattr(sqlite_file, "WRITE_PATIENCE_SECONDS", 0.01)
            writer.execute("BEGIN IMMEDIATE")
            yield
            writer.execute("ROLLBACK")

    def troubles(self) -> dict[str, Trouble]:
        return {
            "deleted": lambda: self.put_aside(None, "There is no file"),
            "not SQLite": lambda: self.put_aside(b"[]" * 5_000, "is not an SQLite file"),
            "empty": lambda: self.put_aside(b"", self.lacks_tables),
            "damaged": self.damaged,
            "locked": self.locked,
        }
