"""Keys of copies: one for each, stored with its row, wrapped by a key that only the settings have."""

from __future__ import annotations

import base64
import os

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

KEY_BYTES = 32


class CopyKeyUnreadable(Exception):
    def __init__(self) -> None:
        super().__init__(
            "The key of this copy cannot be decrypted: MEMADMIN_SECRET_KEY has changed since, and is not among"
            " MEMADMIN_OLD_SECRET_KEYS."
        )


def new_wrapped_key() -> bytes:
    return _wrapping().encrypt(os.urandom(KEY_BYTES))


def unwrapped(wrapped: bytes | memoryview) -> bytes:
    """The key itself. Raises CopyKeyUnreadable."""
    try:
        return _wrapping().decrypt(bytes(wrapped))
    except InvalidToken as problem:
        raise CopyKeyUnreadable from problem


def _wrapping() -> MultiFernet:
    return MultiFernet([_fernet(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _fernet(secret: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"memadmin keys of access copies")
    return Fernet(base64.urlsafe_b64encode(derived.derive(secret.encode())))
