"""Tables of phidata: a row for each session, whose column `memory` is one document with all that was said in it.

Items are its messages; behind them is what no message says: runs without messages, the summary, the memories in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.backend import DocumentBackend, DocumentForm, swapped, write_changes
from sessions_app.stores.documents.database import Desk, Row, as_text, instant
from sessions_app.stores.documents.json_text import Swaps
from sessions_app.stores.documents.memories import MemoriesShelf
from sessions_app.stores.documents.messages import (
    conversation_without,
    piece_of_document,
    pieces_of_conversation,
    said_by_users,
)
from sessions_app.stores.documents.shelf import Beginning, Chapter, Piece, Shelf, Told, mark_of
from sessions_app.stores.kinds import Kind
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS

OF_SESSION = "session_id = :session_id"

DOCUMENTS = ("session_data", "user_data", "agent_data", "workflow_data")
"""Columns beside `memory`, in the order in which they are shown before it."""

BEGUN_IN_POSTGRES = """
SELECT w.session_id, coalesce(jsonb_array_length(CASE jsonb_typeof(m.said) WHEN 'array' THEN m.said END), 0), {heads}
FROM ({wanted}) AS w
JOIN {sessions} AS s ON s.session_id = w.session_id
CROSS JOIN LATERAL (SELECT CAST(s.memory AS jsonb) -> 'messages') AS m(said)
"""
BEGUN_IN_SQLITE = """
SELECT w.session_id, coalesce(json_array_length(m.said, '$.messages'), 0), {heads}
FROM ({wanted}) AS w
JOIN (SELECT session_id, CASE WHEN json_valid(memory) THEN memory ELSE '{{}}' END AS said FROM {sessions}) AS m
  ON m.session_id = w.session_id
"""


class PhidataSessions(Shelf):
    has = frozenset({"session_id", "memory", "user_data", "session_data", "created_at", "updated_at"})
    has_not = frozenset({"session_type"})

    # --- read ---------------------------------------------------------------------------------------------------------

    def session_ids(self, desk: Desk, after: str | None, limit: int) -> list[str]:
        beyond = "WHERE session_id > :after" if after is not None else ""
        query = f"SELECT session_id FROM {desk.name()} {beyond} ORDER BY session_id LIMIT :limit"
        wanted = {"limit": limit} | ({"after": after} if after is not None else {})
        return [as_text(row[0]) for row in desk.rows(query, **wanted)]

    def found(self, desk: Desk, session_ids: Sequence[str]) -> list[FoundSession]:
        source, wanted = desk.wanted(session_ids)
        # A second is long: what was written within it is told by the row's version, or else by its length.
        version = "length(s.memory) || '/' || length(s.session_data)" if desk.is_sqlite else "CAST(s.xmin AS text)"
        query = (
            f"SELECT s.session_id, s.created_at, s.updated_at, {version} FROM ({source}) AS w"
            f" JOIN {desk.name()} AS s ON s.session_id = w.session_id"
        )
        return [
            FoundSession(
                as_text(session_id),
                created_at=instant(created_at),
                last_activity_at=instant(updated_at) or instant(created_at),
                mark=mark_of(created_at, updated_at, version),
            )
            for session_id, created_at, updated_at, version in desk.rows(query, **wanted)
        ]

    def beginnings(self, desk: Desk, session_ids: Sequence[str]) -> Mapping[str, Beginning]:
        source, wanted = desk.wanted(session_ids)
        head = "left(CAST(m.said -> {n} AS text), {size})"
        if desk.is_sqlite:
            head = "substr(json_extract(m.said, '$.messages[{n}]'), 1, {size})"
        heads = ", ".join(head.format(n=n, size=PREVIEW_HEAD_CHARACTERS) for n in range(PREVIEW_ITEMS))
        begun = BEGUN_IN_SQLITE if desk.is_sqlite else BEGUN_IN_POSTGRES
        # In a statement a colon begins a parameter.
        query = begun.format(heads=heads.replace(":", "\\:"), wanted=source, sessions=desk.name())
        return {
            as_text(session_id): Beginning(int(count), [as_text(head) for head in heads if head is not None])
            for session_id, count, *heads in desk.rows(query, **wanted)
        }

    def chapters(self, desk: Desk, session_id: str) -> list[Chapter]:
        there = desk.rows(f"SELECT 1 FROM {desk.name()} WHERE {OF_SESSION}", session_id=session_id)
        return self._chapters(desk) if there else []

    def _chapters(self, desk: Desk) -> list[Chapter]:
        columns = [column for column in (*DOCUMENTS, "memory") if column in desk.columns]
        return [Chapter(column, (place,), desk.table, column, "") for place, column in enumerate(columns)]

    def told(self, desk: Desk, session_id: str, chapters: Sequence[Chapter]) -> Mapping[str, Told]:
        if not chapters:
            return {}
        columns = ", ".join(desk.text_of(chapter.column) for chapter in chapters)
        query = f"SELECT created_at, {columns} FROM {desk.name()} WHERE {OF_SESSION}"
        return {
            chapter.key: Told(as_text(text), instant(created_at))
            for created_at, *texts in desk.rows(query, session_id=session_id)
            for chapter, text in zip(chapters, texts, strict=True)
            if text not in (None, "", "null")
        }

    def pieces(self, chapter: Chapter, told: Told) -> Iterator[Piece]:
        if chapter.column == "memory":
            return pieces_of_conversation(told.text, told.written_at)
        return piece_of_document(told.text, told.written_at)

    # --- changed ------------------------------------------------------------------------------------------------------

    def lock(self, desk: Desk, session_id: str) -> Sequence[tuple[Row, Sequence[Chapter]]]:
        rows = desk.locked_rows(desk.table, desk.text_columns(desk.table), OF_SESSION, session_id=session_id)
        return [(row, self._chapters(desk)) for row in rows]

    def beside(self, desk: Desk, session_id: str) -> list[Row]:
        """The memories of the user, where they are in the same schema."""
        whose = f"user_id = (SELECT user_id FROM {desk.name()} WHERE {OF_SESSION})"
        return [
            row
            for table in desk.tables_with(*PhidataMemories.has)
            if PhidataMemories().fits(desk.layout[table])
            for row in desk.locked_rows(table, ["memory"], whose, session_id=session_id)
        ]

    def shortened(self, chapter: Chapter, text: str, gone: Sequence[Piece]) -> str | None:
        """The session stays when all is gone that was said in it."""
        return (conversation_without(text, gone) or "{}") if chapter.column == "memory" else "null"

    def erase(self, desk: Desk, session_id: str) -> None:
        """Memories stay, they are the user's; what they quote of the session goes."""
        memory = self.told(desk, session_id, [each for each in self._chapters(desk) if each.column == "memory"])
        swaps = [Swaps.of_nothing(said_by_users(told.text for told in memory.values()))]
        for row in self.beside(desk, session_id):
            write_changes(desk, row, {column: swapped(swaps, text) for column, text in row.texts.items()})
        desk.run(f"DELETE FROM {desk.name()} WHERE {OF_SESSION}", session_id=session_id)


class PhidataMemories(MemoriesShelf):
    has = frozenset({"id", "user_id", "memory", "created_at", "updated_at"})
    has_not = frozenset({"session_id", "memory_id"})
    id_column = "id"

    def is_surely(self, columns: Collection[str]) -> bool:
        """Columns of such names are in many tables; here there are no others."""
        return set(columns) == self.has


class PhidataForm(DocumentForm):
    """Without a usual table: phidata takes any name, and asks for one."""


class PhidataBackend(DocumentBackend):
    library = "phidata"
    shelves = (PhidataSessions(), PhidataMemories())


KIND = Kind(
    "phidata",
    "phidata sessions",
    "robot-face",
    open=PhidataBackend,
    form=PhidataForm,
    limits=(
        "An agent holds a session in memory and writes all of it with each run: one that is at work brings back what"
        " was erased or redacted.",
        "Memories belong to the user and stay when a session goes; connect their table as a store of its own.",
    ),
)
