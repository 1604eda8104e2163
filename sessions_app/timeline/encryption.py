"""Encrypted envelopes, as far as they can be read without a key."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from memadmin import times
from sessions_app.timeline.values import Fields, text_in

FERNET_VERSION = 0x80
TIME_PREFIX_CHARACTERS = 12
"""Base64 of the first nine bytes of a Fernet token: its version and the second in which it was written."""


ENVELOPE_MEMBER = "__enc__"
ENVELOPE = frozenset({ENVELOPE_MEMBER, "v", "kid", "payload"})


def is_envelope(fields: Fields) -> bool:
    """Whether the SDK's EncryptedSession wrote this, by the SDK's own test."""
    return fields.get(ENVELOPE_MEMBER) == 1 and fields.keys() >= ENVELOPE


def sealed_at(envelope: Fields) -> datetime | None:
    """Time at which a token was written by its own account, or None if it is no token. Verifying it needs the key."""
    try:
        prefix = base64.urlsafe_b64decode(text_in(envelope, "payload")[:TIME_PREFIX_CHARACTERS])
    except (binascii.Error, ValueError):
        return None
    if len(prefix) != 9 or prefix[0] != FERNET_VERSION:
        return None
    return times.of_seconds(int.from_bytes(prefix[1:]))
