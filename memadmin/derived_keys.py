"""Keys that are derived from MEMADMIN_SECRET_KEY and MEMADMIN_OLD_SECRET_KEYS: different ones for each purpose."""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

KEY_BYTES = 32


class SecretKeyChanged(Exception):
    """The secret key that something was encrypted under is no longer in the settings."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} cannot be decrypted: MEMADMIN_SECRET_KEY has changed since, and is not among"
            " MEMADMIN_OLD_SECRET_KEYS."
        )


def derived_keys(purpose: str) -> list[bytes]:
    """The key of 32 bytes that is written with, then those of older secret keys, which are only read with."""
    return [_derived(secret, purpose) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def derived_fernet(purpose: str) -> MultiFernet:
    """Encrypts with the present key, and decrypts with each of `derived_keys`."""
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived_keys(purpose)])


def decrypted(encrypted: bytes | memoryview, purpose: str, *, what: str) -> bytes:
    """Plaintext of a value that `derived_fernet` of this purpose encrypted. Raises SecretKeyChanged with a sentence
    about `what`.
    """
    try:
        return derived_fernet(purpose).decrypt(bytes(encrypted))
    except InvalidToken as problem:
        raise SecretKeyChanged(what) from problem


@lru_cache(maxsize=64)
def _derived(secret: str, purpose: str) -> bytes:
    return HKDF(SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(secret.encode())
