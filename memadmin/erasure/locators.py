"""Ids and names by which a person is looked for after the erasure: encrypted, and destroyed when the case is closed.

The rows of the person's ids are erased before the last scan, so the case keeps them until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from memadmin.derived_keys import decrypted, derived_fernet

PURPOSE = "memadmin locators of requests"

SHORTEST = 3
"""Characters of a text that is looked for: shorter ones occur everywhere."""

MOST = 50
"""Further names, addresses and numbers that a person may enter for one case."""


def seal(texts: Iterable[str], *, keys: Iterable[tuple[str, str]] = ()) -> bytes:
    """Encrypted texts, without doubles and without those that are too short to be looked for.

    `keys` are the ids of the person, each with its kind: only by these a session is taken for the person's.
    """
    wanted = sorted({text.strip() for text in texts if len(text.strip()) >= SHORTEST})
    return derived_fernet(PURPOSE).encrypt(json.dumps({"texts": wanted, "keys": sorted(keys)}).encode())


def unseal(sealed: bytes | memoryview) -> list[str]:
    """The texts; none after they were destroyed. Raises SecretKeyChanged."""
    return list(_opened(sealed)["texts"])


def unseal_keys(sealed: bytes | memoryview) -> list[tuple[str, str]]:
    """The ids of the person with their kinds; none before the erasure has begun. Raises SecretKeyChanged."""
    return [(kind, key) for kind, key in _opened(sealed)["keys"]]


def _opened(sealed: bytes | memoryview) -> dict[str, Any]:
    if not sealed:
        return {"texts": [], "keys": []}
    return dict(json.loads(decrypted(sealed, PURPOSE, what="The ids of this person")))
