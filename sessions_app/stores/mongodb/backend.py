"""Sessions of the SDK's MongoDBSession: a document for each session, and one for each batch of items.

Of a session agents see the batches of one generation; `clear_session` begins the next one and deletes what it can of
the others. Pages show what agents see, an erasure takes all. An item's position is the number of its batch and its
place in it; its id, the batch's id and that place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from django import forms

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import (
    COUNTED_EXACTLY,
    IN_DOUBT,
    Capability,
    Deleted,
    ItemChanged,
    Place,
    SessionPage,
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.hosts import endpoint
from sessions_app.stores.kinds import EnvironmentField, StoreKind, secret_named
from sessions_app.stores.mongodb.documents import (
    BATCH_SIZE,
    Document,
    Known,
    entries_of,
    generation_in,
    items_of,
    parts_of,
    places_of,
    sequence_of,
    text_of,
    texts_of,
    whole_item,
)
from sessions_app.stores.mongodb.server import client_for, plain_words
from sessions_app.stores.paged import PagedBackend, erasing
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from

BATCHES_AT_ONCE = 50

ATTEMPTS = 5
"""Number of attempts to change a batch that an agent changes at the same time."""

OLDEST_FIRST = [("seq", 1)]

# ObjectIds contain the second of their creation, in 32 bits.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2106, 1, 1, tzinfo=UTC)


class MongoForm(forms.Form):
    url_env = EnvironmentField(
        label="Environment variable with the address",
        max_length=200,
        help_text="The name of the environment variable with the address, such as mongodb://user:password@host:27017.",
    )
    database = forms.CharField(
        required=False,
        max_length=63,
        help_text="The agents' database of MongoDBSession; agents if not given.",
    )
    sessions_collection = forms.CharField(
        required=False, max_length=120, help_text="The agents' sessions_collection; agent_sessions if not given."
    )
    messages_collection = forms.CharField(
        required=False, max_length=120, help_text="The agents' messages_collection; agent_messages if not given."
    )

    def clean_database(self) -> str:
        name = str(self.cleaned_data["database"]) or "agents"
        if re.search(r'[\s/\\."$]', name):
            raise forms.ValidationError(f"{name} is not the name of a database.")
        return name

    def clean_sessions_collection(self) -> str:
        return collection_name(self.cleaned_data["sessions_collection"], "agent_sessions")

    def clean_messages_collection(self) -> str:
        return collection_name(self.cleaned_data["messages_collection"], "agent_messages")


def collection_name(given: str, otherwise: str) -> str:
    name = given or otherwise
    if "$" in name or name.startswith(("system.", ".")) or name.endswith(".") or ".." in name:
        raise forms.ValidationError(f"{name} is not the name of a collection.")
    return name


class MongoBackend(PagedBackend):
    capabilities = frozenset(
        {
            Capability.ENUMERATE,
            Capability.ITEM_TIMES,
            Capability.ERASE_SESSIONS,
            Capability.ERASE_IN_STEPS,
            Capability.ERASE_ITEMS,
            Capability.REPLACE_ITEMS,
        }
    )

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        began = perf_counter()
        try:
            with plain_words(self.variable):
                about = self._database.command("hello")
                answered_in_ms = (perf_counter() - began) * 1000
                sessions, batches = (each.estimated_document_count() for each in (self._sessions, self._messages))
                problems = [*problems_of(about), *self._problem_of_index(batches)]
                items = None
                if thorough or batches <= COUNTED_EXACTLY:
                    items, unseen = self._count_all()
                    problems += problem_of_unseen(unseen)
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth(tuple(problems), sessions, items, answered_in_ms=answered_in_ms)

    def system(self) -> str:
        return "mongodb"

    def places(self) -> frozenset[Place]:
        """Places by the address of the server; of a replica set, by the primary."""
        with plain_words(self.variable):
            self._database.command("hello")
            server = endpoint(*self._database.client.address)
        names = (str(self.store.options.get(each, "")) for each in ("sessions_collection", "messages_collection"))
        return frozenset(("mongodb", server, str(self.store.options.get("database", "")), name) for name in names)

    def _problem_of_index(self, batches: int) -> Iterator[StoreProblem]:
        """Problem of a missing index. The SDK creates it, unless its user lacks the right."""
        if batches and not any(list(index["key"])[:1] == ["session_id"] for index in self._messages.list_indexes()):
            yield StoreProblem(
                "no-index", "The messages have no index on session_id, seq: every page reads all of them."
            )

    def _count_all(self) -> tuple[int, int]:
        """Number of items that agents read, and that they do not. Reads the keys of all batches."""
        seen = unseen = 0
        cursor = ""
        while True:
            sessions, cursor = self._stretch(cursor, limit=1_000)
            for session in sessions:
                seen += session.item_count
                unseen += session.unseen_count
            if not cursor:
                return seen, unseen

    def fingerprint(self) -> str:
        with plain_words(self.variable):
            last = self._messages.find_one({}, {"_id": 1}, sort=[("_id", -1)])
            counts = [each.estimated_document_count() for each in (self._sessions, self._messages)]
        return f"{counts[0]}:{counts[1]}:{last and last['_id']}"

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        with plain_words(self.variable):
            sessions, next_cursor = self._stretch(cursor, limit=limit)
        return SessionPage([session.found() for session in sessions if session.is_there], next_cursor)

    def _stretch(self, cursor: str, *, limit: int) -> tuple[list[Known], str]:
        """Sessions beyond an id, up to the next cursor: those with a document of their own, and those of which only
        batches are left."""
        beyond: dict[str, Any] = {"$gt": cursor} if cursor else {"$gte": ""}
        rows = list(self._sessions.find({"session_id": beyond}).sort("session_id", 1).limit(limit))
        next_cursor = str(rows[-1]["session_id"]) if len(rows) == limit else ""
        if next_cursor:
            beyond["$lte"] = next_cursor
        known = {str(row["session_id"]): Known(str(row["session_id"]), row) for row in rows}
        generations = self._messages.aggregate(
            [
                {"$match": {"session_id": beyond}},
                {
                    "$group": {
                        "_id": {"session_id": "$session_id", "generation": "$generation"},
                        "batches": {"$sum": 1},
                        "items": {"$sum": BATCH_SIZE},
                    }
                },
            ]
        )
        for each in generations:
            session_id = each["_id"]["session_id"]
            generation = each["_id"].get("generation") or 0
            session = known.setdefault(session_id, Known(session_id, None))
            session.items[generation] = session.items.get(generation, 0) + each["items"]
        return [known[session_id] for session_id in sorted(known)], next_cursor

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        """One query for all sessions, and two for each."""
        ids = list(dict.fromkeys(session_ids))
        with plain_words(self.variable):
            rows = {row["session_id"]: row for row in self._sessions.find({"session_id": {"$in": ids}})}
            return {session_id: self._preview(session_id, rows.get(session_id)) for session_id in ids}

    def _preview(self, session_id: str, row: Document | None) -> SessionPreview:
        seen = self._seen(session_id, row)
        heads: list[str] = []
        for batch in self._messages.find(seen).sort(OLDEST_FIRST).limit(PREVIEW_ITEMS):
            heads += [text[:PREVIEW_HEAD_CHARACTERS] for text in texts_of(batch)[: PREVIEW_ITEMS - len(heads)]]
            if len(heads) == PREVIEW_ITEMS:
                break
        count = self._count(seen, COUNT_CAP)
        # A document without items is what clear_session leaves of a session.
        is_there = count or (row is not None and not generation_in(row))
        return preview_from(heads, count if is_there else None)

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        with plain_words(self.variable):
            seen = self._seen(session_id)
            if pivot is None:
                before, has_earlier = self._before(seen, None, earlier)
                behind, has_later = self._behind(seen, Position((0, 0)), later) if later else ([], False)
                return ItemPage([*before, *behind], has_earlier, has_later)
            before, has_earlier = self._before(seen, pivot, earlier)
            behind, has_later = self._behind(seen, pivot, later)
        return ItemPage([*before, *behind], has_earlier, has_later)

    def _behind(self, seen: Document, place: Position, limit: int) -> tuple[list[StoredItem], bool]:
        """Up to `limit` items from a position on, and whether there are more."""
        batches = self._messages.find({**seen, "seq": {"$gte": int(place.key[0])}}).sort(OLDEST_FIRST)
        items: list[StoredItem] = []
        for item in items_of(batches.batch_size(BATCHES_AT_ONCE)):
            if item.position >= place:
                if len(items) == limit:
                    return items, True
                items.append(item)
        return items, False

    def _before(self, seen: Document, place: Position | None, limit: int) -> tuple[list[StoredItem], bool]:
        """The same towards the beginning; from the end without a position."""
        beyond = {"seq": {"$lte": int(place.key[0])}} if place else {}
        batches = self._messages.find({**seen, **beyond}).sort([("seq", -1)])
        items: list[StoredItem] = []
        if place is None and not limit:
            return items, False
        for batch in batches.batch_size(BATCHES_AT_ONCE):
            for item in reversed(list(items_of([batch]))):
                if place is None or item.position < place:
                    if len(items) == limit:
                        return items[::-1], True
                    items.append(item)
        return items[::-1], False

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def position_from(self, session_id: str, instant: datetime) -> Position | None:
        from bson import ObjectId

        if instant >= LATEST:
            return None
        first = ObjectId.from_datetime(max(instant, EARLIEST))
        with plain_words(self.variable):
            batch = self._messages.find_one({**self._seen(session_id), "_id": {"$gte": first}}, sort=OLDEST_FIRST)
        return Position((sequence_of(batch), 0)) if batch else None

    def item(self, session_id: str, item_id: str) -> StoredItem:
        batch_id, index = parts_of(item_id)
        with plain_words(self.variable):
            batch = self._messages.find_one({"_id": batch_id, **self._seen(session_id)})
        texts = texts_of(batch) if batch else []
        if batch is None or index >= len(texts):
            raise UnknownItem(item_id)
        return whole_item(batch, index, texts[index])

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        with plain_words(self.variable):
            return self._count(self._seen(session_id), cap)

    def _count(self, wanted: Document, cap: int) -> int:
        counted = self._messages.aggregate(
            [{"$match": wanted}, {"$limit": cap + 1}, {"$group": {"_id": None, "items": {"$sum": BATCH_SIZE}}}]
        )
        return min(sum(int(each["items"]) for each in counted), cap + 1)

    def _seen(self, session_id: str, row: Document | None = None) -> dict[str, Any]:
        """Filter for the batches that agents read; the newest ones if the session's document is lost."""
        row = row or self._sessions.find_one({"session_id": session_id}, {"_generation": 1})
        if row is None:
            newest = self._messages.find_one({"session_id": session_id}, {"generation": 1}, sort=[("generation", -1)])
            generation = (newest or {}).get("generation") or 0
        else:
            generation = generation_in(row)
        return {"session_id": session_id, "generation": generation or {"$in": [0, None]}}

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """The first change hides all items from agents, so that none reads a part of them.

        An agent that had begun to write may do so after that: to a batch that no agent reads, or, had it read the
        session after the first change, to a session that has come back. The next step or discovery finds either.
        """
        wanted = {"session_id": session_id}
        with erasing(self.store, session_id), plain_words(self.variable, changed=IN_DOUBT):
            row = self._sessions.find_one_and_update(wanted, {"$inc": {"_generation": 1}}, return_document=True)
            count = self._delete_newest(session_id, at_most)
            left = self._count(wanted, COUNT_CAP)
            if row is not None and not left:
                # Unless an agent has taken numbers for items since: then its session stands on this document.
                unchanged = {name: row.get(name) for name in ("_generation", "_seq")}
                self._sessions.delete_one({"_id": row["_id"], **unchanged})
        return Deleted(count, left)

    def show_rest(self, session_id: str) -> None:
        """Goes back to the generation of the newest batch, unless an agent has begun another one since."""
        wanted = {"session_id": session_id}
        with plain_words(self.variable, changed=IN_DOUBT):
            row = self._sessions.find_one(wanted)
            newest = self._messages.find_one(wanted, {"generation": 1}, sort=[("generation", -1)])
            if row is None or newest is None:
                return
            # What agents do changes one of the two.
            unchanged = {name: row.get(name) for name in ("_generation", "_seq")}
            shown = {"$set": {"_generation": newest.get("generation") or 0}}
            self._sessions.update_one({"_id": row["_id"], **unchanged}, shown)

    def _delete_newest(self, session_id: str, at_most: int) -> int:
        """Whole batches, of any generation, and the end of the batch that is longer than the rest of `at_most`."""
        batches = self._messages.aggregate(
            [
                {"$match": {"session_id": session_id}},
                {"$sort": {"seq": -1}},
                # No batch is empty.
                {"$limit": max(at_most, 1)},
                {"$project": {"items": BATCH_SIZE}},
            ]
        )
        whole, count = [], 0
        for batch in batches:
            size, wanted = int(batch["items"]), at_most - count
            if size > wanted:
                shortened = {"$push": {"message_data": {"$each": [], "$slice": size - wanted}}}
                as_seen = {"_id": batch["_id"], "message_data": {"$size": size}}
                # An agent that took an item back meanwhile made it shorter: that is left to the next step.
                count += wanted * bool(wanted and self._messages.update_one(as_seen, shortened).matched_count)
                break
            whole.append(batch["_id"])
            count += size
        if whole:
            self._messages.delete_many({"_id": {"$in": whole}, "session_id": session_id})
        return count

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        batch_id, index = parts_of(item_id)
        for _ in range(ATTEMPTS):
            with plain_words(self.variable):
                batch = self._messages.find_one({"_id": batch_id, **self._seen(session_id)})
            entries = entries_of(batch) if batch else []
            if batch is None or index >= len(entries):
                raise UnknownItem(item_id)
            if text_of(entries[index]) != expected:
                raise ItemChanged(item_id)
            if self._put(batch, [*entries[:index], text, *entries[index + 1 :]]):
                return
        raise ItemChanged(item_id)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        """All are compared before the first is deleted. Each batch is one change, because a server may have no
        transactions: if an agent changes one in between, the earlier ones are gone, and calling it again continues."""
        by_batch: dict[Any, list[tuple[int, str]]] = {}
        for item in items:
            batch_id, index = parts_of(item.id)
            by_batch.setdefault(batch_id, []).append((index, item.raw))
        for batch_id, wanted in by_batch.items():
            places_of(self._entries(session_id, batch_id)[1], wanted)
        return sum(self._delete_from(session_id, batch_id, wanted) for batch_id, wanted in by_batch.items())

    def _delete_from(self, session_id: str, batch_id: Any, wanted: Sequence[tuple[int, str]]) -> int:
        for _ in range(ATTEMPTS):
            batch, entries = self._entries(session_id, batch_id)
            places = places_of(entries, wanted)
            if not places or batch is None:
                return 0
            if self._put(batch, [entry for place, entry in enumerate(entries) if place not in places]):
                return len(places)
        raise ItemChanged(session_id)

    def _entries(self, session_id: str, batch_id: Any) -> tuple[Document | None, list[Any]]:
        with plain_words(self.variable):
            batch = self._messages.find_one({"_id": batch_id, "session_id": session_id})
        return batch, entries_of(batch) if batch else []

    def _put(self, batch: Document, entries: Sequence[Any]) -> bool:
        """Writes a batch unless it has changed since it was read; returns whether it was written."""
        as_read = {"_id": batch["_id"], "message_data": {"$eq": batch.get("message_data")}}
        with plain_words(self.variable, changed=IN_DOUBT):
            if not entries:
                return bool(self._messages.delete_one(as_read).deleted_count)
            is_list = isinstance(batch.get("message_data"), list)
            written = {"$set": {"message_data": list(entries) if is_list else entries[0]}}
            return bool(self._messages.update_one(as_read, written).matched_count)

    # --- how it is asked ----------------------------------------------------------------------------------------------

    @property
    def variable(self) -> str:
        return str(self.store.options.get("url_env", ""))

    @property
    def _database(self) -> Any:
        client = client_for(secret_named(self.store, "url_env"), self.variable)
        return client[str(self.store.options.get("database", ""))]

    @property
    def _sessions(self) -> Any:
        return self._database[str(self.store.options.get("sessions_collection", ""))]

    @property
    def _messages(self) -> Any:
        return self._database[str(self.store.options.get("messages_collection", ""))]


def problems_of(about: Document) -> Iterator[StoreProblem]:
    """Problems found in the server's answer to hello."""
    if not about.get("isWritablePrimary", True):
        yield StoreProblem("read-only", "The server is not a primary: sessions can be read, but nothing can be erased.")


def problem_of_unseen(count: int) -> list[StoreProblem]:
    sentence = (
        f"{count:,} items of histories that agents cleared are still stored. No agent and no page shows them; erasing"
        " their sessions deletes them, too."
    )
    return [StoreProblem("left-behind", sentence)] if count else []


KIND = StoreKind(
    "mongodb",
    "MongoDB",
    "brand-mongodb",
    open=MongoBackend,
    form=MongoForm,
    layouts=("openai-agents 0.14 and later",),
    limits=(
        "Tested with the SDK's class and the real driver on a simulated server, not on MongoDB itself.",
        "The time of an item is the second in which its agent wrote it, by the agent's own clock.",
        "Erased text remains in the journal, the oplog and the backups of the server until these are deleted.",
    ),
)
