"""Replacing the text in an envelope, with the same key and the same time."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.fernet import Fernet, InvalidToken

from sessions_app.encryption.rotation import with_token
from sessions_app.encryption.sealing import SessionSeals
from sessions_app.items import StoredItem
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.encryption import ENVELOPE_MEMBER
from sessions_app.timeline.values import text_in


@dataclass(frozen=True, slots=True)
class DecryptedItem:
    """An item as agents read it, with the way back."""

    item: StoredItem
    text: str = field(repr=False)
    _envelope: DecodedItem | None = field(default=None, repr=False)
    _cipher: Fernet | None = field(default=None, repr=False)

    def stored_with(self, text: str) -> str:
        """The text to store so that agents read this one: encrypted as before, at its old place, and expiring when it
        would.
        """
        if self._cipher is None or self._envelope is None:
            return text
        token = text_in(self._envelope.fields, "payload").encode()
        fresh = self._cipher.encrypt_at_time(text.encode(), self._cipher.extract_timestamp(token))
        assert self._cipher.decrypt(fresh).decode() == text
        return with_token(self.item, self._envelope, fresh)


def decrypt_for_rewrite(item: StoredItem, seals: SessionSeals) -> DecryptedItem | None:
    """A whole item, decrypted with any loaded key; None if it is encrypted and no key opens it."""
    assert item.is_whole
    if ENVELOPE_MEMBER not in item.raw:
        return DecryptedItem(item, item.raw)
    entry = decode(item)
    if not entry.is_envelope:
        return DecryptedItem(item, item.raw)
    token = text_in(entry.fields, "payload").encode()
    for cipher in seals.ciphers():
        try:
            return DecryptedItem(item, cipher.decrypt(token).decode(), entry, cipher)
        except (InvalidToken, UnicodeDecodeError):
            continue
    return None
