"""Evidence with the conversation around it: the message that is quoted, and the ones before and after it.

These are content of a session, read from its store for people who may read the session, with masked values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.models import User

from memadmin.web.masking import MASK
from memadmin.web.safe_text import write_out_invisible
from memories_app.models import Evidence
from sessions_app import access
from sessions_app.masked_reader import reader_for
from sessions_app.models import SessionRecord
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.timeline import build_timeline
from sessions_app.timeline.blocks import TextBlock
from sessions_app.timeline.events import Event, Message

ITEMS_AROUND = 60
"""Items that are read to find the messages before and after a quote: an agent may call a dozen tools in between."""

SHORT_CHARACTERS = 240
"""Length up to which a message is shown unfolded."""

LONG_CHARACTERS = 8_000
"""Maximum length of a message that is shown beside a quote, and of the quoted one."""

CHARACTERS_AROUND = 300
"""Characters of the quoted message before and after the quote."""

TELLING_CHARACTERS = 8
"""Length from which a part of a quote is marked by itself."""


@dataclass(frozen=True, slots=True)
class EvidenceMessage:
    """A message: speaker, time if known, and masked text."""

    item_id: str
    speaker: str
    at: datetime | None
    text: str
    is_cut: bool = False
    """Whether the message is longer than `text`."""

    @property
    def is_long(self) -> bool:
        return len(self.text) > SHORT_CHARACTERS

    @property
    def beginning(self) -> str:
        return self.text[:SHORT_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The quoted message, the messages before and after it, and the number of decrypted ones among them."""

    quoted: EvidenceMessage | None
    """None if the quote is a note about the message before it, or is not in the message any more."""
    before: EvidenceMessage | None
    after: EvidenceMessage | None
    marked: re.Pattern[str]
    decrypted_count: int = 0

    @property
    def shown(self) -> list[EvidenceMessage]:
        return [said for said in (self.before, self.quoted, self.after) if said]


def surroundings_of(evidence: Evidence, quote: str, record: SessionRecord, reader: User) -> Surroundings | None:
    """Surroundings of a masked quote whose session this reader may read; None without its item or its store.

    One request to the store, and two queries for a session with keys.
    """
    try:
        store = reader_for(record.store, opens=access.may_open(reader, record))
        page = store.beside(record.session_id, evidence.item_id, ITEMS_AROUND)
    except (UnknownItem, StoreUnavailable):
        return None
    timeline = build_timeline(page.items, starts_session=not page.has_earlier, ends_session=not page.has_later)
    events = [event for run in timeline.runs for event in run.events]
    place = next(index for index, event in enumerate(events) if evidence.item_id in event.held_item_ids)
    before = next(_messages(reversed(events[:place])), None)
    after = next(_messages(iter(events[place + 1 :])), None)
    said = next(_messages(iter(events[place : place + 1])), None)
    quoted = _around(said, pattern_of(quote)) if said and evidence.signal_id is None else None
    if evidence.signal_id is not None:
        # A note is about the message, and was not part of the conversation.
        before, after = said, None
    read = {said.item_id for said in (before, quoted, after) if said}
    opened = sum(item.id in read and item.seal is not None and item.seal.is_open for item in page.items)
    return Surroundings(quoted, shortened(before), shortened(after), marked_in(quote), opened)


def shortened(said: EvidenceMessage | None) -> EvidenceMessage | None:
    if said is None or len(said.text) <= LONG_CHARACTERS:
        return said
    return replace(said, text=said.text[:LONG_CHARACTERS], is_cut=True)


def pattern_of(quote: str) -> re.Pattern[str]:
    """Pattern of a quote in the visible text of its message, whatever white space is between its words."""
    return re.compile(r"\s+".join(re.escape(word) for word in write_out_invisible(quote).split()))


def marked_in(quote: str) -> re.Pattern[str]:
    """Pattern of what is marked of a quote: all of it, or its parts between masked values."""
    parts = MASK.split(quote)[:: MASK.groups + 1] if MASK.search(quote) else [quote]
    telling = [part for part in parts if len(part.strip()) >= TELLING_CHARACTERS] or [quote]
    return re.compile("|".join(pattern_of(part).pattern for part in telling))


def _messages(events: Iterator[Event]) -> Iterator[EvidenceMessage]:
    """Messages of people and assistants with text, in the order of the events."""
    for event in events:
        if isinstance(event, Message) and event.role in ("user", "assistant"):
            text = "\n".join(block.full for block in event.body if isinstance(block, TextBlock)).strip()
            if text:
                is_cut = event.item.shown is not None or not event.item.is_whole
                yield EvidenceMessage(
                    event.item.id, event.title, event.item.written_at, write_out_invisible(text), is_cut
                )


def _around(said: EvidenceMessage, pattern: re.Pattern[str]) -> EvidenceMessage | None:
    """The message, or of a long one the part around the quote; None if the quote is not in it."""
    found = pattern.search(said.text)
    if found is None:
        return None
    start, end = max(0, found.start() - CHARACTERS_AROUND), found.end() + CHARACTERS_AROUND
    part = said.text[start:end]
    return replace(said, text=f"{'… ' if start else ''}{part}{' …' if end < len(said.text) else ''}")
