"""User memories of both libraries: the memories of one user are read like a session with the user's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from memadmin import times
from memadmin.json_spans import Part
from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.adapter import Document, DocumentText, Fragment, Head, TableAdapter, key_of, mark_of
from sessions_app.stores.documents.database import DatabaseSession, DocumentRow
from sessions_app.stores.sql_text import as_text


class MemoriesAdapter(TableAdapter):
    """Adapter of memory tables: each memory is an item. The other columns of its row change and go with it."""

    id_column: ClassVar[str]
    holds_memories = True

    def session_ids(self, db: DatabaseSession, after: str | None, limit: int) -> list[str]:
        there = f"{db.name()} WHERE {db.ids_after('user_id', after)}"
        query = f"SELECT DISTINCT user_id FROM {there} ORDER BY 1 LIMIT :limit"
        wanted = {"limit": limit} | ({"after": after} if after is not None else {})
        return [as_text(row[0]) for row in db.rows(query, **wanted)]

    def found(self, db: DatabaseSession, session_ids: Sequence[str]) -> list[FoundSession]:
        version = "length(memory)" if db.is_sqlite else "CAST(CAST(xmin AS text) AS bigint)"
        found = []
        for user in session_ids:
            ((count, first, last, touched, total),) = db.rows(
                "SELECT count(*), min(created_at), max(created_at), max(updated_at),"
                f" sum({version}) FROM {db.name()} WHERE user_id = :user",
                user=user,
            )
            times = [time for time in (time_of(last), time_of(touched)) if time]
            mark = mark_of(count, last, touched, total)
            found.append(FoundSession(user, time_of(first), max(times, default=None), mark))
        return found

    def heads(self, db: DatabaseSession, session_ids: Sequence[str]) -> Mapping[str, Head]:
        """Counts without first texts: a memory is not said by a user."""
        source, wanted = db.wanted(session_ids)
        query = (
            f"SELECT w.session_id, count(*) FROM ({source}) AS w JOIN {db.name()} AS m ON m.user_id = w.session_id"
            " GROUP BY w.session_id"
        )
        return {as_text(user): Head(count, []) for user, count in db.rows(query, **wanted)}

    def documents(self, db: DatabaseSession, session_id: str) -> list[Document]:
        query = (
            f'SELECT "{self.id_column}", created_at FROM {db.name()} WHERE user_id = :user'
            f' ORDER BY created_at, "{self.id_column}"'
        )
        rows = db.rows(query, user=session_id)
        return sorted((self._document(db, *row) for row in rows), key=lambda document: document.order)

    def _document(self, db: DatabaseSession, named: object, created: object = None) -> Document:
        name, time = as_text(named), time_of(created)
        microseconds = int(time.timestamp() * 1_000_000) if time else 0
        return Document(key_of(name), (microseconds, name), db.table, "memory", name)

    def texts(self, db: DatabaseSession, session_id: str, documents: Sequence[Document]) -> Mapping[str, DocumentText]:
        texts = {}
        for document in documents:
            query = (
                f"SELECT {db.text_of(document.column)}, created_at FROM {db.name()}"
                f' WHERE user_id = :user AND "{self.id_column}" = :name'
            )
            for text, created in db.rows(query, user=session_id, name=document.name):
                if text not in (None, ""):
                    texts[document.key] = DocumentText(as_text(text), time_of(created))
        return texts

    def fragments(self, document: Document, text: DocumentText) -> Iterator[Fragment]:
        yield Fragment(0, Part(0, len(text.text)), text.written_at, is_message=True)

    def lock(self, db: DatabaseSession, session_id: str) -> Sequence[tuple[DocumentRow, Sequence[Document]]]:
        name = f'"{self.id_column}"'
        columns = db.text_columns(db.table)
        rows = db.locked_rows(db.table, columns, "user_id = :user", also=name, user=session_id)
        return [(row, [self._document(db, row.name)]) for row in rows]

    def beside(self, db: DatabaseSession, session_id: str) -> list[DocumentRow]:
        return []

    def shortened(self, document: Document, text: str, gone: Sequence[Fragment]) -> str | None:
        return None

    def erase(self, db: DatabaseSession, session_id: str) -> None:
        db.run(f"DELETE FROM {db.name()} WHERE user_id = :user", user=session_id)


def time_of(stored: object) -> datetime | None:
    """Aware UTC of seconds since 1970, or of any time that a database returns."""
    if isinstance(stored, datetime):
        return times.in_utc(stored)
    return (times.of_text(stored) if isinstance(stored, str) else None) or times.of_seconds(stored)
