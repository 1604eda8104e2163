"""The events of the log itself, and those that belong to no feature."""

from __future__ import annotations

from memadmin.audit.types import declare

ACCESS_DENIED = declare(
    "access.denied",
    "Somebody signed in asked for a page, or for an object by its id, that is not theirs.",
    reasons=("forbidden", "not_found"),
)
KEY_ROTATED = declare(
    "key.rotated",
    "Checkpoints are signed with another key from here on.",
    reasons=("signed_in", "not_signed_in"),
)
EPOCH_BEGUN = declare(
    "log.epoch_begun",
    "The log goes on from an older state, after a restore; later events that were anchored outside are not in it.",
    counters=("epoch", "size", "lost_size"),
    reasons=("restored_backup", "moved", "test_of_restore"),
)
