"""The encryption key of demo bots, shared by the bots and the console."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from agents.extensions.memory import EncryptedSession
from agents.memory.session import SessionABC
from cryptography.fernet import Fernet
from django.conf import settings

TEN_YEARS = timedelta(days=10 * 365)
"""EncryptedSession hides items older than its `ttl`, ten minutes by default; the demo's conversations must stay."""


def sealed(session: SessionABC) -> EncryptedSession:
    return EncryptedSession(session.session_id, session, session_key(), ttl=int(TEN_YEARS.total_seconds()))


def session_key() -> str:
    """Created once and stored in the data folder, like the signing key."""
    kept = session_key_path()
    if not kept.exists():
        fresh = kept.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_bytes(Fernet.generate_key())
        fresh.replace(kept)
    return kept.read_text()


def session_key_path() -> Path:
    return Path(settings.DATA_DIR) / "demo-session-key"
