"""Audit events of sessions, subjects and stores, reads included."""

from __future__ import annotations

from django.db.models import TextChoices

from memadmin.accounts.purposes import Purpose
from memadmin.audit import EditReason, declare
from memadmin.audit.log.groups import EventGroup, assign

assign(EventGroup.SESSIONS, "session", "item", "subject", "alias", "stored_item", "stored_session", "write", "search")
assign(EventGroup.RIGHTS, "unlock_request")
assign(EventGroup.STORES, "store", "pattern", "watched_path", "search_index", "transcript")
assign(EventGroup.ERASURE, "redaction")

SESSION = "sessions_app.sessionrecord"
SUBJECT = "sessions_app.subject"
ALIAS = "sessions_app.subjectalias"
STORE = "sessions_app.sessionstore"
REDACTION = "sessions_app.redaction"
PATTERN = "sessions_app.sessionidpattern"
WATCHED_PATH = "sessions_app.watchedpath"


class RevealReason(TextChoices):
    CUSTOMER_CASE = "customer_case", "customer case"
    PAYMENT = "payment", "payment, refund or chargeback"
    INCIDENT = "incident", "incident, such as a leaked key"
    SUBJECT_REQUEST = "subject_request", "data-subject request (access or erasure)"
    LEGAL = "legal", "legal matter"


class RedactReason(TextChoices):
    LEAKED_SECRET = "leaked_secret", "leaked password, key or other secret"
    PERSONAL_DATA = "personal_data", "misplaced personal data"
    SUBJECT_REQUEST = "subject_request", "data-subject request"
    LEGAL = "legal", "legal matter"
    MISTAKE = "mistake", "agent mistake that would repeat itself"


SESSION_REVEALED = declare(
    "session.revealed",
    "A person revealed masked values in items of a session, with a reason; the counters are items and values.",
    sentence="{actor} revealed {values} in {items} of {object}",
    object=SESSION,
    counters=("items", "values"),
    reasons=RevealReason,
    counts_as_opening=True,
)

# --- reads ------------------------------------------------------------------------------------------------------------

SESSION_VIEWED = declare(
    "session.viewed",
    "A person viewed a part of a session.",
    sentence="{actor} read {items} of {object}",
    object=SESSION,
    counters=("items",),
    reasons=Purpose,
    counts_as_opening=True,
)
SESSION_DECRYPTED = declare(
    "session.decrypted",
    "A person viewed decrypted items of a session, under a grant.",
    sentence="{actor} read {items} of {object}, decrypted",
    object=SESSION,
    counters=("items",),
    reasons=Purpose,
)
SESSION_FOLLOWED = declare(
    "session.followed",
    "A session open on a person's screen showed new items.",
    sentence="{actor} followed {object}[: {items}]",
    object=SESSION,
    counters=("items",),
    reasons=Purpose,
)
SESSION_DOWNLOADED = declare(
    "session.downloaded",
    "A person downloaded a whole session with masked values; the counters are the file type and the decrypted items.",
    sentence="{actor} downloaded {object}",
    object=SESSION,
    counters=("jsonl", "markdown", "opened"),
    reasons=Purpose,
    counts_as_opening=True,
)
ITEM_VIEWED = declare(
    "item.viewed",
    "A person viewed one item of a session as stored.",
    sentence="{actor} read one item of {object} as stored",
    object=SESSION,
    reasons=Purpose,
    counts_as_opening=True,
)
ITEM_DOWNLOADED = declare(
    "item.downloaded",
    "A person downloaded one item of a session with masked values.",
    sentence="{actor} downloaded one item of {object}",
    object=SESSION,
    reasons=Purpose,
    counts_as_opening=True,
)
SESSIONS_LISTED = declare(
    "session.listed",
    "A person viewed a list of sessions with the first words of each.",
    sentence="{actor} viewed a list of {sessions}",
    counters=("sessions",),
)
SESSIONS_EXPORTED = declare(
    "session.table_exported",
    "A person downloaded a list of sessions as a table, without content; the filter is in the details.",
    sentence="{actor} downloaded a list of {sessions}[ about {subject}]",
    counters=("sessions",),
)
SUBJECTS_EXPORTED = declare(
    "subject.table_exported",
    "A person downloaded the list of subjects as a table, with their ids.",
    sentence="{actor} downloaded a list of {subjects}",
    counters=("subjects",),
)
SUBJECT_VIEWED = declare(
    "subject.viewed",
    "A person viewed the page of a subject, with its ids.",
    sentence="{actor} viewed the page of {object}[ with {sessions}]",
    object=SUBJECT,
    counters=("sessions",),
)
SUBJECTS_LISTED = declare(
    "subject.listed",
    "A person viewed a list of subjects with their ids.",
    sentence="{actor} viewed a list of {subjects}",
    counters=("subjects",),
)
SEARCH_MADE = declare(
    "search.made",
    "A person searched for ids or words; the search text is stored with the search until it expires, not in the log.",
    sentence="{actor} made a search",
    object="sessions_app.textsearch",
)
SEARCH_SHOWN = declare(
    "search.shown",
    "A person viewed the results of a search.",
    sentence="{actor} viewed search results",
    counters=("sessions", "subjects", "tickets"),
    reasons=Purpose,
)

# --- changes ----------------------------------------------------------------------------------------------------------

SESSIONS_ATTACHED = declare(
    "session.attached",
    "A person attached sessions to a subject.",
    sentence="{actor} attached {sessions} to {subject}",
    counters=("sessions",),
    reasons=EditReason,
)
SESSIONS_DETACHED = declare(
    "session.detached",
    "A person detached sessions from their subjects.",
    sentence="{actor} detached {sessions} from their subjects",
    counters=("sessions",),
    reasons=EditReason,
)
ATTACHMENT_UNDONE = declare(
    "session.attachment_undone",
    "A person undid an attachment or detachment: the sessions have the subject that they had before.",
    sentence="{actor} undid an attachment of {sessions}",
    counters=("sessions",),
)
SESSIONS_LABELLED = declare(
    "session.labelled",
    "A person added a label to sessions; the label is in the details.",
    sentence="{actor} added a label to {sessions}",
    counters=("sessions",),
)
SESSIONS_UNLABELLED = declare(
    "session.unlabelled",
    "A person removed a label from sessions; the label is in the details.",
    sentence="{actor} removed a label from {sessions}",
    counters=("sessions",),
)
SESSIONS_LOCKED = declare(
    "session.locked",
    "A person locked sessions: reading them now needs a grant.",
    sentence="{actor} locked {sessions}",
    counters=("sessions",),
)
UNLOCK_REQUESTED = declare(
    "session.unlock_requested",
    "A person requested to unlock a session: then all who read sessions can read it.",
    sentence="{actor} requested to unlock {object}",
    object=SESSION,
    reasons=Purpose,
    counts_as_opening=True,
)
SESSIONS_UNLOCKED = declare(
    "session.unlocked",
    "Sessions were unlocked, as the second person approved, or alone where none is required.",
    sentence="{actor} unlocked {sessions}",
    counters=("sessions",),
)
SESSION_COPIED = declare(
    "session.copied",
    "A person downloaded the copy of a subject's data with this locked session in it.",
    sentence="{actor} downloaded a copy of data with {object}",
    object=SESSION,
    reasons=Purpose,
    counts_as_opening=True,
)
SESSION_EDITED = declare(
    "session.edited",
    "A person changed a session record in raw edits.",
    sentence="{actor} changed the record of {object} in raw edits",
    object=SESSION,
    reasons=EditReason,
)

REDACTION_REQUESTED = declare(
    "redaction.requested",
    "A person requested the redaction of a text in an item, a session or all sessions of a subject; the "
    "explanation is in the details, the text is not recorded.",
    sentence="{actor} requested {object}",
    object=REDACTION,
    reasons=RedactReason,
)
REDACTION_PREVIEWED = declare(
    "redaction.previewed",
    "A person previewed a redaction: the counts of sessions, items and places that contain the text. The page shows "
    "the first places with the text around them.",
    sentence="{actor} previewed a redaction[: {places} in {items}]",
    counters=("sessions", "items", "places"),
    reasons=Purpose.values,
)
ITEM_REDACTED = declare(
    "item.redacted",
    "The text of one item was permanently removed.",
    sentence="{actor} redacted {places} in one item of {object}",
    object=SESSION,
    counters=("items", "places"),
)
SESSION_REDACTED = declare(
    "session.redacted",
    "A text was permanently removed from items of a session; `taken_out` counts removed compaction blocks.",
    sentence="{actor} redacted {places} in {items} of {object}",
    object=SESSION,
    counters=("items", "places", "taken_out"),
)
SUBJECT_REDACTED = declare(
    "subject.redacted",
    "A text was removed from all sessions of a subject; the outcome is failed if some could not be redacted.",
    sentence="{actor} redacted {places} in {sessions} of {object}",
    object=SUBJECT,
    counters=("sessions", "items", "places", "left"),
)
REDACTION_ENDED = declare(
    "redaction.ended",
    "A redaction of an item or a session ended and its text was deleted; the outcome is failed if something remains.",
    sentence="{object} ended[ with {places} in {items}]",
    object=REDACTION,
    counters=("items", "places", "left"),
)

SUBJECTS_MERGED = declare(
    "subject.merged",
    "A subject was merged into another one.",
    sentence="{actor} merged {object}[ into {subject}]",
    object=SUBJECT,
)
MERGE_UNDONE = declare(
    "subject.unmerged",
    "A merge of subjects was undone.",
    sentence="{actor} undid the merge of {object}",
    object=SUBJECT,
)
SUBJECT_KEYS_DESTROYED = declare(
    "subject.keys_destroyed",
    "The keys with which agents encrypted a subject's sessions were destroyed: no copy of these can be read any more.",
    sentence="{actor} destroyed {keys} of {object}",
    object=SUBJECT,
    counters=("keys",),
)
SUBJECT_KEY_ALLOWED = declare(
    "subject.key_allowed",
    "Agents may make a new key for an id whose key was destroyed; what the old key encrypted stays unreadable.",
    sentence="{actor} allowed a new key for {object}",
    object=SUBJECT,
)
SUBJECT_KEYS_WRAPPED = declare(
    "subject.keys_wrapped",
    "The keys of subjects were wrapped with another key of the keyring, and stay the same.",
    sentence="{actor} wrapped {keys} of subjects with another key",
    counters=("keys",),
)
ALIAS_ADDED = declare("alias.added", "An id was added to a subject.", sentence="{actor} added {object}", object=ALIAS)
ALIAS_REMOVED = declare(
    "alias.removed", "An id was removed from a subject.", sentence="{actor} removed {object}", object=ALIAS
)

SESSIONS_FORGOTTEN = declare(
    "session.forgotten",
    "Session ids of erased sessions of a subject were replaced by keyed digests.",
    sentence="{actor} replaced the IDs of {sessions} of {object} by digests",
    object=SUBJECT,
    counters=("sessions",),
)
KEYS_FORGOTTEN = declare(
    "subject.keys_forgotten",
    "The ids of an erased subject were replaced by keyed digests.",
    sentence="{actor} replaced {keys} of {object} by digests",
    object=SUBJECT,
    counters=("keys",),
)
KEY_REOPENED = declare(
    "subject.reopened",
    "A person allowed a new start under an id that was erased; the object is the new subject.",
    sentence="{actor} allowed a new start under an erased ID, as {object}",
    object=SUBJECT,
)

STORE_DECLARED = declare(
    "store.declared",
    "The tables, time zone or fence mode of a store were configured.",
    sentence="{actor} configured {object}",
    object=STORE,
)
STORE_ATTACHED = declare(
    "store.attached",
    "Registry and fence triggers were installed on a store's tables.",
    sentence="{actor} installed the triggers of {object}",
    object=STORE,
    counters=("steps",),
)
STORE_DETACHED = declare(
    "store.detached",
    "Registry and fence triggers were removed from a store's tables.",
    sentence="{actor} removed the triggers of {object}",
    object=STORE,
    counters=("steps",),
)
STORE_DELETED = declare(
    "store.deleted",
    "A store without session records was deleted from the console.",
    sentence="{actor} deleted {object}",
    object=STORE,
    reasons=EditReason,
)
ENCRYPTION_DECLARED = declare(
    "store.encryption_declared",
    "A person configured the name of the key that encrypts a store's sessions.",
    sentence="{actor} configured the encryption of {object}",
    object=STORE,
)
STORE_DISCOVERED = declare(
    "store.discovered",
    "Sessions of a store without triggers were found and registered.",
    sentence="{actor} found {sessions} in {object}",
    object=STORE,
    counters=("sessions",),
)
SESSION_ERASED_AGAIN = declare(
    "session.erased_again",
    "An erased session was erased again, because an agent had written to it in a store without a fence.",
    sentence="{actor} erased {object} again[, with {items}]",
    object=SESSION,
    counters=("items",),
)
DISCOVERY_ASKED = declare(
    "store.searched",
    "A person started a search for new sessions in a store.",
    sentence="{actor} started a search for new sessions in {object}",
    object=STORE,
)
PURGE_BEGUN = declare(
    "store.purge_begun",
    "The removal of expired encrypted items from a store began.",
    sentence="{actor} began to remove expired encrypted items from {object}",
    object=STORE,
)
SESSION_PURGED = declare(
    "session.purged",
    "Expired encrypted items were removed from a session.",
    sentence="{actor} removed {items} from {object}",
    object=SESSION,
    counters=("items",),
)
PURGE_ENDED = declare(
    "store.purge_ended",
    "The removal of expired encrypted items ended; `unproven` counts items whose time could not be verified "
    "without their key.",
    sentence="The removal of expired encrypted items from {object} ended[: {items} of {sessions}]",
    object=STORE,
    counters=("sessions", "items", "unproven", "busy"),
)
ROTATION_BEGUN = declare(
    "store.rotation_begun",
    "The re-encryption of a store with a new key began.",
    sentence="{actor} began to re-encrypt {object} with a new key",
    object=STORE,
)
SESSION_RESEALED = declare(
    "session.resealed",
    "Items of a session were re-encrypted with a new key.",
    sentence="{actor} re-encrypted {items} of {object}",
    object=SESSION,
    counters=("items",),
)
ROTATION_ENDED = declare(
    "store.rotation_ended",
    "The re-encryption of a store ended and every item was checked; `left` counts items that still have the old key.",
    sentence="The re-encryption of {object} ended[: {items} of {sessions}]",
    object=STORE,
    counters=("sessions", "items", "unreadable", "left", "busy"),
    reasons=("complete", "old_key_in_use"),
)
SEARCH_INDEX_BUILT = declare(
    "search_index.built",
    "A store's full-text index was built.",
    sentence="{actor} built the full-text index of {object}",
    object=STORE,
)
SEARCH_INDEX_DROPPED = declare(
    "search_index.dropped",
    "A store's full-text index was dropped.",
    sentence="{actor} dropped the full-text index of {object}",
    object=STORE,
)
TRANSCRIPTS_IMPORTED = declare(
    "transcript.imported",
    "Transcripts were written into a store.",
    sentence="{actor} imported {sessions} with {items} into {object}",
    object=STORE,
    counters=("sessions", "items", "skipped"),
)

PATTERN_ADDED = declare(
    "pattern.added", "A store got a session-id pattern.", sentence="{actor} added {object}", object=PATTERN
)
PATTERN_CHANGED = declare(
    "pattern.changed", "A session-id pattern was changed.", sentence="{actor} changed {object}", object=PATTERN
)
PATTERN_MOVED = declare(
    "pattern.moved", "A session-id pattern is tried earlier.", sentence="{actor} moved {object} forward", object=PATTERN
)
PATTERN_DELETED = declare(
    "pattern.deleted", "A session-id pattern was deleted.", sentence="{actor} deleted {object}", object=PATTERN
)

WATCHED_PATH_ADDED = declare(
    "watched_path.added",
    "A watched path was added: files and folders that match it become stores automatically.",
    sentence="{actor} added {object}",
    object=WATCHED_PATH,
)
WATCHED_PATH_ASKED = declare(
    "watched_path.asked",
    "A person checked a watched path for new stores.",
    sentence="{actor} checked {object} for new stores",
    object=WATCHED_PATH,
)
WATCHED_PATH_REMOVED = declare(
    "watched_path.removed",
    "A watched path was removed; its stores are kept.",
    sentence="{actor} removed {object}",
    object=WATCHED_PATH,
)

# --- the agents' own rows ---------------------------------------------------------------------------------------------

for noun, what in (("stored_item", "items"), ("stored_session", "sessions")):
    for event, done in (("row_inserted", "added"), ("row_updated", "changed"), ("row_deleted", "deleted")):
        declare(
            f"{noun}.{event}",
            f"Stored {what} were {done} in the agents' tables by something other than an agent.",
            sentence=f"{{actor}} {done} stored {what}: {{rows}}[ of {{object}}]",
            object=SESSION,
            counters=("rows",),
        )
    declare(
        f"{noun}.table_truncated",
        f"All stored {what} were deleted at once by something other than an agent.",
        sentence=f"{{actor}} deleted all stored {what} at once",
        object=SESSION,
        counters=("rows",),
    )

ITEM_EDITED = declare(
    "item.edited",
    "A person edited a stored item.",
    sentence="{actor} edited a stored item of {object}",
    object=SESSION,
    reasons=EditReason,
)
ITEM_DELETED = declare(
    "item.deleted",
    "A person deleted a stored item.",
    sentence="{actor} deleted a stored item of {object}",
    object=SESSION,
    reasons=EditReason,
)
STORED_SESSION_DELETED = declare(
    "session.deleted",
    "A person deleted a stored session with its items.",
    sentence="{actor} deleted {object} with its items",
    object=SESSION,
    reasons=EditReason,
)
WRITE_DROPPED = declare(
    "write.dropped",
    "An agent wrote to an erased session, and the write was discarded.",
    sentence="{actor} wrote to erased {object}, and the write was discarded",
    object=SESSION,
)
