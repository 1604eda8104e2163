"""Models of sessions_app, a module for each topic. Other packages import them from here."""

from sessions_app.models.agents import AgentMessage, AgentSession
from sessions_app.models.grams import Grams
from sessions_app.models.redactions import Redaction
from sessions_app.models.searches import TextSearch
from sessions_app.models.sessions import FenceOutbox, SessionFinding, SessionRecord
from sessions_app.models.stores import SessionIdPattern, SessionStore, WatchedPath, validate_pattern
from sessions_app.models.subjects import (
    ErasedKey,
    Subject,
    SubjectAlias,
    SubjectKind,
    SubjectSource,
    TombstoneLock,
)
from sessions_app.models.unlocking import UnlockRequest

__all__ = [
    "AgentMessage",
    "AgentSession",
    "ErasedKey",
    "FenceOutbox",
    "Grams",
    "Redaction",
    "SessionFinding",
    "SessionIdPattern",
    "SessionRecord",
    "SessionStore",
    "Subject",
    "SubjectAlias",
    "SubjectKind",
    "SubjectSource",
    "TextSearch",
    "TombstoneLock",
    "UnlockRequest",
    "WatchedPath",
    "validate_pattern",
]
