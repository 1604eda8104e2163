"""Keys of copies: one for each, stored with its row, wrapped by a key that only the settings have."""

from __future__ import annotations

import os

from cryptography.fernet import InvalidToken

from memadmin.derived_keys import derived_fernet

PURPOSE = "memadmin keys of access copies"

KEY_BYTES = 32


class CopyKeyUnreadable(Exception):
    def __init__(self) -> None:
        super().__init__(
            "The key of this copy cannot be decrypted: MEMADMIN_SECRET_KEY has changed since, and is not among"
            " MEMADMIN_OLD_SECRET_KEYS."
        )


def new_wrapped_key() -> bytes:
    return derived_fernet(PURPOSE).encrypt(os.urandom(KEY_BYTES))


def unwrapped(wrapped: bytes | memoryview) -> bytes:
    """The key itself. Raises CopyKeyUnreadable."""
    try:
        return derived_fernet(PURPOSE).decrypt(bytes(wrapped))
    except InvalidToken as problem:
        raise CopyKeyUnreadable from problem
