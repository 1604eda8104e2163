"""Everything that erases data, by name. A step of an erasure and a row of the data map name the same eraser."""

from __future__ import annotations

from enum import StrEnum


class Eraser(StrEnum):
    """What removes the data of a place. The value is the name in classification.toml."""

    # Steps of an erasure request.
    SESSIONS = "sessions"
    MEMORIES = "memories"
    EVIDENCE = "evidence"
    SIGNALS = "signals"
    RECALLS = "recalls"
    SEARCHES = "searches"
    REDACTIONS = "redactions"
    FINDINGS = "findings"
    FENCE_OUTBOX = "fence_outbox"
    ADMIN_LOG = "admin_log"
    AUDIT_DETAILS = "audit_details"
    GRANTS = "grants"
    ACCESS_COPIES = "access_copies"
    KEY_DESTRUCTION = "key_destruction"
    IDENTITY = "identity"

    # Everything else.
    REDACTION = "redaction"
    ACCOUNT = "account"
    NAME_IN_LOG = "name_in_log"
    EXPIRY = "expiry"
    RETENTION = "retention"
    PURGE_OF_JOBS = "purge_of_jobs"
    BY_HAND = "by_hand"
    OUT_OF_REACH = "out_of_reach"
    NOTHING_YET = "nothing_yet"

    @property
    def label(self) -> str:
        return LABELS[self]


STEPS = (
    Eraser.SESSIONS,
    Eraser.MEMORIES,
    Eraser.EVIDENCE,
    Eraser.SIGNALS,
    Eraser.RECALLS,
    Eraser.SEARCHES,
    Eraser.REDACTIONS,
    Eraser.FINDINGS,
    Eraser.FENCE_OUTBOX,
    Eraser.ADMIN_LOG,
    Eraser.AUDIT_DETAILS,
    Eraser.GRANTS,
    Eraser.ACCESS_COPIES,
    Eraser.KEY_DESTRUCTION,
    Eraser.IDENTITY,
)
"""Erasers that are steps of an erasure request."""

LABELS = {
    Eraser.SESSIONS: "erasure of sessions",
    Eraser.MEMORIES: "erasure of memories",
    Eraser.EVIDENCE: "erasure of evidence",
    Eraser.SIGNALS: "erasure of signals",
    Eraser.RECALLS: "erasure of recalls",
    Eraser.SEARCHES: "erasure of searches",
    Eraser.REDACTIONS: "erasure of redactions",
    Eraser.FINDINGS: "erasure of findings",
    Eraser.FENCE_OUTBOX: "erasure of the fence outbox",
    Eraser.ADMIN_LOG: "erasure of the admin log",
    Eraser.AUDIT_DETAILS: "erasure of audit details",
    Eraser.GRANTS: "erasure of grants' texts",
    Eraser.ACCESS_COPIES: "erasure of access copies",
    Eraser.KEY_DESTRUCTION: "destruction of the subject's key",
    Eraser.IDENTITY: "erasure of the identity (last step)",
    Eraser.REDACTION: "redaction",
    Eraser.ACCOUNT: "account deletion",
    Eraser.NAME_IN_LOG: "erasure of a name in the log",
    Eraser.EXPIRY: "expiry",
    Eraser.RETENTION: "retention",
    Eraser.PURGE_OF_JOBS: "purge of jobs",
    Eraser.BY_HAND: "a person, by hand",
    Eraser.OUT_OF_REACH: "out of reach",
    Eraser.NOTHING_YET: "nothing yet",
}
