"""The keys with which this installation signs checkpoints and receipts."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memadmin.audit.transparency.notes import SigningKey


class NoSigningKey(Exception):
    """This process has no key. The message is a sentence."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text} must be signed. Set MEMADMIN_SIGNING_KEY.")


def signing_key(origin: str) -> SigningKey | None:
    """The current key. None if the operator has set none: then there are no checkpoints, and pages show that."""
    seed = settings.SIGNING_KEY or (_kept_seed(settings.SIGNING_KEY_KEPT) if settings.SIGNING_KEY_KEPT else b"")
    return SigningKey(origin, seed) if seed else None


def signing_key_before(origin: str) -> SigningKey | None:
    """The previous key, if it is still set to sign in the current one."""
    return SigningKey(origin, settings.SIGNING_KEY_BEFORE) if settings.SIGNING_KEY_BEFORE else None


def _kept_seed(path: Path) -> bytes:
    """The stored seed, created by the first process; processes that start together get the same."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
            fresh.touch(mode=0o600)
            fresh.write_bytes(os.urandom(32))
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(fresh)
            fresh.unlink()
        seed = path.read_bytes()
    except OSError as problem:
        raise ImproperlyConfigured(f"The signing key in {path} cannot be used: {problem.strerror}.") from None
    if len(seed) != 32:
        raise ImproperlyConfigured(f"{path} must contain the 32 bytes of a signing key; it contains {len(seed)}.")
    return seed
