"""Keys of copies: one for each, stored with its row, wrapped by a key that only the settings have."""

from __future__ import annotations

import os

from memadmin.derived_keys import decrypted, derived_fernet

PURPOSE = "memadmin keys of access copies"

KEY_BYTES = 32


def new_wrapped_key() -> bytes:
    return derived_fernet(PURPOSE).encrypt(os.urandom(KEY_BYTES))


def unwrapped(wrapped: bytes | memoryview) -> bytes:
    """The key itself. Raises SecretKeyChanged."""
    return decrypted(wrapped, PURPOSE, what="The key of this copy")
