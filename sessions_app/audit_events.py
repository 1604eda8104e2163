"""What the log tells about sessions, their subjects and stores, and about who read them."""

from __future__ import annotations

from django.db.models import TextChoices

from memadmin.accounts.purposes import Purpose
from memadmin.audit import EditReason, declare

SESSION = "sessions_app.sessionrecord"
SUBJECT = "sessions_app.subject"
ALIAS = "sessions_app.subjectalias"
STORE = "sessions_app.sessionstore"
REDACTION = "sessions_app.redaction"
PATTERN = "sessions_app.sessionidpattern"
WATCHED_PATH = "sessions_app.watchedpath"


class RevealReason(TextChoices):
    CUSTOMER_CASE = "customer_case", "the case of the person it is about"
    PAYMENT = "payment", "a payment, a refund or a chargeback"
    INCIDENT = "incident", "an incident, such as a key that leaked"
    SUBJECT_REQUEST = "subject_request", "a person's access or erasure request"
    LEGAL = "legal", "a legal matter"


class RedactReason(TextChoices):
    LEAKED_SECRET = "leaked_secret", "a password, key or other secret that leaked"
    PERSONAL_DATA = "personal_data", "personal data that should not be here"
    SUBJECT_REQUEST = "subject_request", "a person's request about their data"
    LEGAL = "legal", "a legal matter"
    MISTAKE = "mistake", "a mistake of the agent that would repeat itself"


SESSION_REVEALED = declare(
    "session.revealed",
    "Somebody asked to see what is masked in items of a session, and why; counted are the items and the values.",
    object=SESSION,
    counters=("items", "values"),
    reasons=RevealReason.values,
    counts_as_opening=True,
)

# --- reads ------------------------------------------------------------------------------------------------------------

SESSION_VIEWED = declare(
    "session.viewed",
    "Somebody opened a part of a session.",
    object=SESSION,
    counters=("items",),
    reasons=Purpose.values,
    counts_as_opening=True,
)
SESSION_DECRYPTED = declare(
    "session.decrypted",
    "Somebody saw what is sealed in a session, under a grant.",
    object=SESSION,
    counters=("items",),
    reasons=Purpose.values,
)
SESSION_FOLLOWED = declare(
    "session.followed",
    "A session open on somebody's screen showed something new.",
    object=SESSION,
    counters=("items",),
    reasons=Purpose.values,
)
SESSION_DOWNLOADED = declare(
    "session.downloaded",
    "Somebody took a whole session away as a file of this kind, and what is sealed opened.",
    object=SESSION,
    counters=("jsonl", "markdown", "opened"),
    reasons=Purpose.values,
    counts_as_opening=True,
)
ITEM_VIEWED = declare(
    "item.viewed",
    "Somebody opened one item of a session as it is stored.",
    object=SESSION,
    reasons=Purpose.values,
    counts_as_opening=True,
)
ITEM_DOWNLOADED = declare(
    "item.downloaded",
    "Somebody took one item of a session away as a file.",
    object=SESSION,
    reasons=Purpose.values,
    counts_as_opening=True,
)
SESSIONS_LISTED = declare(
    "session.listed", "Somebody saw a list of sessions with the first words of each.", counters=("sessions",)
)
SUBJECT_VIEWED = declare(
    "subject.viewed", "Somebody opened the page of a subject, with its ids.", object=SUBJECT, counters=("sessions",)
)
SUBJECTS_LISTED = declare("subject.listed", "Somebody saw a list of subjects with their ids.", counters=("subjects",))
SEARCH_MADE = declare(
    "search.made",
    "Somebody searched for ids or words, which are kept as long as the search is and not here.",
    object="sessions_app.textsearch",
)
SEARCH_SHOWN = declare(
    "search.shown",
    "Somebody saw what a search found.",
    counters=("sessions", "subjects", "tickets"),
    reasons=Purpose.values,
)

# --- changes ----------------------------------------------------------------------------------------------------------

SESSIONS_ATTACHED = declare(
    "session.attached",
    "Somebody said whose sessions these are.",
    counters=("sessions",),
    reasons=EditReason.values,
)
SESSIONS_DETACHED = declare(
    "session.detached",
    "Somebody took sessions from their subjects.",
    counters=("sessions",),
    reasons=EditReason.values,
)
SESSIONS_LABELLED = declare(
    "session.labelled", "Somebody gave sessions a label; its word is in the details.", counters=("sessions",)
)
SESSIONS_UNLABELLED = declare(
    "session.unlabelled", "Somebody took a label off sessions; its word is in the details.", counters=("sessions",)
)
SESSIONS_LOCKED = declare(
    "session.locked", "Somebody locked sessions: reading them takes a grant.", counters=("sessions",)
)
SESSIONS_UNLOCKED = declare("session.unlocked", "Somebody unlocked sessions.", counters=("sessions",))
SESSION_EDITED = declare(
    "session.edited",
    "Somebody changed a session on record in raw edits.",
    object=SESSION,
    reasons=EditReason.values,
)

REDACTION_REQUESTED = declare(
    "redaction.requested",
    "Somebody asked for a text to be taken out of an item, a session or all sessions of a subject; why is in the"
    " details, and the text nowhere.",
    object=REDACTION,
    reasons=RedactReason.values,
)
REDACTION_PREVIEWED = declare(
    "redaction.previewed",
    "Somebody looked how often a text that they gave stands in sessions, without seeing any.",
    counters=("sessions", "items", "places"),
)
ITEM_REDACTED = declare(
    "item.redacted", "The text of one item was taken out for good.", object=SESSION, counters=("items", "places")
)
SESSION_REDACTED = declare(
    "session.redacted",
    "A text was taken out of items of a session for good; taken out are compaction blocks that may hold it.",
    object=SESSION,
    counters=("items", "places", "taken_out"),
)
SUBJECT_REDACTED = declare(
    "subject.redacted",
    "A text was taken out of all sessions of a subject; it failed where some were left.",
    object=SUBJECT,
    counters=("sessions", "items", "places", "left"),
)
REDACTION_ENDED = declare(
    "redaction.ended",
    "A redaction of an item or a session ended, and its text was forgotten; it failed where something was left.",
    object=REDACTION,
    counters=("items", "places", "left"),
)

SUBJECTS_MERGED = declare("subject.merged", "A subject was merged into another one.", object=SUBJECT)
MERGE_UNDONE = declare("subject.unmerged", "A merged subject became one of its own again.", object=SUBJECT)
ALIAS_ADDED = declare("alias.added", "A subject is known by another id.", object=ALIAS)
ALIAS_REMOVED = declare("alias.removed", "A subject is no longer known by an id.", object=ALIAS)

STORE_DECLARED = declare("store.declared", "The tables, zone or mode of a store were declared.", object=STORE)
STORE_ATTACHED = declare(
    "store.attached", "Registry and fence were put on a store's tables.", object=STORE, counters=("steps",)
)
STORE_DETACHED = declare(
    "store.detached", "Registry and fence were taken off a store's tables.", object=STORE, counters=("steps",)
)
STORE_DELETED = declare(
    "store.deleted",
    "A store of which nothing was on record was forgotten.",
    object=STORE,
    reasons=EditReason.values,
)
ENCRYPTION_DECLARED = declare(
    "store.encryption_declared",
    "Somebody said with which key, by its name, agents seal a store's sessions.",
    object=STORE,
)
STORE_DISCOVERED = declare(
    "store.discovered",
    "Sessions of a store without triggers were found and registered.",
    object=STORE,
    counters=("sessions",),
)
SESSION_ERASED_AGAIN = declare(
    "session.erased_again",
    "An agent had written to an erased session, in a store without a fence, and it was erased once more.",
    object=SESSION,
    counters=("items",),
)
DISCOVERY_ASKED = declare("store.searched", "Somebody had a store looked through for its sessions.", object=STORE)
PURGE_BEGUN = declare(
    "store.purge_begun", "Sealed items that agents no longer read began to be removed from a store.", object=STORE
)
SESSION_PURGED = declare(
    "session.purged",
    "Sealed items that agents no longer read were removed from a session.",
    object=SESSION,
    counters=("items",),
)
PURGE_ENDED = declare(
    "store.purge_ended",
    "The removal ended; the time of unproven items is what their envelopes say, since their key is not here.",
    object=STORE,
    counters=("sessions", "items", "unproven", "busy"),
)
ROTATION_BEGUN = declare("store.rotation_begun", "A store began to be sealed anew with another key.", object=STORE)
SESSION_RESEALED = declare(
    "session.resealed", "Items of a session were sealed anew with another key.", object=SESSION, counters=("items",)
)
ROTATION_ENDED = declare(
    "store.rotation_ended",
    "Every item of a store was read again after it was sealed anew; what still has the old key is left.",
    object=STORE,
    counters=("sessions", "items", "unreadable", "left", "busy"),
    reasons=("complete", "old_key_in_use"),
)
SEARCH_INDEX_BUILT = declare("search_index.built", "A store's full-text index was built.", object=STORE)
SEARCH_INDEX_DROPPED = declare("search_index.dropped", "A store's full-text index was dropped.", object=STORE)
TRANSCRIPTS_IMPORTED = declare(
    "transcript.imported",
    "Transcripts were written into a store.",
    object=STORE,
    counters=("sessions", "items", "skipped"),
)

PATTERN_ADDED = declare("pattern.added", "A store got a session-id pattern.", object=PATTERN)
PATTERN_CHANGED = declare("pattern.changed", "A session-id pattern was changed.", object=PATTERN)
PATTERN_MOVED = declare("pattern.moved", "A session-id pattern is tried earlier.", object=PATTERN)
PATTERN_DELETED = declare("pattern.deleted", "A session-id pattern was deleted.", object=PATTERN)

WATCHED_PATH_ADDED = declare(
    "watched_path.added", "From now on what a path with * names becomes a store by itself.", object=WATCHED_PATH
)
WATCHED_PATH_ASKED = declare(
    "watched_path.asked", "Somebody had a watched path looked at for new stores at once.", object=WATCHED_PATH
)
WATCHED_PATH_REMOVED = declare(
    "watched_path.removed", "A path is not watched for new stores any more; its stores stay.", object=WATCHED_PATH
)

# --- the agents' own rows ---------------------------------------------------------------------------------------------

for noun, what in (("stored_item", "items"), ("stored_session", "sessions")):
    for event, done in (("row_inserted", "added"), ("row_updated", "changed"), ("row_deleted", "deleted")):
        declare(
            f"{noun}.{event}",
            f"Stored {what} were {done} in the agents' own tables, and not by an agent.",
            object=SESSION,
            counters=("rows",),
        )
    declare(
        f"{noun}.table_truncated",
        f"All stored {what} were deleted at once, and not by an agent.",
        object=SESSION,
        counters=("rows",),
    )

ITEM_EDITED = declare(
    "item.edited", "Somebody rewrote a stored item by hand.", object=SESSION, reasons=EditReason.values
)
ITEM_DELETED = declare(
    "item.deleted", "Somebody deleted a stored item by hand.", object=SESSION, reasons=EditReason.values
)
STORED_SESSION_DELETED = declare(
    "session.deleted",
    "Somebody deleted a stored session by hand, with its items.",
    object=SESSION,
    reasons=EditReason.values,
)
WRITE_DROPPED = declare(
    "write.dropped", "An agent wrote to an erased session, and the write was discarded.", object=SESSION
)
