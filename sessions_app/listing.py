"""What a list shows of each session: the registry row, and a preview read live from its store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from memadmin.accounts.grants.verbs import granted_records
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.search.sessions import MatchingSession
from sessions_app.stores import backend_for
from sessions_app.stores.base import Preview, StoreUnavailable


@dataclass(frozen=True, slots=True)
class ListedSession:
    record: SessionRecord
    preview: Preview | None
    """None when the store did not answer: then nothing is known, and a count is not zero."""
    match: MatchingSession | None = None
    """Where in it the words were said that the list was searched for."""
    is_locked: bool = False
    """Whether reading takes a grant that the reader does not hold; then nothing of it was read."""

    @property
    def is_away(self) -> bool:
        return self.preview is None and not self.is_locked

    @property
    def is_encrypted(self) -> bool:
        return self.record.is_encrypted or bool(self.preview and self.preview.is_encrypted)

    @property
    def is_remarkable(self) -> bool:
        """Whether the row needs any mark at all; most do not."""
        return self.is_away or self.is_encrypted or self.record.is_locked or self.record.finding_count > 0

    @property
    def item_count(self) -> int | None:
        """As far as items are counted; None when that is not known."""
        return None if self.preview is None else self.preview.item_count or 0

    @property
    def words(self) -> str:
        """The first words of a user, if there are any to show."""
        return "" if self.is_encrypted or not self.preview else self.preview.first_user_text

    @property
    def why_no_words(self) -> str:
        if self.is_locked:
            return "Locked, first words are not readable without a grant"
        if self.is_encrypted:
            return "Encrypted, first words are not readable"
        if not self.preview:
            return f"First words unknown, {self.record.store} does not answer"
        return "No words of a user at the start" if self.preview.item_count else "Nothing stored in it"


def with_previews(records: Iterable[SessionRecord], *, reader: User) -> list[ListedSession]:
    """The sessions in the order given. One question to each store among them; two queries more where any is locked."""
    records = list(records)
    locked = {record.pk for record in records if record.is_locked}
    locked -= granted_records(reader) if locked else set()
    by_store: dict[SessionStore, list[SessionRecord]] = defaultdict(list)
    for record in records:
        if record.pk not in locked:
            by_store[record.store].append(record)
    previews: dict[SessionRecord, Preview] = {}
    for store, neighbours in by_store.items():
        try:
            answers = backend_for(store).previews([record.session_id for record in neighbours])
        except StoreUnavailable:
            continue
        previews |= {record: answers[record.session_id] for record in neighbours}
    return [ListedSession(record, previews.get(record), is_locked=record.pk in locked) for record in records]


def with_snippets(matches: Sequence[MatchingSession], *, reader: User) -> list[ListedSession]:
    """The same for what a search found."""
    listed = with_previews((match.record for match in matches), reader=reader)
    return [replace(session, match=match) for session, match in zip(listed, matches, strict=True)]
