"""Reading of the text of a key, exactly as the SDK's `EncryptedSession` does."""

from __future__ import annotations

import base64

KEY_BYTES = 32


class UnusableKey(ValueError):
    """A text that no agent could use as a key either; the message has the reason and does not repeat the text."""


def master_key(text: str) -> bytes:
    """The bytes that the SDK makes of a key: 32 in base64, or else the text itself. Raises UnusableKey."""
    if not text:
        raise UnusableKey("it is empty")
    try:
        decoded = base64.urlsafe_b64decode(text)
    except ValueError:
        decoded = b""
    if len(decoded) == KEY_BYTES:
        return decoded
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnusableKey("it is not UTF-8") from None
