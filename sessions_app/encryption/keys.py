"""One key of the keyring, interpreted exactly as the SDK does."""

from __future__ import annotations

import base64
import re
from typing import NoReturn

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memadmin.client.master_key import KEY_BYTES, master_key

DERIVED_FOR = b"agents.session-store.hkdf.v1"

_LIKE_BASE64 = re.compile(r"[A-Za-z0-9_+/-]{16,}={0,2}")


class SessionKey:
    """A master key, from which the key of each session is derived. It has no printable or pickled form."""

    __slots__ = ("_master", "name")

    def __init__(self, name: str, text: str) -> None:
        """Raises UnusableKey."""
        self.name = name
        self._master = master_key(text)

    def cipher(self, session_id: str) -> Fernet:
        """The cipher of `EncryptedSession(session_id, ...)`. Takes about 10 microseconds."""
        derive = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=session_id.encode(), info=DERIVED_FOR)
        return Fernet(base64.urlsafe_b64encode(derive.derive(self._master)))

    def is_same_as(self, other: SessionKey) -> bool:
        return self._master == other._master

    def __repr__(self) -> str:
        return f"<session key {self.name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A session key cannot be serialised.")


def doubt_about(text: str) -> str:
    """Doubt about a usable key that looks like another one, as the end of a sentence; empty if there is none.

    Agents with exactly the same text use the same key all the same.
    """
    try:
        decoded = base64.urlsafe_b64decode(text)
    except ValueError:
        decoded = b""
    if len(decoded) == KEY_BYTES:
        return ""
    if _LIKE_BASE64.fullmatch(text):
        bare = text.rstrip("=")
        if len(bare) == 43:
            return "looks like a Fernet key without the “=” at its end, and is a different key without it"
        return f"looks like base64 of {len(bare) * 3 // 4} bytes, not of {KEY_BYTES}, and is used as plain text"
    if len(text.encode("utf-8", "replace")) < KEY_BYTES:
        return f"is a text of fewer than {KEY_BYTES} bytes, which may be easy to guess"
    return ""
