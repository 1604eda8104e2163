"""The text of a line, encrypted: it names a person, and is needed until the batch is closed."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


@dataclass(frozen=True, slots=True)
class LineText:
    """What the file says in a line, and the ID that its problem names."""

    key: str = ""
    kind: str = ""
    note: str = ""
    other_key: str = ""


def seal(text: LineText) -> bytes:
    return _fernet(settings.SECRET_KEY).encrypt(json.dumps(asdict(text)).encode())


def unseal(sealed: bytes | memoryview) -> LineText:
    """The text; an empty one after it was destroyed, or when MEMADMIN_SECRET_KEY has changed since."""
    if not sealed:
        return LineText()
    try:
        return LineText(**json.loads(_fernet(settings.SECRET_KEY).decrypt(bytes(sealed))))
    except InvalidToken:
        return LineText()


@lru_cache(maxsize=2)
def _fernet(secret: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"memadmin lines of batches")
    return Fernet(base64.urlsafe_b64encode(derived.derive(secret.encode())))
