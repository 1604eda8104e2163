"""Sessions of the SDK's DaprSession: a list of items under one key of a state store, a note about them under another.

`ID:messages` is a JSON array of texts, each the JSON of an item; `ID:metadata` has session_id, created_at, updated_at.
A state store cannot list its keys, so sessions are registered; nor can it hand over a part of a value, so each page
reads a whole session. An item's id and position are its place in the list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from time import perf_counter, sleep
from typing import Any, TypeVar

from django import forms

from memadmin import times
from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.models import SessionRecord
from sessions_app.stores.base import (
    COUNTED_EXACTLY,
    Capability,
    Deleted,
    FoundSession,
    ItemChanged,
    Place,
    SessionBusy,
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.dapr.sidecar import Conflict, Sidecar, StateStore, StateValue
from sessions_app.stores.kinds import EnvironmentField, StoreKind, secret_named
from sessions_app.stores.paged import PagedBackend, erasing, page_of_list, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from

ATTEMPTS = 20
"""Number of attempts to change a session that an agent changes at the same time."""

PAUSE_SECONDS = 0.02

EMPTY = b"[]"

SOMETHING_ELSE = (
    "A key of this session does not contain what the SDK stores there, a list in JSON. So the SDK refuses to write"
    " to it, too. Nothing was changed; the session can only be erased as a whole."
)


T = TypeVar("T")


class DaprForm(forms.Form):
    url_env = EnvironmentField(
        label="Environment variable with the address",
        max_length=200,
        help_text="The name of the environment variable with the sidecar's gRPC address, such as localhost:50001.",
    )
    state_store = forms.CharField(
        max_length=200, help_text="The name of the component, which the agents give to DaprSession as state_store_name."
    )
    token_env = EnvironmentField(
        label="Environment variable with the API token",
        required=False,
        max_length=200,
        help_text="The name of the environment variable with the sidecar's API token, if it requires one.",
    )


class DaprBackend(PagedBackend):
    capabilities = frozenset(
        {
            Capability.ERASE_SESSIONS,
            Capability.ERASE_ITEMS,
            Capability.REPLACE_ITEMS,
            Capability.SELF_EXPIRY,
        }
    )

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        # By its key: before a store is saved it has none, and no sessions.
        registered = SessionRecord.objects.filter(store_id=self.store.pk).on_record().filter(missing_since=None)
        newest = registered.newest_first().values_list("session_id", flat=True).first() or ""
        began = perf_counter()
        try:
            self.state.get(about_key(newest))
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        counted = registered.count_up_to(COUNTED_EXACTLY)
        sessions = counted if counted <= COUNTED_EXACTLY else None
        return StoreHealth((), sessions, answered_in_ms=(perf_counter() - began) * 1000)

    def system(self) -> str:
        return "dapr"

    def places(self) -> frozenset[Place]:
        """Places by the address of the sidecar; another sidecar of the same app has the same sessions, unnoticed."""
        return frozenset({("dapr", self.state.endpoint(), str(self.store.options.get("state_store", "")))})

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        """Existing sessions by the SDK's metadata; items are read only if the metadata is missing."""
        notes = self.state.get_all([about_key(session_id) for session_id in session_ids])
        without = [session_id for session_id in session_ids if about_key(session_id) not in notes]
        lists = self.state.get_all([items_key(session_id) for session_id in without]) if without else {}
        found = {}
        for session_id in session_ids:
            note, items = notes.get(about_key(session_id)), lists.get(items_key(session_id))
            if note:
                found[session_id] = found_session(session_id, note, has_note=True)
            elif items and not is_empty(items):
                found[session_id] = found_session(session_id, items, has_note=False)
        return found

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        """Reads whole sessions, twenty in one request."""
        ids = list(dict.fromkeys(session_ids))
        lists = self.state.get_all([items_key(session_id) for session_id in ids])
        empty = [session_id for session_id in ids if is_empty(lists.get(items_key(session_id)))]
        # An erasure leaves an empty list without metadata.
        notes = self.state.get_all([about_key(session_id) for session_id in empty]) if empty else {}
        for session_id in empty:
            if about_key(session_id) not in notes:
                del lists[items_key(session_id)]
        return {session_id: preview_of(lists.get(items_key(session_id))) for session_id in ids}

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        return page_of_list(self._read(session_id).texts, pivot, earlier=earlier, later=later)

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def item(self, session_id: str, item_id: str) -> StoredItem:
        place = whole_number(item_id)
        texts = self._read(session_id).texts
        if not 0 <= place < len(texts):
            raise UnknownItem(item_id)
        size = len(texts[place].encode(errors="surrogatepass"))
        return StoredItem(item_id, Position((place,)), texts[place], size, None)

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        return min(len(self._read(session_id).texts), cap + 1)

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """All items at once, whatever `at_most` is: they are one value, which has to be read and written as a whole.

        An empty list takes the place of the items, and is deleted when the session is erased again.
        Where a key is missing, state stores take a write with any etag: an agent that had read the session before
        would write all of it there again. With the empty list its write fails, and it reads the session again.
        """
        with erasing(self.store, session_id):
            count = self._patiently(lambda: self._erase_items(session_id))
            self.state.delete(about_key(session_id))
        return Deleted(count, 0)

    def _erase_items(self, session_id: str) -> int:
        key = items_key(session_id)
        stored = self.state.get(key)
        if stored is None:
            return 0
        if stored.data == EMPTY and self.state.get(about_key(session_id)) is None:
            self.state.delete(key, stored)
            return 0
        self.state.put(key, EMPTY, instead_of=stored)
        return len(Items.in_value(stored).texts)

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        place = whole_number(item_id)

        def replace() -> None:
            stored = self._read(session_id)
            if not 0 <= place < len(stored.texts):
                raise UnknownItem(item_id)
            if stored.texts[place] != expected:
                raise ItemChanged(item_id)
            self._write(session_id, stored, [*stored.entries[:place], text, *stored.entries[place + 1 :]])

        self._patiently(replace)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        wanted = {int(item.id): item.raw for item in items}

        def delete() -> int:
            stored = self._read(session_id)
            present = {place for place in wanted if place < len(stored.texts)}
            if any(stored.texts[place] != wanted[place] for place in present):
                raise ItemChanged(session_id)
            if present:
                left = [entry for place, entry in enumerate(stored.entries) if place not in present]
                self._write(session_id, stored, left)
            return len(present)

        return self._patiently(delete)

    def _write(self, session_id: str, stored: Items, entries: Sequence[Any]) -> None:
        if not stored.is_list or stored.value is None:
            raise StoreUnavailable(SOMETHING_ELSE)
        data = json.dumps(entries, separators=(",", ":")).encode()
        self.state.put(items_key(session_id), data, instead_of=stored.value)

    def _patiently(self, change: Callable[[], T]) -> T:
        """Repeats a compare-and-write change while agents win the race. Raises SessionBusy."""
        for _ in range(ATTEMPTS):
            try:
                return change()
            except Conflict:
                sleep(PAUSE_SECONDS)
        raise SessionBusy("An agent keeps writing to this session. Try again when it is done.")

    # --- how it is asked ----------------------------------------------------------------------------------------------

    def _read(self, session_id: str) -> Items:
        return Items.in_value(self.state.get(items_key(session_id)))

    @property
    def state(self) -> StateStore:
        options = self.store.options
        token_variable = str(options.get("token_env", ""))
        return StateStore(
            Sidecar(
                secret_named(self.store, "url_env"),
                str(options.get("state_store", "")),
                str(options.get("url_env", "")),
                secret_named(self.store, "token_env") if token_variable else "",
                token_variable,
            )
        )


@dataclass(frozen=True, slots=True)
class Items:
    """Items in a value; a value that is not a list is one unreadable item."""

    value: StateValue | None
    entries: Sequence[Any]
    texts: Sequence[str]
    is_list: bool = True

    @classmethod
    def in_value(cls, value: StateValue | None) -> Items:
        if value is None:
            return cls(None, (), ())
        text = value.data.decode(errors="surrogateescape")
        try:
            entries = json.loads(text)
            if isinstance(entries, list):
                return cls(value, entries, list(map(text_of, entries)))
        except (ValueError, RecursionError):
            pass
        return cls(value, [text], [text], is_list=False)


def text_of(entry: Any) -> str:
    """Text of an item. The SDK writes texts, and reads other JSON as well. Raises RecursionError."""
    return entry if isinstance(entry, str) else json.dumps(entry, separators=(",", ":"))


def items_key(session_id: str) -> str:
    return f"{session_id}:messages"


def about_key(session_id: str) -> str:
    return f"{session_id}:metadata"


def is_empty(value: StateValue | None) -> bool:
    return value is not None and value.data == EMPTY


def preview_of(value: StateValue | None) -> SessionPreview:
    if value is None:
        return preview_from([], None)
    texts = Items.in_value(value).texts
    heads = [text[:PREVIEW_HEAD_CHARACTERS] for text in texts[:PREVIEW_ITEMS]]
    preview = preview_from(heads, min(len(texts), COUNT_CAP + 1))
    return replace(preview, expires_at=value.expires_at)


def found_session(session_id: str, value: StateValue, *, has_note: bool) -> FoundSession:
    """Session from the SDK's metadata, or from its items."""
    try:
        note = json.loads(value.data) if has_note else {}
    except (ValueError, RecursionError):
        note = {}
    note = note if isinstance(note, dict) else {}
    mark = sha256(value.etag.encode() + b"\0" + value.data).hexdigest()[:16]
    return FoundSession(
        session_id,
        times.of_seconds(note.get("created_at")),
        times.of_seconds(note.get("updated_at")),
        mark,
        value.expires_at,
    )


KIND = StoreKind(
    "dapr",
    "Dapr state store",
    "hexagons",
    open=DaprBackend,
    form=DaprForm,
    layouts=("openai-agents 0.5 and later",),
    limits=(
        "Tested with the SDK's class on a simulated sidecar, not on Dapr itself.",
        "A sidecar shows only the keys of its own app id: use a sidecar with the app id of the agents.",
        "After an erasure an empty list remains, so that agents cannot write the old items back. Erase the session"
        " again to delete the list, too.",
        "Each page of a session, and each line of a list, reads the whole session.",
        "Erased text remains in the files and backups of the database behind the state store until these are deleted.",
    ),
)
