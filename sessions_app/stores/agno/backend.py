"""Tables of agno (3): a row for each session, and one for each run of it with all of its messages in one document.

Items are the messages of the runs in the order of `run_index`, and before them what the session's own row says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memadmin import times
from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.adapter import (
    Document,
    DocumentText,
    Fragment,
    Head,
    TableAdapter,
    key_of,
    mark_of,
    sort_number,
)
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

RUN_COLUMNS = ("run_id", "session_id", "run_data", "run_index")

SESSION_DOCUMENTS = ("summary", "session_data", "metadata", "agent_data", "team_data", "workflow_data")
"""Columns of the session's row, in display order."""

LAST = 2**62
"""Sort key of a run without an index; agno adds one when it writes the run."""

WITHOUT_USER = "default"
"""User id of memories that agno creates without a user."""


class RelatedTable(NamedTuple):
    """Another table with content of a session."""

    has: tuple[str, ...]
    """Columns that identify it."""
    condition: str


NEIGHBOURS = (
    # Before traces, which its condition needs.
    RelatedTable(("span_id", "trace_id", "attributes"), "trace_id IN (SELECT trace_id FROM {traces} WHERE {session})"),
    RelatedTable(("trace_id", "session_id", "duration_ms"), "{session}"),
    RelatedTable(("compaction_id", "session_id", "archived_messages"), "{session}"),
    RelatedTable(("framework", "entry", "agno_session_id"), "agno_session_id = :session_id"),
    RelatedTable(("result_id", "session_id", "args_hash", "preview"), "{session}"),
    RelatedTable(("learning_id", "session_id", "content"), "{session}"),
    RelatedTable(("approval_type", "pause_type", "session_id"), "{session}"),
    RelatedTable(("job_type", "session_id", "payload"), "{session}"),
    RelatedTable(("schedule_id", "session_id", "input", "output"), "{session}"),
    RelatedTable(("namespace", "session_id", "epoch", "record"), "{session}"),
)
OF_SESSION = "session_id = :session_id"

PAYLOADS = '"fs".agno_fs'
"""The table for long tool results, unless agno is configured otherwise; PostgreSQL only."""

HEADS_OF_POSTGRES = """
SELECT w.session_id, left(CAST(m.value AS text), :head) FROM ({wanted}) AS w
CROSS JOIN LATERAL (
    SELECT run_data FROM {runs} WHERE session_id = w.session_id ORDER BY run_index, created_at, run_id LIMIT 2
) AS r
CROSS JOIN LATERAL (
    SELECT value FROM jsonb_path_query(CAST(r.run_data AS jsonb), '$.messages[*] ? (!(@.from_history == true))')
    AS found(value) LIMIT :items
) AS m
"""
HEADS_OF_SQLITE = """
SELECT w.session_id, substr(m.value, 1, :head) FROM ({wanted}) AS w
JOIN {runs} AS r ON r.rowid IN (
    SELECT rowid FROM {runs} WHERE session_id = w.session_id ORDER BY run_index, created_at, run_id LIMIT 2
)
JOIN json_each(CASE WHEN json_valid(r.run_data) THEN r.run_data ELSE '{{}}' END, '$.messages') AS m
WHERE {not_history}
ORDER BY w.session_id, r.run_index, r.created_at, r.run_id, m.key
"""
NOT_HISTORY = "NOT coalesce(json_extract(CASE m.type WHEN 'object' THEN m.value ELSE '{}' END, '$.from_history'), 0)"

COUNT_OF_POSTGRES = """
SELECT sum(jsonb_array_length(jsonb_path_query_array(
    CAST(r.run_data AS jsonb), '$.messages[*] ? (!(@.from_history == true))'
))) FROM {runs} AS r WHERE r.session_id = w.session_id
"""
COUNT_OF_SQLITE = """
SELECT count(*) FROM {runs} AS r
JOIN json_each(CASE WHEN json_valid(r.run_data) THEN r.run_data ELSE '{{}}' END, '$.messages') AS m
WHERE r.session_id = w.session_id AND {not_history}
"""


class AgnoSessions(TableAdapter):
    has = frozenset({"session_id", "session_type", "session_data", "user_id", "created_at", "updated_at"})

    def runs(self, db: DatabaseSession) -> str | None:
        """Table of the runs, by its foreign key to the sessions; None until agno has created it."""
        found = db.tables_with(*RUN_COLUMNS)
        if len(found) > 1:
            children = db.children()
            found = [table for table in found if table in children]
        return found[0] if found else None

    # --- read ---------------------------------------------------------------------------------------------------------

    def session_ids(self, db: DatabaseSession, after: str | None, limit: int) -> list[str]:
        """Session ids. In SQLite, which does not enforce the key, runs without a session row are included."""
        beyond = f"WHERE {db.ids_after('session_id', after)}"
        query = f"SELECT session_id FROM {db.name()} {beyond}"
        if db.is_sqlite and (runs := self.runs(db)):
            query += f" UNION SELECT session_id FROM {db.name(runs)} {beyond}"
        wanted = {"limit": limit} | ({"after": after} if after is not None else {})
        return [as_text(row[0]) for row in db.rows(f"{query} ORDER BY session_id LIMIT :limit", **wanted)]

    def found(self, db: DatabaseSession, session_ids: Sequence[str]) -> list[FoundSession]:
        source, wanted = db.wanted(session_ids)
        runs = self.runs(db)
        version = "length(s.session_data)" if db.is_sqlite else "CAST(s.xmin AS text)"
        columns = "NULL, NULL, NULL, NULL"
        if runs:
            # A second is long: a change within it is recognised by the row's version, or else by its length.
            newest = (
                f"SELECT length(run_data) FROM {db.name(runs)} WHERE session_id = w.session_id"
                " ORDER BY run_index DESC LIMIT 1"
                if db.is_sqlite
                else f"SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM {db.name(runs)}"
                " WHERE session_id = w.session_id"
            )
            of_runs = f"FROM {db.name(runs)} WHERE session_id = w.session_id"
            columns = (
                f"(SELECT count(*) {of_runs}), (SELECT min(created_at) {of_runs}), (SELECT max(updated_at) {of_runs}),"
                f" ({newest})"
            )
        query = (
            f"SELECT w.session_id, s.created_at, s.updated_at, {version}, {columns} FROM ({source}) AS w"
            f" LEFT JOIN {db.name()} AS s ON s.session_id = w.session_id"
        )
        return [found_session(*row) for row in db.rows(query, **wanted)]

    def heads(self, db: DatabaseSession, session_ids: Sequence[str]) -> Mapping[str, Head]:
        source, wanted = db.wanted(session_ids)
        runs = self.runs(db)
        count = "0"
        heads: dict[str, list[str]] = {}
        if runs:
            words = {"runs": db.name(runs), "wanted": source, "not_history": NOT_HISTORY}
            count = (COUNT_OF_SQLITE if db.is_sqlite else COUNT_OF_POSTGRES).format(**words)
            query = (HEADS_OF_SQLITE if db.is_sqlite else HEADS_OF_POSTGRES).format(**words)
            limits = {"head": PREVIEW_HEAD_CHARACTERS} | ({} if db.is_sqlite else {"items": PREVIEW_ITEMS})
            for session_id, head in db.rows(query, **wanted, **limits):
                heads.setdefault(as_text(session_id), []).append(as_text(head))
        query = (
            f"SELECT w.session_id, s.session_id IS NOT NULL, ({count}) FROM ({source}) AS w"
            f" LEFT JOIN {db.name()} AS s ON s.session_id = w.session_id"
        )
        return {
            as_text(session_id): Head(int(number or 0), heads.get(as_text(session_id), [])[:PREVIEW_ITEMS])
            for session_id, is_there, number in db.rows(query, **wanted)
            if is_there or number
        }

    def documents(self, db: DatabaseSession, session_id: str) -> list[Document]:
        documents = []
        if db.rows(f"SELECT 1 FROM {db.name()} WHERE {OF_SESSION}", session_id=session_id):
            documents += self._of_row(db)
        if runs := self.runs(db):
            query = f"SELECT run_id, run_index, created_at FROM {db.name(runs)} WHERE {OF_SESSION}"
            documents += [self._of_run(runs, *row) for row in db.rows(query, session_id=session_id)]
        return sorted(documents, key=lambda document: document.order)

    def _of_row(self, db: DatabaseSession) -> list[Document]:
        return [
            Document(f"row.{column}", (-1, place, ""), db.table, column, "")
            for place, column in enumerate(SESSION_DOCUMENTS)
            if column in db.columns
        ]

    def _of_run(self, runs: str, run_id: object, run_index: object, created_at: object) -> Document:
        name = as_text(run_id)
        order = (sort_number(run_index, LAST), sort_number(created_at, 0), name)
        return Document(key_of(name), order, runs, "run_data", name)

    def texts(self, db: DatabaseSession, session_id: str, documents: Sequence[Document]) -> Mapping[str, DocumentText]:
        found = {}
        if of_row := [document for document in documents if document.table == db.table]:
            columns = ", ".join(db.text_of(document.column) for document in of_row)
            query = f"SELECT created_at, {columns} FROM {db.name()} WHERE {OF_SESSION}"
            for created_at, *texts in db.rows(query, session_id=session_id):
                for document, text in zip(of_row, texts, strict=True):
                    if text not in (None, "", "null"):
                        found[document.key] = DocumentText(as_text(text), times.of_seconds(created_at))
        if of_runs := [document for document in documents if document.table != db.table]:
            names = {f"run_{n}": document.name for n, document in enumerate(of_runs)}
            query = (
                f"SELECT run_id, created_at, {db.text_of('run_data')} FROM {db.name(of_runs[0].table)}"
                f" WHERE {OF_SESSION} AND run_id IN ({', '.join(f':{name}' for name in names)})"
            )
            for run_id, created_at, text in db.rows(query, session_id=session_id, **names):
                found[key_of(as_text(run_id))] = DocumentText(as_text(text), times.of_seconds(created_at))
        return found

    def fragments(self, document: Document, text: DocumentText) -> Iterator[Fragment]:
        if document.column == "run_data":
            return fragments_of_conversation(text.text, text.written_at)
        return fragment_of_document(text.text, text.written_at)

    # --- changed ------------------------------------------------------------------------------------------------------

    def lock(self, db: DatabaseSession, session_id: str) -> Sequence[tuple[DocumentRow, Sequence[Document]]]:
        """Locks the session first: agno's writers of runs check their foreign key against it."""
        found: list[tuple[DocumentRow, Sequence[Document]]] = [
            (row, self._of_row(db))
            for row in db.locked_rows(db.table, db.text_columns(db.table), OF_SESSION, session_id=session_id)
        ]
        if runs := self.runs(db):
            columns = db.text_columns(runs)
            rows = db.locked_rows(runs, columns, OF_SESSION, also="run_id", session_id=session_id)
            found += [(row, [self._of_run(runs, row.name, None, None)]) for row in rows]
        return found

    def beside(self, db: DatabaseSession, session_id: str) -> list[DocumentRow]:
        return [
            row
            for table, condition in [*self._neighbours(db), *self._memories(db)]
            for row in db.locked_rows(table, db.text_columns(table), condition, session_id=session_id)
        ]

    def _neighbours(self, db: DatabaseSession) -> Iterator[tuple[str, str]]:
        """Tables with further content of the session, each with the condition on its rows."""
        traces = next(iter(self._beside_this(db, *NEIGHBOURS[1].has)), None)
        for neighbour in NEIGHBOURS:
            if "{traces}" in neighbour.condition and not traces:
                continue
            condition = neighbour.condition.format(session=OF_SESSION, traces=db.name(traces) if traces else "")
            for table in self._beside_this(db, *neighbour.has):
                yield table, condition

    def _beside_this(self, db: DatabaseSession, *columns: str) -> list[str]:
        """Tables of that kind that belong to these sessions: by their names, if the schema has several."""
        found = db.tables_with(*columns)
        begins = db.table.removesuffix("sessions")
        if len(db.tables_with(*self.has)) == 1:
            return found
        return [table for table in found if begins != db.table and table.startswith(begins)]

    def _memories(self, db: DatabaseSession) -> Iterator[tuple[str, str]]:
        whose = f"coalesce((SELECT user_id FROM {db.name()} WHERE {OF_SESSION}), '{WITHOUT_USER}')"
        for table in self._beside_this(db, *AgnoMemories.has):
            yield table, f"user_id = {whose}"

    def shortened(self, document: Document, text: str, gone: Sequence[Fragment]) -> str | None:
        return conversation_without(text, gone) if document.column == "run_data" else "null"

    def erase(self, db: DatabaseSession, session_id: str) -> None:
        """Deletes the rows that agno deletes, and more. Memories of the user stay, without quotes of the session."""
        self._forget_in_memories(db, session_id)
        wanted = {"session_id": session_id}
        for table, condition in self._neighbours(db):
            if {"args_hash", "namespace", "path"} <= db.layout[table].keys() and not db.is_sqlite:
                self._delete_payloads(db, table, wanted)
            db.run(f"DELETE FROM {db.name(table)} WHERE {condition}", **wanted)
        if runs := self.runs(db):
            db.run(f"DELETE FROM {db.name(runs)} WHERE {OF_SESSION}", **wanted)
        db.run(f"DELETE FROM {db.name()} WHERE {OF_SESSION}", **wanted)

    def _forget_in_memories(self, db: DatabaseSession, session_id: str) -> None:
        tables = list(self._memories(db))
        if not tables:
            return
        texts = self.texts(db, session_id, self.documents(db, session_id)) if tables else {}
        swaps = [Swaps.of_nothing(said_by_users(each.text for each in texts.values()))]
        for table, condition in tables:
            for row in db.locked_rows(table, db.text_columns(table), condition, session_id=session_id):
                write_changes(db, row, {column: swapped(swaps, text) for column, text in row.texts.items()})

    def _delete_payloads(self, db: DatabaseSession, results: str, wanted: Mapping[str, Any]) -> None:
        ((there,),) = db.rows("SELECT to_regclass('fs.agno_fs') IS NOT NULL")
        if there:
            db.run(
                f"DELETE FROM {PAYLOADS} WHERE (namespace, path) IN"
                f" (SELECT namespace, path FROM {db.name(results)} WHERE {OF_SESSION})",
                **wanted,
            )


class AgnoMemories(MemoriesAdapter):
    has = frozenset({"memory_id", "memory", "topics", "user_id", "created_at", "updated_at"})
    id_column = "memory_id"


def found_session(
    session_id: object,
    created_at: object,
    updated_at: object,
    version: object,
    runs: object,
    first: object,
    last: object,
    of_runs: object,
) -> FoundSession:
    readable = [time for time in (times.of_seconds(updated_at), times.of_seconds(last)) if time]
    return FoundSession(
        as_text(session_id),
        created_at=times.of_seconds(created_at) or times.of_seconds(first),
        last_activity_at=max(readable, default=None),
        mark=mark_of(updated_at, version, runs, last, of_runs),
    )


class AgnoForm(DocumentForm):
    default_table = "agno_sessions"


class AgnoBackend(DocumentBackend):
    library = "agno"
    adapters = (AgnoSessions(), AgnoMemories())


KIND = StoreKind(
    "agno",
    "agno sessions",
    "stack-2",
    open=AgnoBackend,
    form=AgnoForm,
    layouts=("agno 3",),
    limits=(
        "An agent that is running while its session is erased or redacted writes the removed text again.",
        "Compactions, transcripts, results of tools, learnings, traces and approvals are erased and redacted with"
        " their session, but not shown; evaluations and metrics are neither.",
        "Memories belong to the user and are kept when a session is erased. Connect their table as a separate store.",
    ),
)
