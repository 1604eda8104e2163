"""Everything that erases data, by name. A step of an erasure and a row of the data map name the same eraser."""

from __future__ import annotations

from enum import StrEnum


class Eraser(StrEnum):
    """What removes the data of a place. The value is the name in classification.toml."""

    # Steps of an erasure request.
    SESSIONS = "sessions"
    SUBJECT_KEYS = "subject_keys"
    MEMORIES = "memories"
    SHARED_MEMORIES = "shared_memories"
    VERSIONS = "versions"
    REVIEWS = "reviews"
    DISTILLATIONS = "distillations"
    EVIDENCE = "evidence"
    SIGNALS = "signals"
    RECALLS = "recalls"
    SEARCHES = "searches"
    REDACTIONS = "redactions"
    FINDINGS = "findings"
    ADMIN_LOG = "admin_log"
    AUDIT_DETAILS = "audit_details"
    GRANTS = "grants"
    ACCESS_COPIES = "access_copies"
    IDENTITY = "identity"

    # Everything else.
    CLOSING = "closing"
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
    Eraser.SUBJECT_KEYS,
    Eraser.FINDINGS,
    Eraser.SHARED_MEMORIES,
    Eraser.RECALLS,
    Eraser.REVIEWS,
    Eraser.VERSIONS,
    Eraser.EVIDENCE,
    Eraser.SIGNALS,
    Eraser.DISTILLATIONS,
    Eraser.MEMORIES,
    Eraser.ACCESS_COPIES,
    Eraser.SEARCHES,
    Eraser.REDACTIONS,
    Eraser.GRANTS,
    Eraser.ADMIN_LOG,
    Eraser.IDENTITY,
    Eraser.AUDIT_DETAILS,
)
"""Erasers that are steps of an erasure request."""

LABELS = {
    Eraser.SESSIONS: "erasure of sessions",
    Eraser.SUBJECT_KEYS: "destruction of the subject's key",
    Eraser.MEMORIES: "erasure of memories",
    Eraser.SHARED_MEMORIES: "erasure from shared memories",
    Eraser.VERSIONS: "erasure of versions of memories",
    Eraser.REVIEWS: "erasure of decisions",
    Eraser.DISTILLATIONS: "erasure of records of learning",
    Eraser.EVIDENCE: "erasure of evidence",
    Eraser.SIGNALS: "erasure of signals",
    Eraser.RECALLS: "erasure of recalls",
    Eraser.SEARCHES: "erasure of searches",
    Eraser.REDACTIONS: "erasure of redactions",
    Eraser.FINDINGS: "erasure of findings",
    Eraser.ADMIN_LOG: "erasure of the admin log",
    Eraser.AUDIT_DETAILS: "erasure of audit details",
    Eraser.GRANTS: "erasure of grants' texts",
    Eraser.ACCESS_COPIES: "erasure of access copies",
    Eraser.IDENTITY: "erasure of the identity (last step)",
    Eraser.CLOSING: "end of the request",
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
