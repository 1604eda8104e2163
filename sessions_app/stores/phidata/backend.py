"""Tables of phidata: a row for each session, whose column `memory` is one document with the whole conversation.

Items are its messages, followed by its other content: runs without messages, the summary, and memories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from memadmin import times
from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.adapter import Document, DocumentText, Fragment, Head, TableAdapter, mark_of
from sessions_app.stores.documents.backend import DocumentBackend, DocumentForm, swapped, write_changes
from sessions_app.stores.documents.database import DatabaseSession, DocumentRow
from sessions_app.stores.documents.json_edit import Swaps
from sessions_app.stores.documents.memories import MemoriesAdapter
from sessions_app.stores.documents.messages import (
    conversation_without,
    fragment_of_document,
    fragments_of_conversation,
    said_by_users,
)
from sessions_app.stores.kinds import StoreKind
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS
from sessions_app.stores.sql_text import as_text

OF_SESSION = "session_id = :session_id"

DOCUMENTS = ("session_data", "user_data", "agent_data", "workflow_data")
"""Columns besides `memory`, in display order, before it."""

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


class PhidataSessions(TableAdapter):
    has = frozenset({"session_id", "memory", "user_data", "session_data", "created_at", "updated_at"})
    has_not = frozenset({"session_type"})

    # --- read ---------------------------------------------------------------------------------------------------------

    def session_ids(self, db: DatabaseSession, after: str | None, limit: int) -> list[str]:
        there = f"{db.name()} WHERE {db.ids_after('session_id', after)}"
        query = f"SELECT session_id FROM {there} ORDER BY session_id LIMIT :limit"
        wanted = {"limit": limit} | ({"after": after} if after is not None else {})
        return [as_text(row[0]) for row in db.rows(query, **wanted)]

    def found(self, db: DatabaseSession, session_ids: Sequence[str]) -> list[FoundSession]:
        source, wanted = db.wanted(session_ids)
        # A second is long: a change within it is recognised by the row's version, or else by its length.
        version = "length(s.memory) || '/' || length(s.session_data)" if db.is_sqlite else "CAST(s.xmin AS text)"
        query = (
            f"SELECT s.session_id, s.created_at, s.updated_at, {version} FROM ({source}) AS w"
            f" JOIN {db.name()} AS s ON s.session_id = w.session_id"
        )
        return [
            FoundSession(
                as_text(session_id),
                created_at=times.of_seconds(created_at),
                last_activity_at=times.of_seconds(updated_at) or times.of_seconds(created_at),
                mark=mark_of(created_at, updated_at, version),
            )
            for session_id, created_at, updated_at, version in db.rows(query, **wanted)
        ]

    def heads(self, db: DatabaseSession, session_ids: Sequence[str]) -> Mapping[str, Head]:
        source, wanted = db.wanted(session_ids)
        head = "left(CAST(m.said -> {n} AS text), {size})"
        if db.is_sqlite:
            head = "substr(json_extract(m.said, '$.messages[{n}]'), 1, {size})"
        heads = ", ".join(head.format(n=n, size=PREVIEW_HEAD_CHARACTERS) for n in range(PREVIEW_ITEMS))
        begun = BEGUN_IN_SQLITE if db.is_sqlite else BEGUN_IN_POSTGRES
        # In a statement a colon begins a parameter.
        query = begun.format(heads=heads.replace(":", "\\:"), wanted=source, sessions=db.name())
        return {
            as_text(session_id): Head(int(count), [as_text(head) for head in heads if head is not None])
            for session_id, count, *heads in db.rows(query, **wanted)
        }

    def documents(self, db: DatabaseSession, session_id: str) -> list[Document]:
        there = db.rows(f"SELECT 1 FROM {db.name()} WHERE {OF_SESSION}", session_id=session_id)
        return self._documents(db) if there else []

    def _documents(self, db: DatabaseSession) -> list[Document]:
        columns = [column for column in (*DOCUMENTS, "memory") if column in db.columns]
        return [Document(column, (place,), db.table, column, "") for place, column in enumerate(columns)]

    def texts(self, db: DatabaseSession, session_id: str, documents: Sequence[Document]) -> Mapping[str, DocumentText]:
        if not documents:
            return {}
        columns = ", ".join(db.text_of(document.column) for document in documents)
        query = f"SELECT created_at, {columns} FROM {db.name()} WHERE {OF_SESSION}"
        return {
            document.key: DocumentText(as_text(text), times.of_seconds(created_at))
            for created_at, *texts in db.rows(query, session_id=session_id)
            for document, text in zip(documents, texts, strict=True)
            if text not in (None, "", "null")
        }

    def fragments(self, document: Document, text: DocumentText) -> Iterator[Fragment]:
        if document.column == "memory":
            return fragments_of_conversation(text.text, text.written_at)
        return fragment_of_document(text.text, text.written_at)

    # --- changed ------------------------------------------------------------------------------------------------------

    def lock(self, db: DatabaseSession, session_id: str) -> Sequence[tuple[DocumentRow, Sequence[Document]]]:
        rows = db.locked_rows(db.table, db.text_columns(db.table), OF_SESSION, session_id=session_id)
        return [(row, self._documents(db)) for row in rows]

    def beside(self, db: DatabaseSession, session_id: str) -> list[DocumentRow]:
        """Memories of the user, if they are in the same schema."""
        whose = f"user_id = (SELECT user_id FROM {db.name()} WHERE {OF_SESSION})"
        return [
            row
            for table in db.tables_with(*PhidataMemories.has)
            if PhidataMemories().fits(db.layout[table])
            for row in db.locked_rows(table, ["memory"], whose, session_id=session_id)
        ]

    def shortened(self, document: Document, text: str, gone: Sequence[Fragment]) -> str | None:
        """An empty document instead of None: the session stays without its messages."""
        return (conversation_without(text, gone) or "{}") if document.column == "memory" else "null"

    def erase(self, db: DatabaseSession, session_id: str) -> None:
        """Deletes the session. Memories of the user stay, without quotes of the session."""
        memory = self.texts(db, session_id, [each for each in self._documents(db) if each.column == "memory"])
        swaps = [Swaps.of_nothing(said_by_users(each.text for each in memory.values()))]
        for row in self.beside(db, session_id):
            write_changes(db, row, {column: swapped(swaps, text) for column, text in row.texts.items()})
        db.run(f"DELETE FROM {db.name()} WHERE {OF_SESSION}", session_id=session_id)


class PhidataMemories(MemoriesAdapter):
    has = frozenset({"id", "user_id", "memory", "created_at", "updated_at"})
    has_not = frozenset({"session_id", "memory_id"})
    id_column = "id"

    def is_surely(self, columns: Collection[str]) -> bool:
        """Many tables have columns of these names; this one has no others."""
        return set(columns) == self.has


class PhidataForm(DocumentForm):
    """No default table: phidata requires a name, and accepts any."""


class PhidataBackend(DocumentBackend):
    library = "phidata"
    adapters = (PhidataSessions(), PhidataMemories())


KIND = StoreKind(
    "phidata",
    "phidata sessions",
    "robot-face",
    open=PhidataBackend,
    form=PhidataForm,
    layouts=("phidata 2",),
    limits=(
        "An agent that is running while its session is erased or redacted writes the removed text again: it has the"
        " whole session in memory and saves all of it.",
        "Memories belong to the user and are kept when a session is erased. Connect their table as a separate store.",
    ),
)
