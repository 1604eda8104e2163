"""Search in messages: sessions with a match, newest first.

There are two methods. For rare words an index returns all items at once, because they are few. For common
words, and without an index, sessions are read from the newest on until a page is full or the time is over:
a common word fills the page within the first of them. The planner's statistics decide which is quicker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
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
from sessions_app.search.slices import SLICE_SECONDS, SliceReader
from sessions_app.search.snippets import Snippet, snippet
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreTooSlow, StoreUnavailable
from sessions_app.stores.circuit_breaker import ask_all
from sessions_app.stores.search_protocol import SearchOrder, SliceResult

RARE = 10
"""A word is rare up to this many times the square root of all items: an index returns n items in time to n, and
reading newest first finds a page of them in time to items / n. At a million items both take about 60 ms at 10,000.
"""

BATCH_SESSIONS = range(20, 321)
"""Number of sessions searched together: about as many as still fill the page."""

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
    seconds: float = 0
    notes: Sequence[str] = ()
    """Sentences about stores and items that could not be searched."""

    @property
    def effort(self) -> str:
        """The extent of the search as a sentence; empty when it is complete thanks to an index."""
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
    """The state of a search that reads sessions from the newest on."""

    wanted: int
    slices: SliceReader
    stores: dict[int, SessionStore]
    """Stores that respond, by id."""
    are_all_rare: bool
    """True if an index is quicker in all of these stores."""
    notes: list[str]
    """Sentences about what is not searched."""
    hits: list[tuple[SessionRecord, str]] = field(default_factory=list)
    """Sessions with the id of their newest matching item."""
    sessions_read: int = 0


def matching_sessions(
    search: TextSearch,
    sessions: SessionRecordQuerySet,
    *,
    cursor: str = "",
    size: int = 50,
    is_masked: bool,
    granted: Collection[UUID] = (),
    stores: Iterable[SessionStore] = (),
) -> MatchingSessions:
    """Those of `sessions` that contain the words of a search.

    For a user who reads masked text (`is_masked`) masked values do not match, or a search would reveal them letter by
    letter. Indexes do not help then.

    `granted` are encrypted sessions that may be read; other encrypted ones are left out.

    `stores` are all of them, if the caller has read them already.

    Ends after settings.SEARCH_SCAN_SECONDS, finished or not. Raises Unsearchable and BadCursor.
    """
    started = time.monotonic()
    parsed = ParsedSearch.parse(search.text)
    if is_masked:
        parsed.refuse_exclusions()
    sessions = sessions.newest_first()
    resume = _read_cursor(search, sessions, cursor) if cursor else None
    reading, sessions = _searchable(
        parsed, sessions, stores or SessionStore.objects.all(), size=size, is_masked=is_masked, granted=granted
    )
    known = _known_to_indexes(reading, sessions, resume) if reading.are_all_rare else None
    if known is None:
        # Only these stores: another may have been connected meanwhile.
        last, within = _read_newest_first(reading, sessions.filter(store__in=reading.stores), resume)
    else:
        last, within = _pick_known(reading, known), None
    slices = reading.slices
    if slices.note:
        reading.notes.append(slices.note)
    return MatchingSessions(
        found=_with_snippets(slices, reading.hits),
        older=_sign_cursor(search, sessions, last, within) if last else "",
        is_stopped=last is not None and len(reading.hits) < size,
        items_read=slices.items_read,
        sessions_read=reading.sessions_read,
        seconds=time.monotonic() - started,
        notes=reading.notes,
    )


def _searchable(
    parsed: ParsedSearch,
    sessions: SessionRecordQuerySet,
    stores: Iterable[SessionStore],
    *,
    size: int,
    is_masked: bool,
    granted: Collection[UUID],
) -> tuple[SearchProgress, SessionRecordQuerySet]:
    """State of a new search, and the sessions that it reads: of stores that respond, encrypted ones if granted."""
    has_encrypted = SessionRecord.objects.any_encrypted()
    encrypted, plain = sessions.filter(is_encrypted=True), Q(is_encrypted=False)
    to_decrypt = (
        list(encrypted.filter(pk__in=granted).values_list("store_id", "session_id"))
        if granted and has_encrypted
        else []
    )
    slices = SliceReader(parsed, SearchOrder.NEWEST_FIRST, is_masked, granted=to_decrypt)
    are_rare, notes = _asked_first(stores, slices, by_index=not is_masked and not to_decrypt)
    if notes:
        sessions, encrypted = (each.filter(store__in=are_rare) for each in (sessions, encrypted))
    if parsed.note:
        notes.append(parsed.note)
    if has_encrypted and encrypted.exclude(pk__in=granted).exists():
        notes.append("Encrypted sessions are searched only if you have a grant for them.")
    progress = SearchProgress(size, slices, {store.pk: store for store in are_rare}, all(are_rare.values()), notes)
    return progress, sessions.filter(plain | Q(pk__in=granted) if to_decrypt else plain)


def _asked_first(
    stores: Iterable[SessionStore], slices: SliceReader, *, by_index: bool
) -> tuple[dict[SessionStore, bool], list[str]]:
    """The stores that respond, each with whether an index is quicker, and sentences about the others."""
    answers = ask_all({store: partial(_ask_first, store, slices, by_index=by_index) for store in stores})
    away = {store: answer for store, answer in answers.items() if isinstance(answer, StoreUnavailable)}
    notes = [f"{store} could not be searched. {answer}" for store, answer in away.items()]
    return {store: answer for store, answer in answers.items() if not isinstance(answer, StoreUnavailable)}, notes


def _ask_first(store: SessionStore, slices: SliceReader, *, by_index: bool) -> bool:
    """True if an index is quicker. Reading the statistics also shows whether the store responds at all.

    Raises StoreUnavailable.
    """
    if by_index and backend_for(store).word_index:
        try:
            return is_rare(store, slices.parsed, seconds=slices.seconds_for_one())
        except StoreTooSlow:
            return False  # It is there, and may be read.
    backend_for(store).search.raise_if_away()
    return False


def is_rare(store: SessionStore, parsed: ParsedSearch, *, seconds: float) -> bool:
    """True if an index returns all items sooner than reading finds a page of them. Raises StoreUnavailable."""
    index = backend_for(store).word_index
    frequency = index.frequency(parsed, seconds=seconds) if index else None
    return frequency is not None and frequency.item_count <= RARE * math.sqrt(frequency.of)


def _known_to_indexes(
    reading: SearchProgress, sessions: SessionRecordQuerySet, resume: Resume | None
) -> list[tuple[SessionRecord, str]] | None:
    """The newest sessions of all stores with their newest hits, one more than fill the page."""
    slices, known = reading.slices, list[tuple[SessionRecord, str]]()
    try:
        for store in reading.stores.values():
            index = backend_for(store).word_index
            assert index, "a word is rare only if an index exists"
            seconds = slices.seconds_for_one()
            known += index.newest_matches(
                slices.parsed, _beyond(sessions, resume), limit=reading.wanted + 1, seconds=seconds
            )
    except StoreUnavailable:
        return None  # The statistics were wrong and it took too long; reading at least covers the newest.
    if len(reading.stores) > 1:
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
            look = reading.slices.next_slice(record.store, record.session_id, within)
            if look is None:
                return record, within
        if look is None:
            return last, None
        reading.sessions_read += 1
        last = record
        if look.hit:
            reading.hits.append((record, look.hit.item_id))
        if len(reading.hits) == reading.wanted:
            return last, None
    return None, None


def _looks(
    reading: SearchProgress, sessions: SessionRecordQuerySet, resume: Resume | None
) -> Iterator[tuple[SessionRecord, SliceResult | None]]:
    """Every session with the newest match so far, in batches; the first of a page may begin further back.

    The first session that was not searched, because the time was over, comes with None.
    """
    if resume and resume.within:
        for record in _records(reading, sessions.filter(pk=resume.key[-1]), None, 1):
            yield record, reading.slices.next_slice(record.store, record.session_id, resume.within)
    # With a margin, because another batch takes longer than the last ones.
    size = reading.wanted * 6 // 5
    while batch := _records(reading, sessions, resume, size):
        started = time.monotonic()
        if len(batch) == 1 or reading.slices.is_over:
            yield batch[0], reading.slices.next_slice(batch[0].store, batch[0].session_id, None)
        else:
            try:
                looks = _quick_looks(reading.slices, batch)
            except StoreTooSlow:
                # There are large items: session by session and item by item, until it is quick again.
                size = reading.slices.slice_items = 1
                continue
            for record in batch:
                look = looks[record.pk]
                reading.slices.items_read += look.item_count
                yield record, look
        resume = Resume([batch[-1].last_activity_at, batch[-1].pk], None)
        if time.monotonic() - started < SLICE_SECONDS:
            missing = reading.wanted - len(reading.hits)
            needed = missing * reading.sessions_read // max(len(reading.hits), 1) + 1
            size = min(max(needed, BATCH_SESSIONS[0]), 2 * size, BATCH_SESSIONS[-1])


def _quick_looks(slices: SliceReader, batch: Sequence[SessionRecord]) -> dict[object, SliceResult]:
    looks: dict[object, SliceResult] = {}
    for store in {record.store for record in batch}:
        starts = {record.session_id: None for record in batch if record.store == store}
        found = slices.look(store, starts, limit=QUICK_LOOK_ITEMS)
        looks |= {record.pk: found[record.session_id] for record in batch if record.store == store}
    slices.has_got_on = True
    return looks


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
    """The next sessions, each with its store attached. One query: there may be hundreds, so nothing else is joined."""
    records = list(_beyond(sessions, resume)[:limit])
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
