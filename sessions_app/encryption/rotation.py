"""Re-encryption: the same text and time, under another key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from sessions_app.encryption.keys import SessionKey
from sessions_app.encryption.sealing import SessionSeals
from sessions_app.items import StoredItem
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.encryption import ENVELOPE_MEMBER
from sessions_app.timeline.values import text_in


class ItemKeyState(StrEnum):
    """State of an item during the rotation from one key to another."""

    PLAIN = "plain"
    """No envelope; it is not ours to encrypt."""
    OLD = "old"
    NEW = "new"
    OF_SUBJECT = "of_subject"
    """Encrypted with the key of its subject, which the rotation of a store's key does not change."""
    UNREADABLE = "unreadable"
    """Neither key opens it."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """Rotation from one key to another, in one session. Items have to be whole."""

    old: Fernet
    new: Fernet
    of_subject: Callable[[], Iterable[Fernet]] = tuple
    """Called for items that neither key opens."""

    @classmethod
    def of(cls, old: SessionKey, new: SessionKey, seals: SessionSeals) -> Rotation:
        return cls(old.cipher(seals.wrapper_id), new.cipher(seals.wrapper_id), lambda: seals.ciphers_of_subject)

    def key_state(self, item: StoredItem) -> ItemKeyState:
        entry = _envelope(item)
        if entry is None:
            return ItemKeyState.PLAIN
        token = _token(entry)
        for state, cipher in self._ciphers():
            try:
                cipher.extract_timestamp(token)
            except InvalidToken:
                continue
            return state
        return ItemKeyState.UNREADABLE

    def _ciphers(self) -> Iterator[tuple[ItemKeyState, Fernet]]:
        yield ItemKeyState.NEW, self.new
        yield ItemKeyState.OLD, self.old
        for cipher in self.of_subject():
            yield ItemKeyState.OF_SUBJECT, cipher

    def resealed(self, item: StoredItem) -> str:
        """The stored text of an item of the old key under the new one: only the token differs.

        The token keeps its time, so it expires for agents when it would have. It is checked before it is returned.
        """
        entry = _envelope(item)
        assert entry is not None
        token = _token(entry)
        fresh = MultiFernet([self.new, self.old]).rotate(token)
        assert self.new.decrypt(fresh) == self.old.decrypt(token)
        assert self.new.extract_timestamp(fresh) == self.old.extract_timestamp(token)
        return with_token(item, entry, fresh)


def with_token(item: StoredItem, envelope: DecodedItem, fresh: bytes) -> str:
    """The stored text of an envelope with another token, and nothing else changed."""
    before, after = text_in(envelope.fields, "payload"), fresh.decode()
    if item.raw.count(before) == 1:
        return item.raw.replace(before, after)
    # The envelope was written with escapes in it.
    return json.dumps({**envelope.fields, "payload": after}, separators=(",", ":"))


def _envelope(item: StoredItem) -> DecodedItem | None:
    assert item.is_whole
    if ENVELOPE_MEMBER not in item.raw:
        return None
    entry = decode(item)
    return entry if entry.is_envelope else None


def _token(entry: DecodedItem) -> bytes:
    return text_in(entry.fields, "payload").encode()
