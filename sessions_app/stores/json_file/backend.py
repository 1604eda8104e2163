"""A folder with a file for each session: an array of `[{role, content}]`, or JSON Lines.

An item's id and position are its place in the file. The session id is the file's name without the ending.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from urllib.parse import quote, unquote

from django import forms

from memadmin import times
from memadmin.counting import COUNT_CAP
from memadmin.json_spans import Part
from sessions_app.items import ItemPage, Position, StoredItem, can_be_registered
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
from sessions_app.stores.json_file.entries import Entries
from sessions_app.stores.json_file.folder import FileUnusable, Folder
from sessions_app.stores.kinds import PathField, StoreKind
from sessions_app.stores.paged import PagedBackend, erasing, page_of_list, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from

COPIES = ("~", ".bak", ".old", ".orig", ".swp", ".tmp", ".copy")
"""Endings of the files that editors and backups leave beside a file."""


class JsonFileForm(forms.Form):
    path = PathField(
        is_folder=True, label="Folder", max_length=1_000, help_text="The folder with one file per session."
    )
    ending = forms.CharField(
        label="File name extension",
        required=False,
        max_length=50,
        help_text="Extension of the session files; default: .json.",
    )
    names = forms.ChoiceField(
        label="File names",
        required=False,
        choices=[("plain", "the session id as it is"), ("quoted", "the session id, percent-encoded")],
        help_text="Names of the files: plain, the session id as it is, or quoted, percent-encoded.",
    )

    def clean_ending(self) -> str:
        ending = str(self.cleaned_data["ending"]) or ".json"
        if "/" in ending or "\0" in ending:
            raise forms.ValidationError("Enter a file name extension, such as .json or .jsonl.")
        return ending

    def clean_names(self) -> str:
        return str(self.cleaned_data["names"]) or "plain"


class JsonFileBackend(PagedBackend):
    capabilities = frozenset(
        {Capability.ENUMERATE, Capability.ERASE_SESSIONS, Capability.ERASE_ITEMS, Capability.REPLACE_ITEMS}
    )

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        began = perf_counter()
        try:
            names = self.folder.names(self.ending)
            answered_in_ms = (perf_counter() - began) * 1000
            problems = list(self._problems(names))
            items = sum(self._entries(name).count(2**31) for name in names) if thorough else None
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth(tuple(problems), len(names), items, answered_in_ms=answered_in_ms)

    def _problems(self, names: Sequence[str]) -> Iterator[StoreProblem]:
        if not os.access(self.folder.path, os.W_OK):
            yield StoreProblem(
                "read-only",
                f"This console may read {self.folder.path} but not write to it: nothing can be erased in it.",
            )
        if odd := sum(self._session_id(name) is None for name in names):
            yield StoreProblem(
                "odd-names",
                f"{odd:,} of its files have names that are not session ids: not text, too long, or not"
                " percent-encoded. They are not listed.",
            )
        if copies := sum(name.endswith(COPIES) and self.ending in name for name in self.folder.names("")):
            yield StoreProblem(
                "copies",
                f"{copies:,} of its files look like copies that an editor or a backup left. They are not listed, and"
                " text erased in a session stays in them: remove them.",
            )
        if links := self.folder.links(self.ending):
            yield StoreProblem(
                "links", f"{links:,} of its entries are links, which are not followed: their sessions are not read."
            )

    def system(self) -> str:
        return "folder"

    def places(self) -> frozenset[Place]:
        """Places by folder and ending: files that end with `.chat.json` are among those that end with `.json`."""
        return frozenset({("folder", *self.folder.identity(), *reversed(self.ending.lstrip(".").split(".")))})

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        names = [name for name in self.folder.names(self.ending) if not cursor or name > cursor][:limit]
        found = [session for session in map(self._found, names) if session]
        return SessionPage(found, next_cursor=names[-1] if len(names) == limit else "")

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        found = {session_id: self._found(self._name(session_id)) for session_id in session_ids}
        return {session_id: session for session_id, session in found.items() if session}

    def _found(self, name: str) -> FoundSession | None:
        session_id, status = self._session_id(name), self.folder.status(name)
        if session_id is None or status is None:
            return None
        mark = f"{status.st_ino}/{status.st_size}/{status.st_mtime_ns}"
        return FoundSession(session_id, None, times.of_seconds(status.st_mtime), mark)

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        return {session_id: self._preview(session_id) for session_id in session_ids}

    def _preview(self, session_id: str) -> SessionPreview:
        try:
            content = self.folder.read(self._name(session_id))
        except FileUnusable:
            return SessionPreview(item_count=0, is_readable=False)
        if content is None:
            return preview_from([], None)
        entries = Entries(content)
        heads = [entries.text(span)[:PREVIEW_HEAD_CHARACTERS] for span in islice(entries.spans(), PREVIEW_ITEMS)]
        return preview_from(heads, entries.count(COUNT_CAP))

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        entries = self._entries(self._name(session_id))
        spans = list(entries.spans())
        place = min(int(pivot.key[-1]), len(spans)) if pivot else (len(spans) if earlier else 0)
        first = max(place - earlier - 1, 0)
        texts = [entries.text(span) for span in spans[first : place + later + 1]]
        return page_of_list(texts, Position((place,)), earlier=earlier, later=later, first=first)

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        """All items of one state of the file, which is read once."""
        entries = self._entries(self._name(session_id))
        for place, span in enumerate(entries.spans()):
            yield item_at(place, entries, span)

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def item(self, session_id: str, item_id: str) -> StoredItem:
        place = whole_number(item_id)
        entries = self._entries(self._name(session_id))
        span = entries.at(place)
        if span is None:
            raise UnknownItem(item_id)
        return item_at(place, entries, span)

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        return self._entries(self._name(session_id)).count(cap)

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """All items at once, whatever `at_most` is: removing the file is quicker than writing a shorter one."""
        with erasing(self.store, session_id):
            content = self.folder.remove(self._name(session_id))
            return Deleted(Entries(content or b"").count(2**31), 0)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        place = whole_number(item_id)

        def replaced(entries: Entries) -> bytes:
            span = entries.at(place)
            if span is None:
                raise UnknownItem(item_id)
            if entries.text(span) != expected:
                raise ItemChanged(item_id)
            return entries.with_replaced(span, text.encode(errors="surrogateescape"))

        try:
            self.folder.change(self._name(session_id), replaced)
        except FileNotFoundError:
            raise UnknownItem(item_id) from None

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        wanted, gone = {whole_number(item.id): item.raw for item in items}, 0

        def shortened(entries: Entries) -> bytes:
            nonlocal gone
            there = {place: span for place, span in enumerate(entries.spans()) if place in wanted}
            if any(entries.text(span) != wanted[place] for place, span in there.items()):
                raise ItemChanged(session_id)
            gone = len(there)
            return entries.without(there)

        try:
            self.folder.change(self._name(session_id), shortened)
        except FileNotFoundError:
            return 0
        return gone

    # --- how it is kept -----------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Folder:
        return Folder(str(self.store.options.get("path", "")))

    @property
    def ending(self) -> str:
        return str(self.store.options.get("ending", ".json"))

    @property
    def has_quoted_names(self) -> bool:
        return str(self.store.options.get("names")) == "quoted"

    def _entries(self, name: str) -> Entries:
        """Entries of a file; none if it does not exist."""
        return Entries(self.folder.read(name) or b"")

    def _name(self, session_id: str) -> str:
        return f"{quote(session_id, safe='') if self.has_quoted_names else session_id}{self.ending}"

    def _session_id(self, name: str) -> str | None:
        """Session id in a file name; None if the registry cannot store it, or it would not lead back to the file."""
        stem = name.removesuffix(self.ending)
        session_id = unquote(stem) if self.has_quoted_names else stem
        return session_id if can_be_registered(session_id) and self._name(session_id) == name else None


def item_at(place: int, entries: Entries, span: Part) -> StoredItem:
    return StoredItem(str(place), Position((place,)), entries.text(span), span[1] - span[0], None)


KIND = StoreKind(
    "json_file",
    "JSON files",
    "braces",
    open=JsonFileBackend,
    form=JsonFileForm,
    layouts=("an array of messages", "JSON Lines"),
    limits=(
        "An agent that has a session in memory and rewrites all of it restores what was erased or redacted.",
        "Copies that editors and backups left beside the files are not searched.",
    ),
)
