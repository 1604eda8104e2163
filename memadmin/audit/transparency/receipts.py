"""Placeholder until receipts are merged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID


class CannotIssue(Exception):
    pass


def id_of(payload: Mapping[str, Any]) -> UUID:
    digest = bytearray(hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    return UUID(bytes=bytes(digest))


def issue(payload: Mapping[str, Any], *, event: UUID) -> str:
    return json.dumps({"payload": payload, "event": str(event)}, sort_keys=True)
