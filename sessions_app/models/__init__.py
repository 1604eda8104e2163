"""The registry, each topic in a module of its own; everybody imports from here."""

from sessions_app.models.sessions import (
    AgentMessage,
    AgentSession,
    FenceOutbox,
    Grams,
    Redaction,
    SessionFinding,
    SessionIdPattern,
    SessionRecord,
    SessionStore,
    Subject,
    SubjectAlias,
    SubjectKind,
    TextSearch,
    WatchedPath,
    validate_pattern,
)

__all__ = [
    "AgentMessage",
    "AgentSession",
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
    "TextSearch",
    "WatchedPath",
    "validate_pattern",
]
