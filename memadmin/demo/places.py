"""Further stores of demo bots: SQLite files, one with branches, one encrypted, and a folder of chats."""

from __future__ import annotations

import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any, cast

from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession
from agents.items import TResponseInputItem
from agents.memory import Session
from agents.memory.session import SessionABC
from django.conf import settings

from memadmin.demo import sealing


@dataclass(frozen=True, slots=True)
class DemoStore(ABC):
    """One store and its sessions. Finished sessions begin on a full minute, live ones hardly ever."""

    name: str

    kind = ""
    is_sealed = False

    @abstractmethod
    def make(self) -> Mapping[str, str]:
        """Creates the store as its bots do, unless it exists; returns its settings."""

    @abstractmethod
    def open(self, session_id: str) -> AbstractContextManager[Session]: ...

    @abstractmethod
    def is_told(self, session_id: str) -> bool: ...

    @abstractmethod
    def move_into_the_past(self, session_id: str, began: timedelta) -> None: ...


def _folder() -> Path:
    folder = Path(settings.DATA_DIR) / "agents"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class File(DemoStore):
    """A file of `SQLiteSession`."""

    kind = "sqlite"

    @property
    def path(self) -> Path:
        return _folder() / f"{self.name}.db"

    def make(self) -> Mapping[str, str]:
        self._stored("nobody").close()
        return {"path": str(self.path)}

    @contextmanager
    def open(self, session_id: str) -> Iterator[Session]:
        with closing(self._stored(session_id)) as stored:
            yield self._kept(stored)

    def _stored(self, session_id: str) -> SQLiteSession:
        return SQLiteSession(session_id, self.path)

    def _kept(self, stored: SQLiteSession) -> Session:
        return stored

    def is_told(self, session_id: str) -> bool:
        query = "SELECT count(*) FROM agent_sessions WHERE session_id = ? AND created_at LIKE '%:00'"
        with closing(sqlite3.connect(self.path)) as connection:
            return bool(connection.execute(query, [session_id]).fetchone()[0])

    def move_into_the_past(self, session_id: str, began: timedelta) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            rows = connection.execute(
                "SELECT id FROM agent_messages WHERE session_id = ? ORDER BY id", [session_id]
            ).fetchall()
            since = f"-{int(began.total_seconds())} seconds"
            minute = "strftime('%Y-%m-%d %H:%M:00', 'now', ?, ?)"
            for place, (number,) in enumerate(rows):
                connection.execute(
                    f"UPDATE agent_messages SET created_at = {minute} WHERE id = ?",
                    [since, f"+{place // 2} minutes", number],
                )
            connection.execute(
                f"UPDATE agent_sessions SET created_at = {minute}, updated_at = {minute} WHERE session_id = ?",
                [since, "+0 minutes", since, f"+{len(rows) // 2} minutes", session_id],
            )


@dataclass(frozen=True, slots=True)
class BranchedFile(File):
    """A file of `AdvancedSQLiteSession`."""

    kind = "advanced_sqlite"

    def _stored(self, session_id: str) -> SQLiteSession:
        return AdvancedSQLiteSession(session_id=session_id, db_path=self.path, create_tables=True)


@dataclass(frozen=True, slots=True)
class SealedFile(File):
    """A file of `SQLiteSession`, all of it in the SDK's `EncryptedSession`."""

    is_sealed = True

    def _kept(self, stored: SQLiteSession) -> Session:
        return sealing.sealed(stored)


@dataclass(frozen=True, slots=True)
class ChatFolder(DemoStore):
    """A folder with a JSON file for each session, as in bots older than the SDK's own sessions."""

    kind = "json_file"

    @property
    def path(self) -> Path:
        return _folder() / self.name

    def make(self) -> Mapping[str, str]:
        self.path.mkdir(mode=0o700, exist_ok=True)
        return {"path": str(self.path)}

    def open(self, session_id: str) -> AbstractContextManager[Session]:
        return nullcontext(ChatFile(session_id, self._chat(session_id)))

    def _chat(self, session_id: str) -> Path:
        return self.path / f"{session_id}.json"

    def is_told(self, session_id: str) -> bool:
        path = self._chat(session_id)
        return path.exists() and path.stat().st_mtime % 60 == 0

    def move_into_the_past(self, session_id: str, began: timedelta) -> None:
        minute = (time() - began.total_seconds()) // 60 * 60
        os.utime(self._chat(session_id), (minute, minute))


class ChatFile(SessionABC):
    """A session in one file of `[{role, content}]`: messages only, without calls and ids."""

    def __init__(self, session_id: str, path: Path) -> None:
        self.session_id = session_id
        self._path = path

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        said = json.loads(self._path.read_bytes()) if self._path.exists() else []
        return cast("list[TResponseInputItem]", said[-limit:] if limit else said)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        messages = [dict(item) for item in items if "role" in item]
        said = [{"role": message["role"], "content": _text_of(message)} for message in messages]
        self._write([*await self.get_items(), *said])

    async def pop_item(self) -> TResponseInputItem | None:
        said = await self.get_items()
        last = said.pop() if said else None
        self._write(said)
        return last

    async def clear_session(self) -> None:
        self._path.unlink(missing_ok=True)

    def _write(self, said: list[Any]) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(said, ensure_ascii=False, indent=1), encoding="utf-8")
        fresh.replace(self._path)


def _text_of(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)
