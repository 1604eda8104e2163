"""Messages of a session for a distiller: the items that it has not read yet, and the notes on the session."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from hashlib import sha256

from django.conf import settings

from memories_app.learning.distillers.types import OPERATOR, RATING, SessionMessage, said_in
from memories_app.models import Distillation, Signal
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord
from sessions_app.stores.base import UnknownItem
from sessions_app.stores.sealed import sealed_backend_for

CONTEXT_ITEMS = 20
"""Number of earlier items that a distiller gets as context."""

ITEMS_A_PAGE = 200

NOTES = (Signal.Kind.FEEDBACK, Signal.Kind.RATING, Signal.Kind.OUTCOME)
"""Signals whose text is read. The text of others is the user's own, and is read in the session."""

MIDDLING_RATING = 3
"""Rating from 1 to 5 that is neither good nor bad."""


class UnreadItems:
    """The items of a session after those read before, or all; `last` is the id of the last one with its digest, after
    all were read."""

    def __init__(self, record: SessionRecord, earlier: Distillation | None) -> None:
        self._backend = sealed_backend_for(record.store, opens=settings.DISTIL_LOCKED)
        self._session_id = record.session_id
        self._context: Container[str] = ()
        self.last = (earlier.last_item_id, earlier.last_item_hash) if earlier else ("", "")
        items = self._behind(earlier) if earlier else None
        self.is_whole = items is None
        self._items = self._backend.every_item(self._session_id) if items is None else items

    def said(self) -> Iterator[SessionMessage]:
        return said_in(self._noting(self._items), context=self._context)

    def _noting(self, items: Iterable[StoredItem]) -> Iterator[StoredItem]:
        for item in items:
            self.last = (item.id, _digest(item))
            yield item

    def _behind(self, earlier: Distillation) -> Iterator[StoredItem] | None:
        """Items after the earlier ones; None if the last item is missing or replaced: then all items are read."""
        try:
            page = self._backend.page_around(self._session_id, earlier.last_item_id, 2 * CONTEXT_ITEMS)
        except UnknownItem:
            return None
        ids = [item.id for item in page.items]
        place = ids.index(earlier.last_item_id) if earlier.last_item_id in ids else -1
        if place < 0 or _digest(page.items[place]) != earlier.last_item_hash:
            return None
        self._context = set(ids[: place + 1])
        return self._from(page.items)

    def _from(self, items: Sequence[StoredItem]) -> Iterator[StoredItem]:
        while items:
            yield from items
            items = self._backend.page_after(self._session_id, items[-1].position, ITEMS_A_PAGE).items


def _digest(item: StoredItem) -> str:
    return sha256(item.raw.encode(errors="surrogatepass")).hexdigest()


def last_reading(record: SessionRecord) -> Distillation | None:
    done = Distillation.objects.filter(record_id=record.pk, outcome=Distillation.Outcome.DONE).exclude(last_item_id="")
    return done.order_by("-began_at").first()


def notes_on(record: SessionRecord, *, all_of_them: bool) -> Iterator[SessionMessage]:
    """Notes on a session and its items, all or those since the last distillation."""
    signals = Signal.objects.filter(record_id=record.pk, kind__in=NOTES).exclude(text="").order_by("created_at", "pk")
    for signal in signals if all_of_them else signals.filter(distilled_at__isnull=True):
        speaker = OPERATOR if signal.kind == Signal.Kind.FEEDBACK else RATING
        yield SessionMessage(
            signal.item_id, speaker, signal.text, signal.created_at, signal.pk, verdict=_verdict(signal)
        )


def _verdict(signal: Signal) -> int:
    """-1 for bad, 1 for good, 0 for neither."""
    value = signal.value or 0
    if signal.kind != Signal.Kind.RATING or value <= 0:
        return value
    return -1 if value < MIDDLING_RATING else 1 if value > MIDDLING_RATING else 0
