"""Search in one session: the next and the previous match."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.items import Position
from sessions_app.models import SessionStore
from sessions_app.search.sessions import is_rare
from sessions_app.search.slices import SliceReader
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreTooSlow
from sessions_app.stores.search_protocol import READ_CHARACTERS, Hit, SearchOrder


@dataclass(frozen=True, slots=True)
class Find:
    """Result of a step through a session: an item, or the place where the time was over, or neither at the session's
    end.
    """

    found: Hit | None = None
    searched_to: Position | None = None
    note: str = ""
    """Sentences about items that were skipped, or searched in part."""
    is_from_index: bool = False

    @property
    def extent(self) -> str:
        """A sentence about what an index does not contain; empty where items were read, as `note` reports those."""
        if not self.is_from_index:
            return ""
        return f"The search index has the first {READ_CHARACTERS:,} characters of each item."

    @property
    def item_id(self) -> str:
        """The id of the matching item, empty without one."""
        return self.found.item_id if self.found else ""


def find_in_session(
    store: SessionStore,
    session_id: str,
    parsed: ParsedSearch,
    *,
    after: Position | None = None,
    before: Position | None = None,
    is_masked: bool,
    opens: bool = False,
) -> Find:
    """The first matching item after a place, or the last one before another; of the whole session without either.

    For a user who reads masked text (`is_masked`) masked values do not match; Unsearchable is raised if leaving out
    words would reveal one. An index does not help then.

    `opens` if the user may read encrypted items of the session: then they are decrypted and searched; no index has
    them.

    Ends after settings.SEARCH_SCAN_SECONDS; `searched_to` is then the place to continue from. Raises StoreUnavailable.
    """
    assert not (after and before), "a step goes in one direction"
    order = SearchOrder.NEWEST_FIRST if before else SearchOrder.OLDEST_FIRST
    place = before or after
    reader = SliceReader(parsed, order, is_masked, granted=[(store.pk, session_id)] if opens else ())
    index = None if opens else backend_for(store).word_index
    if is_masked:
        parsed.refuse_exclusions()
    elif index:
        try:
            if is_rare(store, parsed, seconds=reader.seconds_for_one()):
                seconds = reader.seconds_for_one()
                hit = index.next_match(parsed, session_id, place, order=order, seconds=seconds)
                return Find(hit, is_from_index=True)
        except StoreTooSlow:
            pass  # Rare words in large items; reading stops at any of them.
    while look := reader.next_slice(store, session_id, place):
        place = look.looked_to
        if place is None:
            return Find(look.hit, note=reader.note)
    return Find(searched_to=place, note=reader.note)
