"""Backend of both libraries: items are fragments of stored JSON, unchanged to the letter; copies change with them."""

from __future__ import annotations

import json
import os
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from itertools import islice
from time import perf_counter
from typing import Any, ClassVar

from django import forms
from sqlalchemy import Connection

from memadmin.batching import batched
from memadmin.counting import COUNT_CAP
from memadmin.json_spans import NotReadable, Part, is_readable, value_of, with_replaced
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import (
    Capability,
    Deleted,
    FoundSession,
    ItemChanged,
    Place,
    SessionPage,
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.documents.adapter import Document, DocumentText, Fragment, TableAdapter
from sessions_app.stores.documents.database import DatabaseSession, DocumentDatabase, DocumentRow
from sessions_app.stores.documents.json_edit import Swaps
from sessions_app.stores.kinds import EnvironmentField, PathField
from sessions_app.stores.paged import PagedBackend, both_ends, erasing
from sessions_app.stores.previews import preview_from
from sessions_app.stores.remote_sql.dialects import Sqlite
from sessions_app.stores.sqlite import file as sqlite_file

DOCUMENTS_AT_ONCE = 20
"""Number of documents read at once; with the size of a document it bounds the memory of a download."""

SESSIONS_AT_ONCE = 100


class DocumentForm(forms.Form):
    url_env = EnvironmentField(
        label="Environment variable with the address",
        required=False,
        max_length=200,
        help_text="The environment variable with the SQLAlchemy URL of the agents' database, such as SUPPORT_DB_URL.",
    )
    path = PathField(label="File", required=False, max_length=1_000, help_text="Path of the SQLite file.")
    table = forms.CharField(
        label="Table",
        required=False,
        max_length=127,
        help_text="The table with the sessions, or with the users' memories: table, or schema.table.",
    )
    default_table: ClassVar[str] = ""

    def clean_table(self) -> str:
        table = str(self.cleaned_data["table"]) or self.default_table
        if not table:
            raise forms.ValidationError(
                "Enter the name of the table; it has no default. The agents' code contains the name."
            )
        if not all(table.split(".")) or table.count(".") > 1:
            raise forms.ValidationError(f"{table} is not a table name; use table, or schema.table.")
        return table

    def clean(self) -> dict[str, object]:
        given = super().clean() or self.cleaned_data
        if given.get("url_env") and given.get("path"):
            raise forms.ValidationError("Give the address of a database or the path of a file, not both.")
        return given


class DocumentBackend(PagedBackend, ABC):
    """A kind brings its table adapters; the columns of the table decide which one applies."""

    capabilities = frozenset(
        {
            Capability.ENUMERATE,
            Capability.ITEM_TIMES,
            Capability.ERASE_SESSIONS,
            Capability.ERASE_ITEMS,
            Capability.REPLACE_ITEMS,
        }
    )
    library: ClassVar[str]
    adapters: ClassVar[Sequence[TableAdapter]]

    @cached_property
    def database(self) -> DocumentDatabase:
        return DocumentDatabase(self.store)

    def adapter(self, db: DatabaseSession) -> TableAdapter:
        """Raises StoreUnavailable for a table of another program."""
        for adapter in self.adapters:
            if adapter.fits(db.columns):
                return adapter
        raise StoreUnavailable(
            f"The table {db.table} does not have the columns that {self.library} gives to sessions or to memories."
        )

    def holds_memories(self) -> bool:
        """Whether its sessions are users, and its items their memories. Raises StoreUnavailable."""
        with self.database.session() as db:
            return self.adapter(db).holds_memories

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        began = perf_counter()
        try:
            with self.database.session(is_fresh=True) as db:
                adapter = self.adapter(db)
                ((sessions,),) = db.rows(f"SELECT count(*) FROM (SELECT 1 FROM {db.name()} LIMIT 100000) AS few")
                items = adapter.items_about(db)
                answered_in_ms = (perf_counter() - began) * 1000
            problems = [*self._problems()]
            if thorough and (path := self._file):
                with sqlite_file.reading(path, seconds=60) as connection:
                    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
                if verdict != "ok":
                    problems.append(StoreProblem("damaged", f"The file {path} is damaged: {verdict}.", is_fatal=True))
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth(tuple(problems), sessions, items, answered_in_ms=answered_in_ms)

    def _problems(self) -> Iterator[StoreProblem]:
        if path := self._file:
            if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path), os.W_OK):
                sentence = f"This console may read {path} but not write to it: nothing can be erased in it."
                yield StoreProblem("read-only", sentence)
        else:
            try:
                self.database.change(self._try_rights)
            except StoreUnavailable as refusal:
                sentence = f"Nothing can be erased or changed in it from here. {refusal}"
                yield StoreProblem("read-only", sentence)

    def _try_rights(self, connection: Connection) -> None:
        """Checks the rights without a change: the database checks them first."""
        db = self.database.session_on(connection)
        for table in (db.table, *db.children()):
            column = next(iter(db.layout[table]))
            db.run(f'UPDATE {db.name(table)} SET "{column}" = "{column}" WHERE 1 = 0')
            db.run(f"DELETE FROM {db.name(table)} WHERE 1 = 0")

    def system(self) -> str:
        return self.database.dialect.system

    def places(self) -> frozenset[Place]:
        return self.database.places(self.database.schema_and_table)

    @property
    def _file(self) -> str:
        """Path of the file; empty for a server. Raises StoreUnavailable."""
        dialect = self.database.dialect
        return dialect.path if isinstance(dialect, Sqlite) else ""

    def fingerprint(self) -> str:
        try:
            return sqlite_file.fingerprint(self._file) if self._file else ""
        except StoreUnavailable:
            return ""

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        """The cursor is the last id, behind a letter, because an id may be empty."""
        with self.database.session() as db:
            adapter = self.adapter(db)
            ids = adapter.session_ids(db, cursor[1:] if cursor else None, limit)
            found = [session for some in batched(ids, SESSIONS_AT_ONCE) for session in adapter.found(db, some)]
        return SessionPage(found, f">{ids[-1]}" if len(ids) == limit else "")

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        with self.database.session() as db:
            found = self.adapter(db).found(db, list(session_ids))
        return {session.session_id: session for session in found}

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        """Counts messages only; other content of a session is on its timeline only."""
        ids = list(dict.fromkeys(session_ids))
        previews = {session_id: preview_from([], None) for session_id in ids}
        if not ids:
            return previews
        with self.database.session() as db:
            adapter = self.adapter(db)
            for some in batched(ids, SESSIONS_AT_ONCE):
                for session_id, begun in adapter.heads(db, some).items():
                    previews[session_id] = preview_from(begun.heads, min(begun.item_count, COUNT_CAP + 1))
        return previews

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        with self.database.session() as db:
            before = self._side(db, session_id, pivot, earlier, is_back=True) if earlier or pivot else []
            after = self._side(db, session_id, pivot, later, is_back=False) if later or pivot else []
        shown = [*reversed(before[:earlier]), *after[:later]]
        return ItemPage(shown, has_earlier=len(before) > earlier, has_later=len(after) > later)

    def _side(
        self, db: DatabaseSession, session_id: str, pivot: Position | None, wanted: int, *, is_back: bool
    ) -> list[StoredItem]:
        """Reads one more item than wanted, to find out whether there are more."""
        return list(islice(self._items(db, session_id, pivot, is_back=is_back), wanted + 1))

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def position_from(self, session_id: str, instant: datetime) -> Position | None:
        with self.database.session() as db:
            for item in self._items(db, session_id, None, is_back=False):
                if item.written_at and item.written_at >= instant:
                    return item.position
        return None

    def item(self, session_id: str, item_id: str) -> StoredItem:
        key = item_id.rpartition(".")[0]
        with self.database.session() as db:
            adapter = self.adapter(db)
            documents = [document for document in adapter.documents(db, session_id) if document.key == key]
            texts = adapter.texts(db, session_id, documents)
            for document in documents:
                for fragment in self._fragments(adapter, document, texts):
                    if item_id == id_of(document, fragment):
                        return stored_item(document, fragment, texts[document.key].text, is_whole=True)
        raise UnknownItem(item_id)

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        with self.database.session() as db:
            return sum(1 for _ in islice(self._items(db, session_id, None, is_back=False), cap + 1))

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        """Reads some documents at a time, each in its current state; no transaction is open in between."""
        with self.database.session() as db:
            documents = self.adapter(db).documents(db, session_id)
        for some in batched(documents, DOCUMENTS_AT_ONCE):
            with self.database.session() as db:
                adapter = self.adapter(db)
                texts = adapter.texts(db, session_id, some)
            for document in some:
                for fragment in self._fragments(adapter, document, texts):
                    yield stored_item(document, fragment, texts[document.key].text, is_whole=True)

    def _items(
        self, db: DatabaseSession, session_id: str, pivot: Position | None, *, is_back: bool
    ) -> Iterator[StoredItem]:
        """Items from a position on, or before it and backwards; without one from the beginning, or from the end."""
        adapter = self.adapter(db)
        documents = adapter.documents(db, session_id)
        if pivot:
            order = pivot.key[:-1]
            documents = [each for each in documents if (each.order <= order if is_back else each.order >= order)]
        if is_back:
            documents.reverse()
        for some in batched(documents, DOCUMENTS_AT_ONCE):
            texts = adapter.texts(db, session_id, some)
            for document in some:
                fragments = self._fragments(adapter, document, texts)
                for fragment in reversed(fragments) if is_back else fragments:
                    if pivot is None or (position_of(document, fragment) < pivot) == is_back:
                        yield stored_item(document, fragment, texts[document.key].text)

    def _fragments(
        self, adapter: TableAdapter, document: Document, texts: Mapping[str, DocumentText]
    ) -> list[Fragment]:
        return list(adapter.fragments(document, texts[document.key])) if document.key in texts else []

    # --- one session, changed -----------------------------------------------------------------------------------------

    def _session_for_change(self, connection: Connection) -> DatabaseSession:
        """Session with a fresh list of tables: one that was just created may contain copies, too."""
        return self.database.session_on(connection, is_fresh=True)

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """All items at once, whatever `at_most` is: many are in one document, and the texts of users in them are needed
        to remove their copies from memories."""

        def erase(connection: Connection) -> Deleted:
            db = self._session_for_change(connection)
            adapter = self.adapter(db)
            adapter.lock(db, session_id)
            count = sum(1 for _ in self._items(db, session_id, None, is_back=False))
            adapter.erase(db, session_id)
            return Deleted(count, 0)

        with erasing(self.store, session_id):
            return self.database.change(erase)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        """Replaces an item and all copies of its text: in other documents of the session, and in other tables."""

        def replace(connection: Connection) -> None:
            db = self._session_for_change(connection)
            change = DocumentChange(db, self.adapter(db), session_id)
            document, fragment = change.expected(item_id, expected)
            if is_readable(expected) and not is_readable(text):
                raise StoreUnavailable(f"The store {self.store} takes only JSON; nothing was changed.")
            change.swap(expected, text)
            change.put(document, fragment, with_own_members(expected, text))
            change.write()

        self.database.change(replace)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        """Deletes items and all copies of their texts."""

        def delete(connection: Connection) -> int:
            db = self._session_for_change(connection)
            change = DocumentChange(db, self.adapter(db), session_id)
            gone: dict[Document, list[Fragment]] = {}
            for item in items:
                with suppress(UnknownItem):
                    document, fragment = change.expected(item.id, item.raw)
                    gone.setdefault(document, []).append(fragment)
                    change.swap(item.raw, "null")
            for document, fragments in gone.items():
                change.take_out(document, fragments)
            change.write()
            return sum(map(len, gone.values()))

        return self.database.change(delete)


Own = Callable[[str, list[Fragment]], str | None]
"""Computes the new text of a document from the text and its affected fragments; None deletes the row."""


class DocumentChange:
    """Change of a session: all its documents and all rows with copies, locked, changed in memory, and then written."""

    def __init__(self, db: DatabaseSession, adapter: TableAdapter, session_id: str) -> None:
        self.db, self.adapter = db, adapter
        self.rows = adapter.lock(db, session_id)
        self.beside = adapter.beside(db, session_id)
        self.swaps: list[Swaps] = []
        self.own: dict[str, tuple[list[Fragment], Own]] = {}
        """By document key."""

    def expected(self, item_id: str, raw: str) -> tuple[Document, Fragment]:
        """Raises UnknownItem and ItemChanged."""
        for row, documents in self.rows:
            for document in documents:
                if document.key != item_id.rpartition(".")[0]:
                    continue
                for fragment in self._fragments(document, row.texts.get(document.column, "")):
                    if id_of(document, fragment) == item_id:
                        part = fragment.part
                        if row.texts[document.column][part.start : part.end] != raw:
                            raise ItemChanged(item_id)
                        return document, fragment
        raise UnknownItem(item_id)

    def swap(self, old: str, new: str) -> None:
        """Registers the replacement of an item's texts in all copies."""
        self.swaps.append(Swaps.between(*map(as_value, (old, new))))

    def put(self, document: Document, fragment: Fragment, new: str) -> None:
        self.own[document.key] = [fragment], lambda text, fragments: with_replaced(text, fragments[0].part, new)

    def take_out(self, document: Document, fragments: list[Fragment]) -> None:
        self.own[document.key] = fragments, lambda text, there: self.adapter.shortened(document, text, there)

    def write(self) -> None:
        for row, documents in self.rows:
            changed: dict[str, str | None] = {}
            of_column = {document.column: document for document in documents}
            for column, text in row.texts.items():
                document = of_column.get(column)
                changed[column] = self._changed(document, text) if document else swapped(self.swaps, text)
            if None in changed.values():
                self.db.delete(row)
            else:
                write_changes(self.db, row, changed)
        for row in self.beside:
            write_changes(self.db, row, {column: swapped(self.swaps, text) for column, text in row.texts.items()})

    def _changed(self, document: Document, text: str) -> str | None:
        """Replaces copies first, outside of other items and of the changed items, and then the changed items."""
        fragments, own = self.own.get(document.key, ([], None))
        mine = {fragment.number for fragment in fragments}
        besides = [each.part for each in self._fragments(document, text) if each.is_message or each.number in mine]
        text = swapped(self.swaps, text, besides=besides)
        if own is None:
            return text
        return own(text, [fragment for fragment in self._fragments(document, text) if fragment.number in mine])

    def _fragments(self, document: Document, text: str) -> list[Fragment]:
        return list(self.adapter.fragments(document, DocumentText(text, None))) if text else []


OWN_MEMBERS = ("id", "created_at")
"""Members with id and time of a message; a new text without them keeps them."""


def with_own_members(old: str, new: str) -> str:
    before, after = as_value(old), as_value(new)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return new
    kept = {name: before[name] for name in OWN_MEMBERS if name in before and name not in after}
    if not kept:
        return new
    members = json.dumps(kept)[1:-1]
    return f"{new.rstrip()[:-1]}{', ' if after else ''}{members}}}"


def write_changes(db: DatabaseSession, row: DocumentRow, texts: Mapping[str, str | None]) -> None:
    db.write(row, {column: text for column, text in texts.items() if text != row.texts[column]})


def swapped(swaps: Sequence[Swaps], text: str, *, besides: Sequence[Part] = ()) -> str:
    """A stored text, JSON or not, with all replacements. Excluded parts are possible only in JSON, and of one
    change: each further one would find them elsewhere."""
    together = Swaps.together(swaps)
    if text.lstrip()[:1] in ("{", "[", '"') and is_readable(text):
        return together.applied_to_json(text, besides=besides)
    return together.applied(text)


def as_value(text: str) -> Any:
    try:
        return value_of(text)
    except NotReadable:
        return text


def id_of(document: Document, fragment: Fragment) -> str:
    return f"{document.key}.{fragment.number}"


def position_of(document: Document, fragment: Fragment) -> Position:
    return Position((*document.order, fragment.number))


def stored_item(document: Document, fragment: Fragment, text: str, *, is_whole: bool = False) -> StoredItem:
    raw = text[fragment.part.start : fragment.part.end]
    shown, tail = (raw, "") if is_whole else both_ends(raw)
    byte_count = len(raw.encode(errors="surrogatepass"))
    return StoredItem(
        id_of(document, fragment), position_of(document, fragment), shown, byte_count, fragment.written_at, tail
    )
