"""Encrypted texts of lines: they name people, and are needed until the batch is closed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from memadmin.derived_keys import SecretKeyChanged, decrypted, derived_fernet

PURPOSE = "memadmin lines of batches"


@dataclass(frozen=True, slots=True)
class LineText:
    """Text of a line in the uploaded file, and the ID that its problem names."""

    key: str = ""
    kind: str = ""
    note: str = ""
    other_key: str = ""


def seal(text: LineText) -> bytes:
    return derived_fernet(PURPOSE).encrypt(json.dumps(asdict(text)).encode())


def unseal(sealed: bytes | memoryview) -> LineText:
    """The text; an empty one after it was destroyed, or without the secret key it was encrypted under."""
    if not sealed:
        return LineText()
    try:
        return LineText(**json.loads(decrypted(sealed, PURPOSE, what="This line")))
    except SecretKeyChanged:
        return LineText()
