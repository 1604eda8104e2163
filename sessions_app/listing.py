"""Rows of session lists: the registry row, and a preview read live from its store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.utils.timesince import timeuntil

from memadmin.accounts.grants.services import granted_records
from memadmin.counting import capped, noun_for
from memadmin.web.templatetags.memadmin import tagx
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.search.sessions import MatchingSession
from sessions_app.stores import backend_for
from sessions_app.stores.base import PREVIEW_CHARACTERS, SessionPreview, StoreUnavailable
from sessions_app.stores.circuit_breaker import ask_all
from sessions_app.stores.kinds import kind_of, limits_of


@dataclass(frozen=True, slots=True)
class ListedSession:
    """One row. Text of others is not escaped yet; everything else is ready for display."""

    record: SessionRecord
    preview: SessionPreview | None
    """None if the store did not respond: then nothing is known, and a count is not zero."""
    address: str
    names: str
    """Subject, ticket and agent, as far as they are known."""
    match: MatchingSession | None = None
    """Match of the search of the list."""
    store_tag: str = ""
    """Name of its store, as HTML."""
    about_store: str = ""
    """Description of its store and of its limits, as sentences."""
    is_locked: bool = False
    """Whether reading needs a grant that the user does not have; then nothing of it was read."""

    @property
    def id(self) -> str:
        return str(self.record.pk)

    @property
    def labels(self) -> list[str]:
        return self.record.labels

    @property
    def finding_count(self) -> int:
        return self.record.finding_count

    @property
    def is_away(self) -> bool:
        return self.preview is None and not self.is_locked

    @property
    def is_gone(self) -> bool:
        """Whether it was in its store and is no longer; False for one that was only registered."""
        is_there = self.preview is None or self.preview.item_count is not None
        return not is_there and bool(self.record.missing_since or self.record.activity_count)

    @property
    def about(self) -> str:
        """Store description, plus the session's expiry if it has one."""
        expires_at = self.preview.expires_at if self.preview else None
        return (
            f"{self.about_store} This session expires in {timeuntil(expires_at)}." if expires_at else self.about_store
        )

    @property
    def why_gone(self) -> str:
        if self.record.has_run_out:
            return "No longer in the store: the session expired there"
        return "No longer in the store: an agent cleared it or it was removed there"

    @property
    def is_encrypted(self) -> bool:
        return self.record.is_encrypted or bool(self.preview and self.preview.is_encrypted)

    @property
    def is_remarkable(self) -> bool:
        """Whether the row needs any mark; most do not."""
        return (
            self.is_away or self.is_gone or self.is_encrypted or self.record.is_locked or self.record.finding_count > 0
        )

    @property
    def item_count(self) -> int | None:
        """Number of items, up to the largest that is counted; None if unknown."""
        return None if self.preview is None else self.preview.item_count or 0

    @property
    def items(self) -> str:
        """Number of items for display, as far as they are counted."""
        return capped(self.item_count)

    @property
    def extent(self) -> str:
        """Number of items in words."""
        return f"{self.items} {noun_for(self.item_count, 'items')}"

    @property
    def words(self) -> str:
        """First words of a user, if there are any to show."""
        return self.preview.first_user_text if self.preview else ""

    @property
    def why_no_words(self) -> str:
        if self.is_locked:
            return "Locked: first words need a grant"
        if self.is_encrypted and not self.record.has_plain_items:
            return "Encrypted: first words are not readable"
        if not self.preview:
            return f"First words unknown: {self.record.store} is not responding"
        if self.is_gone and self.record.has_run_out:
            return f"Gone: expired in {self.record.store}"
        if self.is_gone:
            return f"Gone: no longer in {self.record.store}"
        if not self.preview.is_readable:
            return "First items are not readable"
        return "No user message at the start" if self.preview.item_count else "No items"


def with_previews(
    records: Iterable[SessionRecord],
    *,
    reader: User,
    stores: Iterable[SessionStore] = (),
    subjects: Iterable[Subject] = (),
) -> list[ListedSession]:
    """Rows for the sessions in the given order. One request to each of their stores.

    One query each for subjects and for stores that are not passed, and two if any session is locked.
    """
    records = list(records)
    by_id = {store.pk: store for store in stores}
    by_id |= SessionStore.objects.in_bulk({record.store_id for record in records} - by_id.keys())
    for record in records:
        record.store = by_id[record.store_id]
    labels = {subject.pk: subject.label for subject in subjects}
    named = {record.subject_id for record in records if record.subject_id}
    labels |= Subject.objects.labels(named - labels.keys())
    locked = {record.pk for record in records if record.is_locked}
    locked -= granted_records(reader) if locked else set()
    readable = [record for record in records if record.pk not in locked]
    masker = Masker()
    previews = previews_of(by_id.values(), readable, masker)
    tags = {store_id: tagx(kind_of(store).icon, store.name) for store_id, store in by_id.items()}
    about = {store_id: about_store(store) for store_id, store in by_id.items()}
    return [
        ListedSession(
            record,
            previews.get(record.store_id, {}).get(record.session_id),
            address=record.get_absolute_url(),
            names=names_of(record, labels),
            is_locked=record.pk in locked,
            store_tag=tags[record.store_id],
            about_store=about[record.store_id],
        )
        for record in records
    ]


def about_store(store: SessionStore) -> str:
    return f"{kind_of(store).label}. {' '.join(limits_of(store))}".strip()


def previews_of(
    stores: Iterable[SessionStore], records: Iterable[SessionRecord], masker: Masker
) -> dict[int, dict[str, SessionPreview]]:
    """Previews by store and session id; empty for a store that does not respond."""
    wanted: dict[int, list[str]] = {}
    for record in records:
        wanted.setdefault(record.store_id, []).append(record.session_id)
    answers = ask_all(
        {store: partial(read_previews, store, wanted[store.pk]) for store in stores if store.pk in wanted}
    )
    return {
        store.pk: {session_id: masked(preview, masker) for session_id, preview in answer.items()}
        for store, answer in answers.items()
        if not isinstance(answer, StoreUnavailable)
    }


def read_previews(store: SessionStore, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
    return backend_for(store).previews(session_ids)


def masked(preview: SessionPreview, masker: Masker) -> SessionPreview:
    """A preview with its words masked before they are cut to the length of a list."""
    words = masker.text(preview.first_user_text)
    if len(words) > PREVIEW_CHARACTERS:
        words = words[: PREVIEW_CHARACTERS - 1].rstrip() + "…"
    return preview if words == preview.first_user_text else replace(preview, first_user_text=words)


def names_of(record: SessionRecord, labels: Mapping[UUID, str]) -> str:
    subject = labels.get(record.subject_id, "") if record.subject_id else "No subject"
    return " · ".join(filter(None, [subject, record.ticket or "no ticket", record.agent]))


def with_snippets(
    matches: Sequence[MatchingSession], *, reader: User, stores: Iterable[SessionStore], subjects: Iterable[Subject]
) -> list[ListedSession]:
    """Rows for the matches of a search."""
    listed = with_previews((match.record for match in matches), reader=reader, stores=stores, subjects=subjects)
    return [replace(session, match=match) for session, match in zip(listed, matches, strict=True)]
