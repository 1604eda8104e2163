"""The users' memories of both libraries: what is kept of one user is read like a session that has the user's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.database import Desk, Row, as_text, instant
from sessions_app.stores.documents.json_text import Part
from sessions_app.stores.documents.shelf import Beginning, Chapter, Piece, Shelf, Told, key_of, mark_of


class MemoriesShelf(Shelf):
    """A memory is an item. Other columns of its row, as with what it was made of, change and go with it."""

    id_column: ClassVar[str]
    holds_memories = True

    def session_ids(self, desk: Desk, after: str | None, limit: int) -> list[str]:
        beyond = "AND user_id > :after" if after is not None else ""
        query = f"SELECT DISTINCT user_id FROM {desk.name()} WHERE user_id IS NOT NULL {beyond} ORDER BY 1 LIMIT :limit"
        wanted = {"limit": limit} | ({"after": after} if after is not None else {})
        return [as_text(row[0]) for row in desk.rows(query, **wanted)]

    def found(self, desk: Desk, session_ids: Sequence[str]) -> list[FoundSession]:
        version = "length(memory)" if desk.is_sqlite else "CAST(CAST(xmin AS text) AS bigint)"
        found = []
        for user in session_ids:
            ((count, first, last, touched, total),) = desk.rows(
                "SELECT count(*), min(created_at), max(created_at), max(updated_at),"
                f" sum({version}) FROM {desk.name()} WHERE user_id = :user",
                user=user,
            )
            times = [time for time in (time_of(last), time_of(touched)) if time]
            mark = mark_of(count, last, touched, total)
            found.append(FoundSession(user, time_of(first), max(times, default=None), mark))
        return found

    def beginnings(self, desk: Desk, session_ids: Sequence[str]) -> Mapping[str, Beginning]:
        """Nobody says anything in a memory: there is no first text."""
        source, wanted = desk.wanted(session_ids)
        query = (
            f"SELECT w.session_id, count(*) FROM ({source}) AS w JOIN {desk.name()} AS m ON m.user_id = w.session_id"
            " GROUP BY w.session_id"
        )
        return {as_text(user): Beginning(count, []) for user, count in desk.rows(query, **wanted)}

    def chapters(self, desk: Desk, session_id: str) -> list[Chapter]:
        query = (
            f'SELECT "{self.id_column}", created_at FROM {desk.name()} WHERE user_id = :user'
            f' ORDER BY created_at, "{self.id_column}"'
        )
        rows = desk.rows(query, user=session_id)
        return sorted((self._chapter(desk, *row) for row in rows), key=lambda chapter: chapter.order)

    def _chapter(self, desk: Desk, named: object, created: object = None) -> Chapter:
        name, time = as_text(named), time_of(created)
        microseconds = int(time.timestamp() * 1_000_000) if time else 0
        return Chapter(key_of(name), (microseconds, name), desk.table, "memory", name)

    def told(self, desk: Desk, session_id: str, chapters: Sequence[Chapter]) -> Mapping[str, Told]:
        told = {}
        for chapter in chapters:
            query = (
                f"SELECT {desk.text_of(chapter.column)}, created_at FROM {desk.name()}"
                f' WHERE user_id = :user AND "{self.id_column}" = :name'
            )
            for text, created in desk.rows(query, user=session_id, name=chapter.name):
                if text not in (None, ""):
                    told[chapter.key] = Told(as_text(text), time_of(created))
        return told

    def pieces(self, chapter: Chapter, told: Told) -> Iterator[Piece]:
        yield Piece(0, Part(0, len(told.text)), told.written_at, is_said=True)

    def lock(self, desk: Desk, session_id: str) -> Sequence[tuple[Row, Sequence[Chapter]]]:
        name = f'"{self.id_column}"'
        columns = desk.text_columns(desk.table)
        rows = desk.locked_rows(desk.table, columns, "user_id = :user", also=name, user=session_id)
        return [(row, [self._chapter(desk, row.name)]) for row in rows]

    def beside(self, desk: Desk, session_id: str) -> list[Row]:
        return []

    def shortened(self, chapter: Chapter, text: str, gone: Sequence[Piece]) -> str | None:
        return None

    def erase(self, desk: Desk, session_id: str) -> None:
        desk.run(f"DELETE FROM {desk.name()} WHERE user_id = :user", user=session_id)


def time_of(stored: object) -> datetime | None:
    """Aware UTC, of seconds since 1970 or of what a database gives for a time."""
    if isinstance(stored, datetime):
        return stored if stored.tzinfo else stored.replace(tzinfo=UTC)
    if isinstance(stored, str):
        try:
            time = datetime.fromisoformat(stored)
        except ValueError:
            return instant(stored)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return instant(stored) if stored is not None else None
