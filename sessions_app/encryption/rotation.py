"""Sealing anew: the same words at the same time, under another key."""

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
    """Where an item stands on the way from one key to another."""

    PLAIN = "plain"
    """No envelope; not ours to seal."""
    OLD = "old"
    NEW = "new"
    UNREADABLE = "unreadable"
    """Neither key opens it."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """From one key to another, in one session. Items have to be whole."""

    old: Fernet
    new: Fernet

    @classmethod
    def of(cls, old: SessionKey, new: SessionKey, wrapper_id: str) -> Rotation:
        return cls(old.cipher(wrapper_id), new.cipher(wrapper_id))

    def standing(self, item: StoredItem) -> ItemKeyState:
        entry = _envelope(item)
        if entry is None:
            return ItemKeyState.PLAIN
        token = _token(entry)
        for standing, cipher in ((ItemKeyState.NEW, self.new), (ItemKeyState.OLD, self.old)):
            try:
                cipher.extract_timestamp(token)
            except InvalidToken:
                continue
            return standing
        return ItemKeyState.UNREADABLE

    def resealed(self, item: StoredItem) -> str:
        """The stored text of an item of the old key under the new one: nothing in it changes but the token.

        The token keeps its time, so agents hide it when they would have. Looked at before it is given back.
        """
        entry = _envelope(item)
        assert entry is not None
        token = _token(entry)
        fresh = MultiFernet([self.new, self.old]).rotate(token)
        assert self.new.decrypt(fresh) == self.old.decrypt(token)
        assert self.new.extract_timestamp(fresh) == self.old.extract_timestamp(token)
        return with_token(item, entry, fresh)


def with_token(item: StoredItem, envelope: DecodedItem, fresh: bytes) -> str:
    """The stored text of an envelope with another token in it, and nothing else changed."""
    before, after = text_in(envelope.fields, "payload"), fresh.decode()
    if item.raw.count(before) == 1:
        return item.raw.replace(before, after)
    # Somebody has written the envelope with escapes in it.
    return json.dumps({**envelope.fields, "payload": after}, separators=(",", ":"))


def _envelope(item: StoredItem) -> DecodedItem | None:
    assert item.is_whole
    if ENVELOPE_MEMBER not in item.raw:
        return None
    entry = decode(item)
    return entry if entry.is_envelope else None


def _token(entry: DecodedItem) -> bytes:
    return text_in(entry.fields, "payload").encode()
