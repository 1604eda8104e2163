"""Search in messages: sessions with a match, newest first.

There are two methods. For rare words an index returns all items at once, because they are few. For common
words, and without an index, sessions are read from the newest on until a page is full or the time is over:
a common word fills the page within the first of them. The planner's statistics decide which is quicker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.template.defaultfilters import pluralize

from memadmin.web.paging import (
    BadCursor,
    KeyPosition,
    beyond,
    key_from_texts,
    key_texts,
    read_texts,
    sign_texts,
    sort_keys,
)
from sessions_app.items import Position
from sessions_app.models import SessionRecord, SessionStore, TextSearch
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.search.indexes import stores_without_index
from sessions_app.search.slices import SLICE_SECONDS, SliceReader
from sessions_app.search.snippets import Snippet, snippet
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreTooSlow, StoreUnavailable
from sessions_app.stores.circuit_breaker import ask_all
from sessions_app.stores.search_protocol import READ_CHARACTERS, SearchOrder, SliceResult, WordIndex

RARE = 10
"""A word is rare up to this many times the square root of all items: an index returns n items in time to n, and
reading newest first finds a page of them in time to items / n. At a million items both take about 60 ms at 10,000.
"""

BATCH_SESSIONS = range(20, 321)
"""Number of sessions searched together: about as many as still fill the page."""

INDEXED_STORES = 20
"""Most stores whose indexes are asked for one search; where there are more, sessions are read."""

QUICK_LOOK_ITEMS = 100
"""Number of items of a session that are read together with others; longer sessions are then read alone."""


@dataclass(frozen=True, slots=True)
class MatchingSession:
    record: SessionRecord
    item_id: str
    """The newest matching item, for a link that opens the timeline there."""
    snippet: Snippet


@dataclass(frozen=True, slots=True)
class MatchingSessions:
    """One page of results."""

    found: Sequence[MatchingSession]
    older: str
    """Cursor of the next page; empty at the end. After a stop at the time limit it is the place to continue from."""
    is_stopped: bool = False
    """True if the time was over before the page was full."""
    items_read: int = 0
    sessions_read: int = 0
    """Amount that was read for this page; zero if an index had the answer."""
    is_from_index: bool = False
    seconds: float = 0
    notes: Sequence[str] = ()
    """Sentences about stores and items that could not be searched."""
    without_index: Sequence[SessionStore] = ()
    """After a stop, the stores whose index would let such a search cover all sessions."""

    @property
    def effort(self) -> str:
        """The extent of the search as a sentence; empty if there was nothing to search."""
        if self.is_from_index:
            return f"Answered by the search index, which has the first {READ_CHARACTERS:,} characters of each item."
        if not self.sessions_read and not self.is_stopped:
            return ""
        # A session that was read in part counts where its end is reached, and a first one must count for something.
        session_count = max(self.sessions_read, 1)
        items = f"{self.items_read:,} item{pluralize(self.items_read)}"
        sessions = f"{session_count:,} session{pluralize(session_count)}"
        sentence = f"Searched {items} of {sessions} in {self.seconds:.1f} s"
        return sentence + ("; older sessions were not searched." if self.is_stopped else ".")


@dataclass(frozen=True, slots=True)
class Resume:
    """Start of a page: beyond a session, or inside one beyond an item."""

    key: Sequence[Any]
    within: Position | None


@dataclass
class SearchProgress:
    """The state of a search."""

    wanted: int
    slices: SliceReader
    notes: list[str] = field(default_factory=list)
    """Sentences about what is not searched."""
    stores: dict[int, SessionStore] = field(default_factory=dict)
    """Stores of the sessions that came up so far, by id."""
    away: set[int] = field(default_factory=set)
    """Ids of those that do not respond: their sessions are left out."""
    hits: list[tuple[SessionRecord, str]] = field(default_factory=list)
    """Sessions with the id of their newest matching item."""
    sessions_read: int = 0
    is_stopped: bool = False
    """True if the time was over before all were read."""

    def ask_new_stores(self, store_ids: Collection[int]) -> None:
        """Asks the stores that come up for the first time whether they respond, at the same time."""
        if new := store_ids - self.stores.keys():
            stores = SessionStore.objects.in_bulk(new)
            self.stores |= stores
            answers = ask_all({store: partial(_raise_if_away, store) for store in stores.values()})
            for store, answer in answers.items():
                if isinstance(answer, StoreUnavailable):
                    self.leave_out(store, answer)

    def leave_out(self, store: SessionStore, away: StoreUnavailable) -> None:
        self.away.add(store.pk)
        self.notes.append(f"{store} could not be searched. {away}")


def _raise_if_away(store: SessionStore) -> None:
    backend_for(store).search.raise_if_away()


def matching_sessions(
    search: TextSearch,
    sessions: SessionRecordQuerySet,
    *,
    cursor: str = "",
    size: int = 50,
    is_masked: bool,
    granted: Collection[UUID] = (),
    store: SessionStore | None = None,
) -> MatchingSessions:
    """Those of `sessions` that contain the words of a search.

    For a user who reads masked text (`is_masked`) masked values do not match, or a search would reveal them letter by
    letter. Indexes do not help then.

    `granted` are encrypted sessions that may be read; other encrypted ones are left out.

    `store` is the only one of these sessions, if they are of one. A store is asked, and named if it does not respond,
    only when the search comes to one of its sessions.

    Ends after settings.SEARCH_SCAN_SECONDS, finished or not. Raises Unsearchable and BadCursor.
    """
    started = time.monotonic()
    parsed = ParsedSearch.parse(search.text)
    if is_masked:
        parsed.refuse_exclusions()
    sessions = sessions.newest_first()
    resume = _read_cursor(search, sessions, cursor) if cursor else None
    reading, sessions = _searchable(parsed, sessions, size=size, is_masked=is_masked, granted=granted)
    known = _known_to_indexes(reading, sessions, resume, store)
    if known is None:
        last, within = _read_newest_first(reading, sessions, resume)
    else:
        last, within = _pick_known(reading, known), None
    slices = reading.slices
    if slices.note:
        reading.notes.append(slices.note)
    is_stopped = reading.is_stopped or (last is not None and len(reading.hits) < size)
    return MatchingSessions(
        found=_with_snippets(slices, reading.hits),
        # Where no session was read, it continues from the same place.
        older=_sign_cursor(search, sessions, last, within) if last else cursor if reading.is_stopped else "",
        is_stopped=is_stopped,
        is_from_index=known is not None,
        items_read=slices.items_read,
        sessions_read=reading.sessions_read,
        seconds=time.monotonic() - started,
        notes=reading.notes,
        without_index=stores_without_index(_indexable(slices, store)) if is_stopped else (),
    )


def _searchable(
    parsed: ParsedSearch,
    sessions: SessionRecordQuerySet,
    *,
    size: int,
    is_masked: bool,
    granted: Collection[UUID],
) -> tuple[SearchProgress, SessionRecordQuerySet]:
    """State of a new search, and the sessions that it reads: encrypted ones if granted, or if some items are plain."""
    has_encrypted = SessionRecord.objects.any_encrypted()
    encrypted = sessions.filter(is_encrypted=True)
    to_decrypt = (
        list(encrypted.filter(pk__in=granted).values_list("store_id", "session_id"))
        if granted and has_encrypted
        else []
    )
    progress = SearchProgress(size, SliceReader(parsed, SearchOrder.NEWEST_FIRST, is_masked, granted=to_decrypt))
    if parsed.note:
        progress.notes.append(parsed.note)
    if has_encrypted and encrypted.exclude(pk__in=granted).exists():
        progress.notes.append("Encrypted items are searched only if you have a grant for their session.")
    readable = ~SessionRecordQuerySet.unreadable_q()
    return progress, sessions.filter(readable | Q(pk__in=granted) if to_decrypt else readable)


def is_rare(store: SessionStore, parsed: ParsedSearch, *, seconds: float) -> bool:
    """True if an index returns all items sooner than reading finds a page of them. Raises StoreUnavailable."""
    index = backend_for(store).word_index
    frequency = index.frequency(parsed, seconds=seconds) if index else None
    return frequency is not None and frequency.item_count <= RARE * math.sqrt(frequency.of)


def _indexable(slices: SliceReader, store: SessionStore | None) -> Mapping[SessionStore, WordIndex]:
    """The searched stores with their indexes, ready or not; empty where reading items is the only way."""
    if slices.is_masked or slices.granted:
        return {}  # An index has masked values, and no decrypted items.
    stores = [store] if store else list(SessionStore.objects.by_name()[: INDEXED_STORES + 1])
    indexes = {each: index for each in stores if (index := backend_for(each).word_index)}
    return indexes if len(indexes) == len(stores) <= INDEXED_STORES else {}


def _known_to_indexes(
    reading: SearchProgress, sessions: SessionRecordQuerySet, resume: Resume | None, store: SessionStore | None
) -> list[tuple[SessionRecord, str]] | None:
    """The newest sessions of all stores with their newest hits, one more than fill the page. None if reading is quicker
    in a store, or if one does not respond in time.
    """
    slices = reading.slices
    indexes = _indexable(slices, store)
    if not indexes:
        return None
    known = list[tuple[SessionRecord, str]]()
    try:
        for each in indexes:
            rare = is_rare(each, slices.parsed, seconds=slices.seconds_for_one())
            reading.stores[each.pk] = each  # It responds.
            if not rare:
                return None
        for index in indexes.values():
            seconds = slices.seconds_for_one()
            known += index.newest_matches(
                slices.parsed, _beyond(sessions, resume), limit=reading.wanted + 1, seconds=seconds
            )
    except StoreUnavailable:
        return None  # Reading covers the newest at least, also if the statistics were wrong and it took too long.
    if len(indexes) > 1:
        known.sort(key=lambda hit: (hit[0].last_activity_at, hit[0].pk), reverse=True)
    return known


def _pick_known(reading: SearchProgress, known: Sequence[tuple[SessionRecord, str]]) -> SessionRecord | None:
    """Fills the page; returns its last session if there are more."""
    reading.hits = list(known[: reading.wanted])
    for record, _ in reading.hits:
        record.store = reading.stores[record.store_id]
    return reading.hits[-1][0] if len(known) > len(reading.hits) else None


def _read_newest_first(
    reading: SearchProgress, sessions: SessionRecordQuerySet, resume: Resume | None
) -> tuple[SessionRecord | None, Position | None]:
    """Fills the page; returns the last session that was read, and the place in it unless it was read to its end. None:
    all were read.
    """
    last: SessionRecord | None = None
    for record, look in _looks(reading, sessions, resume):
        while look and look.looked_to:
            within = look.looked_to
            look = _next_slice(reading, record, within)
            if look is None:
                reading.is_stopped = True
                return record, within
        if look is None:
            reading.is_stopped = True
            return last, None
        last = record
        reading.slices.has_got_on = True  # also beyond a session that is left out
        if record.store_id in reading.away:
            continue
        reading.sessions_read += 1
        if look.hit:
            reading.hits.append((record, look.hit.item_id))
        if len(reading.hits) == reading.wanted:
            return last, None
    return None, None


NOT_READ = SliceResult(None, None, 0)
"""Result for a session whose store does not respond."""


def _looks(
    reading: SearchProgress, sessions: SessionRecordQuerySet, resume: Resume | None
) -> Iterator[tuple[SessionRecord, SliceResult | None]]:
    """Every session with the newest match so far, in batches; the first of a page may begin further back.

    The first session that was not searched, because the time was over, comes with None.
    """
    if resume and resume.within:
        for record in _records(reading, sessions.filter(pk=resume.key[-1]), None, 1):
            yield record, _next_slice(reading, record, resume.within)
    # With a margin, because another batch takes longer than the last ones.
    size = reading.wanted * 6 // 5
    while batch := _records(reading, sessions, resume, size):
        started = time.monotonic()
        if reading.slices.is_over:
            yield batch[0], None
            return
        if len(batch) == 1:
            yield batch[0], _next_slice(reading, batch[0], None)
        else:
            try:
                looks = _quick_looks(reading, batch)
            except StoreTooSlow:
                # There are large items: session by session and item by item, until it is quick again.
                size = reading.slices.slice_items = 1
                continue
            for record in batch:
                look = looks.get(record.pk, NOT_READ)
                reading.slices.add(look)
                yield record, look
        resume = Resume([batch[-1].last_activity_at, batch[-1].pk], None)
        if time.monotonic() - started < SLICE_SECONDS:
            missing = reading.wanted - len(reading.hits)
            needed = missing * reading.sessions_read // max(len(reading.hits), 1) + 1
            size = min(max(needed, BATCH_SESSIONS[0]), 2 * size, BATCH_SESSIONS[-1])


def _quick_looks(reading: SearchProgress, batch: Sequence[SessionRecord]) -> dict[object, SliceResult]:
    """Results for the first items of several sessions, without those of stores that do not respond."""
    looks: dict[object, SliceResult] = {}
    for store in {record.store for record in batch if record.store_id not in reading.away}:
        records = [record for record in batch if record.store == store]
        starts = {record.session_id: None for record in records}
        try:
            found = reading.slices.look(store, starts, limit=QUICK_LOOK_ITEMS)
        except StoreTooSlow:
            raise
        except StoreUnavailable as away:
            reading.leave_out(store, away)
        else:
            looks |= {record.pk: found[record.session_id] for record in records}
    # Not before: if one of the stores is too slow, none of these results is used.
    reading.slices.has_got_on = True
    return looks


def _next_slice(reading: SearchProgress, record: SessionRecord, start: Position | None) -> SliceResult | None:
    """Result for one session beyond a place; None when the time was over before."""
    if record.store_id in reading.away:
        return NOT_READ
    try:
        return reading.slices.next_slice(record.store, record.session_id, start)
    except StoreUnavailable as away:
        reading.leave_out(record.store, away)
        return NOT_READ


def _with_snippets(slices: SliceReader, hits: Sequence[tuple[SessionRecord, str]]) -> list[MatchingSession]:
    by_store: dict[SessionStore, list[tuple[str, str]]] = {}
    for record, item_id in hits:
        by_store.setdefault(record.store, []).append((record.session_id, item_id))
    texts = {store: slices.beginnings(store, items) for store, items in by_store.items()}
    pattern = slices.parsed.visible_pattern()
    return [
        # An item that the agent took back in between has no text.
        MatchingSession(record, item_id, snippet(texts[record.store].get((record.session_id, item_id), ""), pattern))
        for record, item_id in hits
    ]


def _records(
    reading: SearchProgress, sessions: SessionRecordQuerySet, resume: Resume | None, limit: int
) -> list[SessionRecord]:
    """The next sessions, each with its store attached, without those of stores that did not respond before.

    One query, and two where a store comes up for the first time. There may be hundreds, so nothing else is joined.
    """
    if reading.away:
        sessions = sessions.exclude(store__in=reading.away)
    records = list(_beyond(sessions, resume)[:limit])
    reading.ask_new_stores({record.store_id for record in records})
    for record in records:
        record.store = reading.stores[record.store_id]
    return records


def _beyond(sessions: SessionRecordQuerySet, resume: Resume | None) -> SessionRecordQuerySet:
    return sessions.filter(beyond(sort_keys(sessions), KeyPosition("older", resume.key))) if resume else sessions


def _sign_cursor(
    search: TextSearch, sessions: SessionRecordQuerySet, record: SessionRecord, within: Position | None
) -> str:
    return sign_texts([*key_texts(record, sort_keys(sessions)), str(within or "")], _salt(search))


def _read_cursor(search: TextSearch, sessions: SessionRecordQuerySet, cursor: str) -> Resume:
    *texts, within = read_texts(cursor, _salt(search)) or [""]
    try:
        return Resume(key_from_texts(texts, sort_keys(sessions)), Position.parse(within) if within else None)
    except ValueError as problem:
        raise BadCursor from problem


def _salt(search: TextSearch) -> str:
    return f"search:{search.pk}"
