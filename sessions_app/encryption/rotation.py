"""Re-encryption: the same text and time, under another key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from sessions_app.encryption.keys import SessionKey
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
    UNREADABLE = "unreadable"
    """Neither key opens it."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """Rotation from one key to another, in one session. Items have to be whole."""

    old: Fernet
    new: Fernet

    @classmethod
    def of(cls, old: SessionKey, new: SessionKey, wrapper_id: str) -> Rotation:
        return cls(old.cipher(wrapper_id), new.cipher(wrapper_id))

    def key_state(self, item: StoredItem) -> ItemKeyState:
        entry = _envelope(item)
        if entry is None:
            return ItemKeyState.PLAIN
        token = _token(entry)
        for state, cipher in ((ItemKeyState.NEW, self.new), (ItemKeyState.OLD, self.old)):
            try:
                cipher.extract_timestamp(token)
            except InvalidToken:
                continue
            return state
        return ItemKeyState.UNREADABLE

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
