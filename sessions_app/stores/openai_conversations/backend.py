"""Sessions of the SDK's OpenAIConversationsSession: conversations that OpenAI's API keeps, known by their ids alone.

The API cannot list conversations, so they are registered. An item's position is its number from the beginning, for
sorting, and its id, from which a page goes on in both directions with one request.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from time import monotonic, perf_counter
from typing import Any, TypeVar

from django import forms

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
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreTooSlow,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.kinds import EnvironmentField, StoreKind, secret_named
from sessions_app.stores.openai_conversations.api import (
    OFFICIAL_ADDRESS,
    PAGE_ITEMS,
    Account,
    AskedToWait,
    ConversationsApi,
    NotThere,
    Order,
    UnreadableAnswer,
    patiently,
)
from sessions_app.stores.paged import PagedBackend, both_ends, erasing
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from

WALK_SECONDS = 20.0
"""Time limit of reading a conversation from its beginning to its end, and of several for a list."""

ERASE_SECONDS = 60.0
"""Time limit of an erasure; calling it again continues."""

AT_ONCE = 8
"""Largest number of concurrent requests."""

SAMPLED = 3
"""Number of registered conversations that are requested to check whether the key belongs to their project."""

NOBODY = "conv_00000000000000000000000000000000"
"""Requested if nothing is registered: the answer that it does not exist proves that the key is accepted."""

R = TypeVar("R")


class ConversationsForm(forms.Form):
    key_env = EnvironmentField(
        label="Environment variable with the API key",
        max_length=200,
        help_text="The name of the environment variable with a key of the agents' project, such as OPENAI_API_KEY.",
    )
    url_env = EnvironmentField(
        label="Environment variable with the address",
        required=False,
        max_length=200,
        help_text=f"The name of the environment variable with the API's address, if it is not {OFFICIAL_ADDRESS}.",
    )


class ConversationsBackend(PagedBackend):
    capabilities = frozenset(
        {Capability.ITEM_IDS, Capability.ERASE_SESSIONS, Capability.ERASE_IN_STEPS, Capability.ERASE_ITEMS}
    )
    erased_at_once = PAGE_ITEMS
    erase_seconds = ERASE_SECONDS

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        # By its key: before a store is saved it has none, and no sessions.
        registered = SessionRecord.objects.filter(store_id=self.store.pk).on_record().filter(missing_since=None)
        sample = list(registered.order_by("-last_activity_at").values_list("session_id", flat=True)[:SAMPLED])
        began = perf_counter()
        try:
            self._is_there((sample or [NOBODY])[0])
            answered_in_ms = (perf_counter() - began) * 1000
            is_foreign = bool(sample) and not any(map(self._is_there, sample))
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        foreign = StoreProblem(
            "none-there",
            "None of the requested conversations exists. If they were not deleted, the key belongs to another"
            " project, and erasing with it deletes nothing.",
        )
        counted = registered.count_up_to(COUNTED_EXACTLY)
        sessions = counted if counted <= COUNTED_EXACTLY else None
        return StoreHealth((foreign,) if is_foreign else (), sessions, answered_in_ms=answered_in_ms)

    def system(self) -> str:
        return "openai"

    def places(self) -> frozenset[Place]:
        """Places by key: the project of a key is unknown, so two keys are two places."""
        reached = self.api.place
        key = hashlib.sha256(reached.key.encode()).hexdigest()
        return frozenset({("openai", reached.address.rstrip("/"), key)})

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        """One request for each session."""
        found = self._for_each(session_ids, self._found)
        return {session_id: session for session_id, session in found.items() if session}

    def _found(self, session_id: str) -> FoundSession | None:
        try:
            items, _ = self._items(session_id, order="desc", limit=1)
        except NotThere:
            return None
        last = str(items[-1]["id"]) if items else ""
        return FoundSession(session_id, mark=hashlib.sha256(last.encode()).hexdigest()[:16])

    def _is_there(self, session_id: str) -> bool:
        return self._found(session_id) is not None

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        """One request for each hundred items of a session, at most eleven, which is enough for the capped count."""
        until = monotonic() + WALK_SECONDS
        return self._for_each(session_ids, lambda session_id: self._preview(session_id, until))

    def _preview(self, session_id: str, until: float) -> SessionPreview:
        heads, count = [], 0
        try:
            for text in islice(self._texts(session_id, until), COUNT_CAP + 1):
                count += 1
                if count <= PREVIEW_ITEMS:
                    heads.append(text[:PREVIEW_HEAD_CHARACTERS])
        except NotThere:
            return preview_from([], None)
        except UnreadableAnswer:
            # One conversation with such an item must not hide the others.
            return SessionPreview(item_count=count, is_readable=False)
        return preview_from(heads, count)

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        try:
            if pivot is None:
                return self._end(session_id, earlier) if earlier else self._beginning(session_id, later)
            number, item_id, beyond = whole_position(pivot)
            try:
                return self._around(session_id, number, item_id, beyond, earlier=earlier, later=later)
            except NotThere:
                return self._around_number(session_id, number, earlier=earlier, later=later)
        except NotThere:
            return ItemPage([], has_earlier=False, has_later=False)

    def _beginning(self, session_id: str, later: int) -> ItemPage:
        items, has_later = self._items(session_id, limit=later)
        return ItemPage(shown(items, first=0), has_earlier=False, has_later=has_later)

    def _end(self, session_id: str, earlier: int) -> ItemPage:
        """Reads all items, because the API does not count them and the last ones need their numbers."""
        count, last = 0, deque[dict[str, Any]](maxlen=earlier)
        for item in self._walk(session_id, monotonic() + WALK_SECONDS):
            count += 1
            last.append(item)
        first = count - len(last)
        return ItemPage(shown(last, first=first), has_earlier=first > 0, has_later=False)

    def _around(self, session_id: str, number: int, item_id: str, beyond: int, *, earlier: int, later: int) -> ItemPage:
        """Page around an item. Raises NotThere if the item is gone. Reads only the requested sides."""
        is_in = bool(earlier) if beyond else bool(later)
        itself = [self.api.item(session_id, item_id)] if is_in else []
        wanted_before, wanted_behind = earlier - (is_in and bool(beyond)), later - (is_in and not beyond)
        before: list[dict[str, Any]] = []
        behind: list[dict[str, Any]] = []
        has_earlier = has_later = True
        if is_in or not beyond:
            before, has_earlier = self._items(session_id, order="desc", after=item_id, limit=wanted_before)
        if is_in or beyond:
            behind, has_later = self._items(session_id, after=item_id, limit=wanted_behind)
        items = [*reversed(before), *itself, *behind]
        first = max(number - len(before), 0) if is_in or not beyond else number + 1
        return ItemPage(shown(items, first=first), has_earlier=has_earlier, has_later=has_later)

    def _around_number(self, session_id: str, number: int, *, earlier: int, later: int) -> ItemPage:
        """Page around a number, for a position whose item is gone."""
        items = list(islice(self._walk(session_id, monotonic() + WALK_SECONDS), number + later + 1))
        place = min(number, len(items))
        start, stop = max(place - earlier, 0), min(place + later, len(items))
        return ItemPage(shown(items[start:stop], first=start), has_earlier=start > 0, has_later=stop < len(items))

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def item(self, session_id: str, item_id: str) -> StoredItem:
        """Reads the conversation up to the item, for its number."""
        try:
            for number, item in enumerate(self._walk(session_id, monotonic() + WALK_SECONDS)):
                if item["id"] == item_id:
                    return whole_item(number, item)
        except NotThere:
            pass
        raise UnknownItem(item_id)

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        try:
            for number, item in enumerate(self._walk(session_id)):
                yield whole_item(number, item)
        except NotThere:
            return

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        try:
            return sum(1 for _ in islice(self._walk(session_id, monotonic() + WALK_SECONDS), cap + 1))
        except NotThere:
            return 0

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """Items first: those of a deleted conversation would stay where no request reaches them.

        The API gives ids only together with items. It cannot count: `left` is at most a page of items. If it fails
        after some deletions, the step ends there with what was deleted.
        """
        until, count, left = monotonic() + ERASE_SECONDS, 0, 0
        with erasing(self.store, session_id):
            try:
                while count < at_most and monotonic() < until:
                    deleted = self._delete_page(session_id, min(at_most - count, PAGE_ITEMS), until)
                    if deleted is None:
                        break
                    count += deleted
                left = len(self._items(session_id, limit=PAGE_ITEMS)[0])
                if not left:
                    patiently(lambda: self.api.delete_conversation(session_id), until=until)
            except NotThere:  # deleted already, perhaps by another process
                left = 0
            except StoreUnavailable as problem:
                if not count:
                    if isinstance(problem, AskedToWait):
                        raise StoreTooSlow(
                            f"{problem} The session is not erased completely: erase it again to continue."
                        ) from problem
                    raise
                left = 1
        return Deleted(count, left)

    def _delete_page(self, session_id: str, limit: int, until: float) -> int | None:
        """Number of deleted items among the newest; None if there is no item. Raises NotThere."""
        items = self._items(session_id, order="desc", limit=limit)[0]
        ids = [str(item["id"]) for item in items]
        deleted = self._for_each(ids, lambda item_id: self._delete_item(session_id, item_id, until))
        return sum(deleted.values()) if items else None

    def _delete_item(self, session_id: str, item_id: str, until: float) -> bool:
        try:
            patiently(lambda: self.api.delete_item(session_id, item_id), until=until)
        except NotThere:
            return False
        return True

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        """All are compared before the first is deleted: items never change, so the comparison stays valid.

        One request to compare and one to delete each; if the API fails in between, calling it again continues.
        """
        until = monotonic() + ERASE_SECONDS
        stored = self._for_each([item.id for item in items], lambda item_id: self._stored(session_id, item_id))
        if any(stored[item.id] not in (None, item.raw) for item in items):
            raise ItemChanged(session_id)
        present = [item_id for item_id, text in stored.items() if text is not None]
        return sum(self._for_each(present, lambda item_id: self._delete_item(session_id, item_id, until)).values())

    def _stored(self, session_id: str, item_id: str) -> str | None:
        try:
            return text_of(self.api.item(session_id, item_id))
        except NotThere:
            return None

    # --- how it is asked ----------------------------------------------------------------------------------------------

    @property
    def api(self) -> ConversationsApi:
        variable = str(self.store.options.get("url_env", ""))
        address = secret_named(self.store, "url_env") if variable else OFFICIAL_ADDRESS
        key = secret_named(self.store, "key_env")
        return ConversationsApi(Account(address, key, str(self.store.options.get("key_env", "")), variable))

    def _items(
        self, session_id: str, *, order: Order = "asc", after: str = "", limit: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Up to `limit` items beyond another, in as many requests as needed, and whether there are more.

        With a limit of 0, only the latter.
        """
        api, items, has_more = self.api, list[dict[str, Any]](), True
        if not can_be_asked_for(session_id):
            # No conversation has such an id; the request still finds out whether the API answers.
            api.items(NOBODY, order=order, after="", limit=1)
            raise NotThere
        while has_more and (len(items) < limit or not limit):
            wanted = min(limit - len(items), PAGE_ITEMS) if limit else 1
            page, has_more = api.items(session_id, order=order, after=after, limit=wanted)
            if not limit:
                return [], bool(page)
            items += page
            after = str(page[-1]["id"]) if page else after
        return items, has_more

    def _walk(self, session_id: str, until: float = float("inf")) -> Iterator[dict[str, Any]]:
        """All items, oldest first, one request for each hundred. Raises StoreTooSlow at `until`."""
        after, has_more = "", True
        while has_more:
            if monotonic() > until:
                raise StoreTooSlow(
                    f"{self.api.place.label} did not return the whole conversation within {WALK_SECONDS:g} seconds,"
                    " because it is long. Open its first page, or download it."
                )
            items, has_more = self._items(session_id, after=after, limit=PAGE_ITEMS)
            yield from items
            after = str(items[-1]["id"]) if items else ""

    def _texts(self, session_id: str, until: float) -> Iterator[str]:
        return map(text_of, self._walk(session_id, until))

    def _for_each(self, ids: Sequence[str], ask: Callable[[str], R]) -> dict[str, R]:
        """Concurrent requests; after all have ended, raises the first exception."""
        unique = list(dict.fromkeys(ids))
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="conversations") as several:
            return dict(zip(unique, several.map(ask, unique), strict=True))


def can_be_asked_for(session_id: str) -> bool:
    """Whether an id is possible in a URL path."""
    return session_id not in ("", ".", "..")


def whole_position(position: Position) -> tuple[int, str, int]:
    number, item_id, beyond = position.key
    return int(number), str(item_id), int(beyond)


def text_of(item: Mapping[str, Any]) -> str:
    """JSON of an item as the SDK writes it to other stores: the API has no stored text to return byte for byte."""
    return json.dumps(item, separators=(",", ":"))


def whole_item(number: int, item: Mapping[str, Any]) -> StoredItem:
    text, item_id = text_of(item), str(item["id"])
    return StoredItem(item_id, Position((number, item_id, 0)), text, len(text), None)


def shown(items: Sequence[Mapping[str, Any]] | deque[dict[str, Any]], *, first: int) -> list[StoredItem]:
    """Items as a page shows them."""
    page = []
    for number, item in enumerate(items, start=first):
        whole = whole_item(number, item)
        raw, tail = both_ends(whole.raw)
        page.append(StoredItem(whole.id, whole.position, raw, whole.byte_count, None, raw_tail=tail))
    return page


KIND = StoreKind(
    "openai_conversations",
    "OpenAI Conversations",
    "cloud",
    open=ConversationsBackend,
    form=ConversationsForm,
    layouts=("openai-agents 0.2 and later",),
    limits=(
        "A conversation that the key may not read looks like a deleted one: use a key of the agents' project.",
        "Responses stored by a run do not belong to a conversation: memadmin cannot delete them, and OpenAI"
        " keeps them for its own retention period.",
        "An item that an agent adds between the deletion of the last item and that of its conversation is out of reach:"
        " erase while no agent uses it.",
        "The end of a conversation is found by reading it from its beginning, a hundred items a request.",
        "Tested with the SDK's class and the real openai client on a simulated API, not on OpenAI itself.",
    ),
    lacks={
        Capability.FENCE: "It needs no fence: an agent whose conversation was deleted fails when it writes. One that"
        " begins a new conversation instead has a new id, which has to be registered."
    },
)
