"""Approvals by a second person: of exactly what a page showed them."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest_of(shown: Any) -> str:
    """SHA-256, in hexadecimal digits, of values that JSON can hold. A page carries it in the form of its approval."""
    return hashlib.sha256(json.dumps(shown, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
