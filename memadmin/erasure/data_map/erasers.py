"""Everything that erases data, by name. A step of an erasure and a row of the data map name the same eraser."""

from __future__ import annotations

from django.db.models import TextChoices


class Eraser(TextChoices):
    """A mechanism that removes the data of a place. The value is the name in classification.toml."""

    # Steps of an erasure request.
    SESSIONS = "sessions", "erasure of sessions"
    SUBJECT_KEYS = "subject_keys", "destruction of the subject's key"
    VECTORS = "vectors", "removal from the vector index"
    MEMORIES = "memories", "erasure of memories"
    SHARED_MEMORIES = "shared_memories", "erasure from shared memories"
    VERSIONS = "versions", "erasure of versions of memories"
    REVIEWS = "reviews", "erasure of decisions"
    DISTILLATIONS = "distillations", "erasure of records of learning"
    EVIDENCE = "evidence", "erasure of evidence"
    SIGNALS = "signals", "erasure of signals"
    RECALLS = "recalls", "erasure of recalls"
    SEARCHES = "searches", "erasure of searches"
    REDACTIONS = "redactions", "erasure of redactions"
    FINDINGS = "findings", "erasure of findings"
    ADMIN_LOG = "admin_log", "erasure of the admin log"
    AUDIT_DETAILS = "audit_details", "erasure of audit details"
    GRANTS = "grants", "erasure of grants' texts"
    ACCESS_COPIES = "access_copies", "erasure of access copies"
    IDENTITY = "identity", "erasure of the identity (last step)"

    # Everything else.
    CLOSING = "closing", "end of the request"
    REDACTION = "redaction", "redaction"
    ACCOUNT = "account", "account deletion"
    NAME_IN_LOG = "name_in_log", "erasure of a name in the log"
    EXPIRY = "expiry", "expiry"
    RETENTION = "retention", "retention"
    PURGE_OF_JOBS = "purge_of_jobs", "purge of jobs"
    BY_HAND = "by_hand", "a person, by hand"
    OUT_OF_REACH = "out_of_reach", "out of reach"
    NOTHING_YET = "nothing_yet", "nothing yet"


STEPS = tuple(Eraser)[: tuple(Eraser).index(Eraser.CLOSING)]
"""Erasers that are steps of an erasure request."""
